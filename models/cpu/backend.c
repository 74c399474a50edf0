#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "models/cpu/cpu.h"
#include "models/cpu/instructions.h"

status cpu_scratch(struct cpu *cpu, size_t bytes, void *pointer, struct error *error)
{
    void *memory = arena_take(&cpu->scratch, bytes);
    if (memory == NULL)
        return error_set(error, ERROR_MEMORY, "memory: an operation needs %zu MiB of scratch; lower the batch size",
                         bytes >> 20);
    memcpy(pointer, &memory, sizeof memory);
    return OK;
}

static status create_arena(struct backend *backend, struct arena *arena, size_t limit, const char *name,
                           struct error *error)
{
    (void)backend;
    return arena_create(arena, limit, name, error);
}

static void destroy_arena(struct backend *backend, struct arena *arena)
{
    (void)backend;
    arena_destroy(arena);
}

static status upload(struct backend *backend, void *device, const void *host, size_t bytes, struct error *error)
{
    (void)backend;
    (void)error;
    if (bytes > 0) /* then neither may be NULL */
        memcpy(device, host, bytes);
    return OK;
}

static status download(struct backend *backend, void *host, const void *device, size_t bytes, struct error *error)
{
    return upload(backend, host, device, bytes, error);
}

static status zero(struct backend *backend, void *device, size_t bytes, struct error *error)
{
    (void)backend;
    (void)error;
    if (bytes > 0)
        memset(device, 0, bytes);
    return OK;
}

struct copying {
    char *to;
    const char *from;
    size_t bytes;
};

enum { COPIED_AT_ONCE = 1 << 16 };

static void copy_pieces(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    (void)cpu;
    const struct copying *o = operation;
    size_t from = first * COPIED_AT_ONCE, to = last * COPIED_AT_ONCE < o->bytes ? last * COPIED_AT_ONCE : o->bytes;
    memcpy(o->to + from, o->from + from, to - from);
}

static status copy(struct backend *backend, void *to, const void *from, size_t bytes, struct error *error)
{
    (void)error;
    return cpu_run_rows(cpu_of(backend), (bytes + COPIED_AT_ONCE - 1) / COPIED_AT_ONCE, COPIED_AT_ONCE / sizeof(float),
                        copy_pieces, &(struct copying){to, from, bytes});
}

static void close_cpu(struct backend *backend)
{
    struct cpu *cpu = cpu_of(backend);
    cpu_weights_free(&cpu->weights);
    threads_destroy(cpu->threads);
    arena_destroy(&cpu->scratch);
    free(cpu);
}

static void renew(struct backend *backend, const float *values, size_t n)
{
    cpu_weights_renew(&cpu_of(backend)->weights, values, n);
}

static size_t memory_left(struct backend *backend)
{
    (void)backend;
    return SIZE_MAX;
}

#define ENTRY(operation) .operation = cpu_##operation,
static const struct backend_ops cpu_ops = {
    .name = "cpu",
    BACKEND_OPERATIONS(ENTRY).arena_create = create_arena,
    .arena_destroy = destroy_arena,
    .memory_left = memory_left,
    .upload = upload,
    .download = download,
    .zero = zero,
    .copy = copy,
    .staging_open = cpu_staging_open,
    .staging_acquire = cpu_staging_acquire,
    .staging_send = cpu_staging_send,
    .staging_receive = cpu_staging_receive,
    .staging_release = cpu_staging_release,
    .staging_close = cpu_staging_close,
    .fetch_open = cpu_fetch_open,
    .fetch_copy = cpu_fetch_copy,
    .fetch_send = cpu_fetch_send,
    .fetch_take = cpu_fetch_take,
    .fetch_close = cpu_fetch_close,
    .branches = cpu_branches,
    .record = cpu_record,
    .replay = cpu_replay,
    .recording_destroy = cpu_recording_destroy,
    .bind = cpu_bind,
    .process_group_create = cpu_process_group_create,
    .all_reduce = cpu_all_reduce,
    .process_group_abort = cpu_process_group_abort,
    .process_group_destroy = cpu_process_group_destroy,
    .close = close_cpu,
};

static void describe(struct cpu *cpu)
{
    char library[48], kernels[64];
    product_library(library, sizeof library);
    if (cpu->bf16 != NULL)
        snprintf(kernels, sizeof kernels, "%s, bf16 on %s", cpu->vector->name, cpu->bf16->name);
    else
        snprintf(kernels, sizeof kernels, "%s", cpu->vector->name);
    snprintf(cpu->description, sizeof cpu->description, "cpu (%s, %zu thread%s, %s)", kernels,
             threads_count(cpu->threads), threads_count(cpu->threads) == 1 ? "" : "s", library);
    snprintf(cpu->arithmetic, sizeof cpu->arithmetic, "cpu %s %s%s%s", cpu->vector->name, library,
             cpu->bf16 != NULL ? " " : "", cpu->bf16 != NULL ? cpu->bf16->name : "");
}

static status choose_kernels(struct cpu *cpu, enum precision precision, struct error *error)
{
    struct cpu_instructions chosen;
    TRY(cpu_instructions_choose(&chosen, error));
    if (precision == PRECISION_BF16 && chosen.bf16 == NULL)
        return error_set(error, ERROR_DEVICE,
                         "cpu backend: precision bf16 needs a processor with AMX or AVX-512 BF16, %s %s; set "
                         "run.precision=f32",
                         chosen.limited ? "and MTIL_ISA allows no more than" : "and the best that this one has is",
                         chosen.name);
    if (chosen.limited)
        product_limit(chosen.vector->name);
    cpu->vector = chosen.vector;
    cpu->bf16 = precision == PRECISION_BF16 ? chosen.bf16 : NULL;
    return OK;
}

status cpu_backend_open(struct backend **backend, size_t threads, enum precision precision, struct error *error)
{
    struct cpu *cpu = xcalloc(1, sizeof *cpu);
    cpu->backend = (struct backend){.ops = &cpu_ops,
                                    .context = cpu,
                                    .description = cpu->description,
                                    .arithmetic = cpu->arithmetic,
                                    .precision = precision,
                                    .renew = renew,
                                    .forget = renew};
    status result = choose_kernels(cpu, precision, error);
    if (result == OK)
        result = threads_create(&cpu->threads, threads, error);
    if (result == OK)
        result = arena_create(&cpu->scratch, 0, "scratch", error);
    if (result != OK) {
        close_cpu(&cpu->backend);
        return result;
    }
    describe(cpu);
    *backend = &cpu->backend;
    return OK;
}

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include "core/alloc.h"
#include "models/cpu/cpu.h"

/* ---- instruction sets ---- */

extern const struct vector_kernels vector_kernels_baseline;
extern const struct bf16_kernels bf16_kernels_portable;
#if defined(__x86_64__)
extern const struct vector_kernels vector_kernels_avx2, vector_kernels_avx512;
extern const struct bf16_kernels bf16_kernels_amx, bf16_kernels_avx512bf16;

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx512bf16(void)
{
    unsigned a, b, c, d;
    return has_avx512() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) != 0;
}

/* Linux gives a process the tiles' registers on request. */
static bool has_amx(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, AMX_BF16 = 22, AMX_TILE = 24 };
    unsigned a, b, c, d;
    return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> AMX_BF16 & 1) != 0 &&
           (d >> AMX_TILE & 1) != 0 && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#endif

/* Best first; "portable" is never chosen unasked. */
struct level {
    const char *name;
    const struct vector_kernels *vector;
    const struct bf16_kernels *bf16; /* NULL: it has no unit for them */
};
enum { LEVELS = 6 };

static size_t list_levels(struct level levels[LEVELS])
{
    size_t count = 0;
#if defined(__x86_64__)
    if (has_amx())
        levels[count++] = (struct level){"amx", &vector_kernels_avx512, &bf16_kernels_amx};
    if (has_avx512bf16())
        levels[count++] = (struct level){"avx512bf16", &vector_kernels_avx512, &bf16_kernels_avx512bf16};
    if (has_avx512())
        levels[count++] = (struct level){"avx512", &vector_kernels_avx512, NULL};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        levels[count++] = (struct level){"avx2", &vector_kernels_avx2, NULL};
#endif
    levels[count++] = (struct level){"baseline", &vector_kernels_baseline, NULL};
    levels[count++] = (struct level){"portable", &vector_kernels_baseline, &bf16_kernels_portable};
    return count;
}

/* The choice among the compiled loops and products for this machine. MTIL_ISA names an instruction set below the best, as far as the
 * machine has it, or portable, which multiplies bf16 in plain C, far more slowly than f32. It is for tests, and for results that a
 * lesser machine can repeat. */
static status choose_level(struct level *chosen, bool *limited, struct error *error)
{
    struct level levels[LEVELS];
    const char *wanted = getenv("MTIL_ISA");
    size_t count = list_levels(levels), i = 0;
    *limited = wanted != NULL && wanted[0] != 0;
    while (*limited && i < count && strcmp(levels[i].name, wanted) != 0)
        i++;
    if (i == count)
        return error_set(error, ERROR_DEVICE,
                         "cpu backend: MTIL_ISA: expected an instruction set of this machine (%s is its best, baseline "
                         "and portable are on any), found \"%s\"",
                         levels[0].name, wanted);
    *chosen = levels[i];
    return OK;
}

/* Each table once. */
const struct vector_kernels *vector_kernels_at(size_t index)
{
    struct level levels[LEVELS];
    size_t count = list_levels(levels), seen = 0;
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || levels[i].vector != levels[i - 1].vector) && seen++ == index)
            return levels[i].vector;
    return NULL;
}

const struct bf16_kernels *bf16_kernels_at(size_t index)
{
    struct level levels[LEVELS];
    size_t count = list_levels(levels), seen = 0;
    for (size_t i = 0; i < count; i++)
        if (levels[i].bf16 != NULL && seen++ == index)
            return levels[i].bf16;
    return NULL;
}

/* ---- memory ---- */

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
    return arena_create(arena, limit, name, error);
}

static void destroy_arena(struct backend *backend, struct arena *arena)
{
    arena_destroy(arena);
}

static status upload(struct backend *backend, void *device, const void *host, size_t bytes, struct error *error)
{
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
    const struct copying *o = operation;
    size_t from = first * COPIED_AT_ONCE, to = last * COPIED_AT_ONCE < o->bytes ? last * COPIED_AT_ONCE : o->bytes;
    memcpy(o->to + from, o->from + from, to - from);
}

static status copy(struct backend *backend, void *to, const void *from, size_t bytes, struct error *error)
{
    return cpu_run_rows(cpu_of(backend), (bytes + COPIED_AT_ONCE - 1) / COPIED_AT_ONCE, COPIED_AT_ONCE / sizeof(float),
                        copy_pieces, &(struct copying){to, from, bytes});
}

/* ---- batches: operations read staged data where the host writes it; nothing is copied, and nothing is recorded ---- */

static uint8_t *slot_of(const struct transfer_queue *queue, uint64_t number)
{
    return (uint8_t *)queue->owner + number % TRANSFER_SLOTS * queue->bytes;
}

static status queue_open(struct backend *backend, struct transfer_queue *queue, enum transfer direction, size_t bytes,
                         struct error *error)
{
    *queue = (struct transfer_queue){
        .direction = direction, .bytes = bytes, .owner = malloc(array_size(bytes, TRANSFER_SLOTS))};
    return queue->owner != NULL ? OK
                                : error_set(error, ERROR_MEMORY, "memory: no %d buffers of %zu bytes for %s",
                                            TRANSFER_SLOTS, bytes, direction == TO_DEVICE ? "batches" : "results");
}

static void queue_close(struct backend *backend, struct transfer_queue *queue)
{
    free(queue->owner);
    *queue = (struct transfer_queue){0};
}

static status staging_acquire(struct backend *backend, struct transfer_queue *queue, void **host, struct error *error)
{
    assert(queue->sent - queue->released < TRANSFER_SLOTS);
    *host = slot_of(queue, queue->sent);
    return OK;
}

static status staging_send(struct backend *backend, struct transfer_queue *queue, size_t bytes, struct error *error)
{
    assert(bytes <= queue->bytes);
    queue->sent++;
    return OK;
}

static status staging_receive(struct backend *backend, struct transfer_queue *queue, const void **device,
                              struct error *error)
{
    assert(queue->received < queue->sent && queue->received == queue->released);
    *device = slot_of(queue, queue->received++);
    return OK;
}

static status staging_release(struct backend *backend, struct transfer_queue *queue, struct error *error)
{
    assert(queue->released < queue->received);
    queue->released++;
    return OK;
}

static status fetch_copy(struct backend *backend, struct transfer_queue *queue, const void *device, size_t bytes,
                         struct error *error)
{
    assert(queue->sent - queue->received < TRANSFER_SLOTS && bytes <= queue->bytes - queue->filled);
    memcpy(slot_of(queue, queue->sent) + queue->filled, device, bytes);
    queue->filled += bytes;
    return OK;
}

static status fetch_send(struct backend *backend, struct transfer_queue *queue, struct error *error)
{
    queue->sent++;
    queue->filled = 0;
    return OK;
}

static status fetch_take(struct backend *backend, struct transfer_queue *queue, const void **host, struct error *error)
{
    assert(queue->received < queue->sent);
    *host = slot_of(queue, queue->received++);
    return OK;
}

/* ---- order ---- */

static status run_branches(struct backend *backend, const struct branches *branches, struct error *error)
{
    for (size_t i = 0; i < sizeof branches->list / sizeof *branches->list; i++)
        TRY(branches->list[i].body(branches->list[i].context, error));
    return OK;
}

static status record(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                     struct error *error)
{
    recording->owner = NULL;
    return body(context, error);
}

static status replay(struct backend *backend, const struct recording *recording, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT, "cpu backend: nothing was recorded that could be replayed");
}

static void destroy_recording(struct backend *backend, struct recording *recording)
{
    recording->owner = NULL;
}

/* ---- process groups: ranks meet at a barrier, each sums its part of the values over all ranks in their order, and they meet again ---- */

struct barrier {
    pthread_mutex_t mutex;
    pthread_cond_t complete;
    size_t size, arrived;
    uint64_t number;
    bool aborted;
    void *values[]; /* of each rank */
};

static status bind_thread(struct backend *backend, struct error *error)
{
    return OK;
}

static status process_group_create(struct backend *const *ranks, struct process_group *group, struct error *error)
{
    struct barrier *barrier = xcalloc(1, sizeof *barrier + group->size * sizeof *barrier->values);
    barrier->size = group->size;
    pthread_mutex_init(&barrier->mutex, NULL);
    pthread_cond_init(&barrier->complete, NULL);
    group->owner = barrier;
    return OK;
}

/* False when the group was aborted. */
static bool meet(struct barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    uint64_t number = barrier->number;
    if (++barrier->arrived == barrier->size) {
        barrier->arrived = 0;
        barrier->number++;
        pthread_cond_broadcast(&barrier->complete);
    }
    while (barrier->number == number && !barrier->aborted)
        pthread_cond_wait(&barrier->complete, &barrier->mutex);
    bool met = barrier->number != number;
    pthread_mutex_unlock(&barrier->mutex);
    return met;
}

static void reduce_floats(const struct barrier *barrier, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        float total = ((const float *)barrier->values[0])[i];
        for (size_t m = 1; m < barrier->size; m++)
            total += ((const float *)barrier->values[m])[i];
        for (size_t m = 0; m < barrier->size; m++)
            ((float *)barrier->values[m])[i] = total;
    }
}

static void reduce_integers(const struct barrier *barrier, enum reduction reduction, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        int32_t total = ((const int32_t *)barrier->values[0])[i];
        for (size_t m = 1; m < barrier->size; m++) {
            int32_t value = ((const int32_t *)barrier->values[m])[i];
            total = reduction == SUM_INTEGERS ? total + value : value > total ? value : total;
        }
        for (size_t m = 0; m < barrier->size; m++)
            ((int32_t *)barrier->values[m])[i] = total;
    }
}

static status all_reduce(struct backend *backend, const struct all_reduce *o, struct error *error)
{
    struct barrier *barrier = o->group->owner;
    size_t first = o->rank * o->n / barrier->size, last = (o->rank + 1) * o->n / barrier->size;
    assert(o->rank < barrier->size);
    barrier->values[o->rank] = o->values;
    bool met = meet(barrier);
    if (met && o->reduction == SUM_FLOATS)
        reduce_floats(barrier, first, last);
    else if (met)
        reduce_integers(barrier, o->reduction, first, last);
    return met && meet(barrier) ? OK : error_set(error, ERROR_STOPPED, "cpu backend: the process group was aborted");
}

static void process_group_abort(struct backend *backend, struct process_group *group)
{
    struct barrier *barrier = group->owner;
    pthread_mutex_lock(&barrier->mutex);
    barrier->aborted = true;
    pthread_cond_broadcast(&barrier->complete);
    pthread_mutex_unlock(&barrier->mutex);
}

static void process_group_destroy(struct backend *backend, struct process_group *group)
{
    struct barrier *barrier = group->owner;
    if (barrier == NULL)
        return;
    pthread_cond_destroy(&barrier->complete);
    pthread_mutex_destroy(&barrier->mutex);
    free(barrier);
    *group = (struct process_group){0};
}

/* ---- the table ---- */

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
    return SIZE_MAX;
}

/* Carries out an operation and gives back its scratch memory, also after a failure. */
#define RUN(operation)                                                                                                 \
    static status run_##operation(struct backend *backend, const struct operation *o, struct error *error)             \
    {                                                                                                                  \
        struct cpu *cpu = cpu_of(backend);                                                                             \
        struct arena_mark mark = arena_mark(&cpu->scratch);                                                            \
        status result = cpu_##operation(cpu, o, error);                                                                \
        arena_release(&cpu->scratch, mark);                                                                            \
        return result;                                                                                                 \
    }
BACKEND_OPERATIONS(RUN)

#define ENTRY(operation) .operation = run_##operation,
static const struct backend_ops cpu_ops = {
    .name = "cpu",
    BACKEND_OPERATIONS(ENTRY).arena_create = create_arena,
    .arena_destroy = destroy_arena,
    .memory_left = memory_left,
    .upload = upload,
    .download = download,
    .zero = zero,
    .copy = copy,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .staging_acquire = staging_acquire,
    .staging_send = staging_send,
    .staging_receive = staging_receive,
    .staging_release = staging_release,
    .fetch_copy = fetch_copy,
    .fetch_send = fetch_send,
    .fetch_take = fetch_take,
    .branches = run_branches,
    .record = record,
    .replay = replay,
    .recording_destroy = destroy_recording,
    .bind = bind_thread,
    .process_group_create = process_group_create,
    .all_reduce = all_reduce,
    .process_group_abort = process_group_abort,
    .process_group_destroy = process_group_destroy,
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
    struct level chosen;
    bool limited;
    TRY(choose_level(&chosen, &limited, error));
    if (precision == PRECISION_BF16 && chosen.bf16 == NULL)
        return error_set(error, ERROR_DEVICE,
                         "cpu backend: precision bf16 needs a processor with AMX or AVX-512 BF16, %s %s; set "
                         "run.precision=f32",
                         limited ? "and MTIL_ISA allows no more than" : "and the best that this one has is",
                         chosen.name);
    if (limited)
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
    SCOPED(backend_close_at) struct backend *opened = &cpu->backend;
    TRY(choose_kernels(cpu, precision, error));
    TRY(threads_create(&cpu->threads, threads, error));
    TRY(arena_create(&cpu->scratch, 0, "scratch", error));
    describe(cpu);
    *backend = TAKE(opened);
    return OK;
}

#include "tests/bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/alloc.h"
#include "core/rng.h"

struct error error;

void must(status result)
{
    if (result == OK)
        return;
    fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, result == ERROR_DEVICE ? "skipped, " : "",
            error.message);
    exit(result == ERROR_DEVICE ? 77 : 1);
}

int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct figures figures_of(const double *values, size_t count)
{
    double sorted[MOST_FIGURES];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, ascending);
    return (struct figures){sorted[0], (sorted[(count - 1) / 2] + sorted[count / 2]) / 2, sorted[count - 1]};
}

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

struct effort effort_of(const char *command)
{
    double start = clock_seconds(), before = processor_seconds();
    int ended = system(command);
    return (struct effort){ended, clock_seconds() - start, processor_seconds() - before};
}

bool read_backend(struct backend_settings *settings, int count, char **words, int *i)
{
    bool backend = strcmp(words[*i], "--backend") == 0;
    if (*i + 1 >= count || (!backend && strcmp(words[*i], "--precision") != 0))
        return false;
    const char *value = words[++*i];
    if (backend)
        settings->name = value;
    else
        settings->precision = strcmp(value, "bf16") == 0 ? PRECISION_BF16 : PRECISION_F32;
    return true;
}

status bench_open(struct bench *b, const struct backend_settings *settings)
{
    *b = (struct bench){0};
    TRY(backend_open(&b->backend, settings, &error));
    b->ops = b->backend->ops;
    b->type = backend_operand_type(b->backend);
    TRY(b->ops->arena_create(b->backend, &b->arena, 0, "operands", &error));
    b->byte = memory(b, 1);
    return OK;
}

void bench_close(struct bench *b)
{
    b->ops->arena_destroy(b->backend, &b->arena);
    backend_close(b->backend);
}

/* --- On the device, in the arena --- */

void *memory(struct bench *b, size_t bytes)
{
    struct tensor tensor;
    must(tensor_take(&tensor, &b->arena, TENSOR_U8, "operand", 1, &bytes, &error));
    must(b->ops->zero(b->backend, tensor.data, bytes, &error));
    return tensor.data;
}

void *uploaded(struct bench *b, const void *values, size_t bytes)
{
    void *device = memory(b, bytes);
    must(b->ops->upload(b->backend, device, values, bytes, &error));
    return device;
}

void *drawn(struct bench *b, size_t n, enum tensor_type type)
{
    enum { DIFFERENT = 1 << 16 };
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    float *values = xmalloc(array_size(n, sizeof *values));
    for (size_t i = 0; i < n; i++)
        values[i] = i < DIFFERENT ? 2 * rng_uniform(&rng, i) - 1 : values[i - DIFFERENT];
    for (size_t i = 0; type == TENSOR_BF16 && i < n; i++) /* the upper halves */
        memcpy((uint16_t *)values + i, (uint16_t *)values + 2 * i + 1, sizeof(uint16_t));
    for (size_t i = 0; type == TENSOR_U8 && i < n; i++)
        ((uint8_t *)values)[i] = (uint8_t)(128 * (values[i] + 1));
    void *device = uploaded(b, values, n * tensor_type_size(type));
    free(values);
    return device;
}

int32_t *integers(struct bench *b, size_t n, size_t step, size_t modulus)
{
    int32_t *values = xmalloc(array_size(n, sizeof *values));
    for (size_t i = 0; i < n; i++)
        values[i] = (int32_t)(i * step % modulus);
    int32_t *device = uploaded(b, values, n * sizeof *values);
    free(values);
    return device;
}

struct tensor drawn_images(struct bench *b, size_t count, size_t side)
{
    return (struct tensor){.data = drawn(b, count * side * side * 3, TENSOR_U8),
                           .type = TENSOR_U8,
                           .rank = 4,
                           .shape = {count, side, side, 3}};
}

struct matrix operand(struct bench *b, size_t rows, size_t columns)
{
    return (struct matrix){drawn(b, rows * columns, b->type), b->type, rows, columns, columns};
}

struct gemm reference_product(struct bench *b, size_t rows)
{
    return (struct gemm){.a = operand(b, rows, PRODUCT_K),
                         .b = operand(b, PRODUCT_N, PRODUCT_K),
                         .transpose_b = true,
                         .frozen_b = true,
                         .out = operand(b, rows, PRODUCT_N)};
}

double reference_operations(size_t rows)
{
    return 2.0 * (double)rows * PRODUCT_N * PRODUCT_K;
}

/* --- Time --- */

void wait_for_device(const struct bench *b)
{
    char read;
    must(b->ops->download(b->backend, &read, b->byte, sizeof read, &error));
}

double seconds_of(const struct bench *b, void (*call)(void *context), void *context, size_t together)
{
    together = b->backend->asynchronous ? together : 1;
    wait_for_device(b);
    double start = clock_seconds();
    for (size_t i = 0; i < together; i++)
        call(context);
    wait_for_device(b);
    return (clock_seconds() - start) / (double)together;
}

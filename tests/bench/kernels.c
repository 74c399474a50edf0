/* Times every operation of models/backend.h that computes, at the sizes of a training step.
 *
 *     build/tests/kernels [--backend cpu|cuda] [--precision f32|bf16] [--filter WORD] [vit_b_16|mini|tiny …]
 *
 * Operations that multiply matrices have GFLOP/s, compared with a large product in the same run; others GB/s of what they
 * read and write, compared with vectors that no cache holds. Nothing is asserted: the figures are for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/operations.h"

static const struct size sizes[] = {
    {"vit_b_16", 16, 197, 768, 12, 3072, 224, 16, 100, 14, 77, 49408, 55, 2, 11, 64, 0.3, 2048},
    {"mini", 64, 65, 128, 2, 512, 64, 8, 10, 10, 32, 900, 22, 2, 11, 64, 0.3, 2048},
    {"tiny", 3, 5, 64, 1, 128, 16, 8, 4, 5, 8, 50, 5, 2, 2, 8, 0, 16},
};

/* --- Time --- */

/* An operation with its operands. */
struct timed {
    struct bench *bench;
    status (*call)(struct bench *b, const union operation *o);
    union operation operands;
};

static void call_once(void *context)
{
    const struct timed *t = context;
    must(t->call(t->bench, &t->operands));
}

/* The median of some calls. */
static double median_of(struct timed *t)
{
    enum { FEWEST = 3, MOST = 1000, TOGETHER = 10 };
    double times[MOST], begun = clock_seconds();
    size_t count = 0;
    call_once(t); /* for memory that is reached for the first time */
    while (count < FEWEST || (count < MOST && clock_seconds() - begun < t->bench->size->seconds))
        times[count++] = seconds_of(t->bench, call_once, t, TOGETHER);
    qsort(times, count, sizeof *times, ascending);
    return times[count / 2];
}

static double product_rate, memory_rate; /* of the machine at best, per second */

/* A large product, and a product of vectors that no cache holds. */
static void measure_machine(struct bench *b)
{
    size_t rows = b->size->reference, n = rows * 8000, bytes = n * sizeof(float);
    struct timed t = {b, timed_operations[OPERATION_gemm].call, {.gemm = reference_product(b, rows)}};
    product_rate = reference_operations(rows) / median_of(&t);
    arena_reset(&b->arena);
    t.call = timed_operations[OPERATION_multiply].call;
    t.operands.multiply =
        (struct multiply){.n = n, .a = memory(b, bytes), .b = memory(b, bytes), .out = memory(b, bytes)};
    memory_rate = 3.0 * (double)bytes / median_of(&t);
    arena_reset(&b->arena);
}

static void time_entry(struct bench *b, const struct entry *entry)
{
    struct timed t = {.bench = b, .call = entry->call};
    struct cost cost = entry->prepare(b, &t.operands);
    double seconds = median_of(&t);
    bool multiplies = cost.operations > 0;
    double rate = (multiplies ? cost.operations : cost.bytes) / seconds;
    printf("%-26s %12.1f %10.2f %-8s %5.0f%%\n", entry->name, seconds * 1e6, rate / 1e9,
           multiplies ? "GFLOP/s" : "GB/s", 100 * rate / (multiplies ? product_rate : memory_rate));
    arena_reset(&b->arena);
}

static void time_all(struct bench *b, const struct size *size, const char *filter)
{
    b->size = size;
    b->rows = size->images * size->positions;
    b->values = b->rows * size->width;
    b->slots = size->images * size->top_k;
    measure_machine(b);
    printf("%s, %s: product %.0f GFLOP/s, memory %.1f GB/s\n%-26s %12s %19s %6s\n", size->name, b->backend->description,
           product_rate / 1e9, memory_rate / 1e9, "operation", "µs", "rate", "share");
    for (size_t i = 0; i < OPERATIONS; i++)
        if (strstr(timed_operations[i].name, filter) != NULL)
            time_entry(b, &timed_operations[i]);
}

int main(int argc, char **argv)
{
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct bench b;
    struct backend_settings settings = {.name = "cpu"};
    const char *filter = "";
    bool wanted[SIZES] = {false}, any = false;
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < SIZES && strcmp(argv[i], sizes[k].name) != 0)
            k++;
        if (k < SIZES)
            any = wanted[k] = true;
        else if (i + 1 < argc && strcmp(argv[i], "--filter") == 0)
            filter = argv[++i];
        else if (!read_backend(&settings, argc, argv, &i)) {
            fprintf(stderr, "usage: kernels [--backend cpu|cuda] [--precision f32|bf16] [--filter WORD] "
                            "[vit_b_16|mini|tiny …]\n");
            return 2;
        }
    }
    must(bench_open(&b, &settings));
    for (size_t k = 0; k < SIZES; k++)
        if (any ? wanted[k] : k == 0)
            time_all(&b, &sizes[k], filter);
    bench_close(&b);
    return 0;
}

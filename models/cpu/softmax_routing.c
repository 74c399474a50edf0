/* Softmax top-k with capacity, and random partitions. */
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "models/cpu/cpu.h"
#include "models/routing.h"

/* Router r of matrices [T, d, E]. */
static struct matrix router_of(const void *matrices, size_t r, size_t width, size_t experts)
{
    return matrix_rows((float *)matrices + r * width * experts, width, experts);
}

/* Operands of a softmax over each row. logits [T, B, E]: of every router for every sample. */
struct choose_run {
    const struct route_softmax *o;
    const float *logits;
};

static void add_noise(const struct route_softmax *o, size_t b, float *z)
{
    const struct rng rng =
        o->noise == NULL ? rng_make(o->state->seed, RNG_ROUTER_NOISE, o->state->task, o->state->step) : (struct rng){0};
    for (size_t e = 0; e < o->experts; e++) {
        size_t at = b * o->experts + e;
        z[e] += o->noise_deviation *
                (o->noise != NULL ? ((const float *)o->noise)[at] : rng_normal(&rng, o->noise_base + at));
    }
}

static void choose_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct choose_run *run = operation;
    const struct route_softmax *o = run->o;
    for (size_t b = first; b < last; b++) {
        int32_t *chosen = o->dispatch->chosen + b * o->top_k;
        float *gates = o->dispatch->gates + b * o->top_k, *p = o->probabilities + b * o->experts;
        for (size_t k = 0; k < o->top_k; k++) {
            chosen[k] = -1;
            gates[k] = 0;
        }
        memset(p, 0, o->experts * sizeof *p);
        if (o->router[b] < 0)
            continue;
        memcpy(p, run->logits + ((size_t)o->router[b] * o->samples + b) * o->experts, o->experts * sizeof *p);
        if (o->training && o->noise_deviation > 0)
            add_noise(o, b, p);
        routing_top_k(p, o->experts, o->top_k, chosen); /* before the softmax makes equal ones */
        cpu->vector->softmax(o->experts, 1.0f, p, p);
        for (size_t k = 0; k < o->top_k; k++)
            gates[k] = p[chosen[k]];
    }
}

static void weigh_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    (void)cpu;
    const struct route_softmax *o = operation;
    for (size_t at = first * o->top_k; at < last * o->top_k; at += o->top_k) {
        if (o->aligned != ALIGN_NONE)
            routing_align(o->top_k, o->aligned == ALIGN_EACH, o->dispatch->slot + at, o->dispatch->gates + at,
                          o->weights + at);
        else
            memcpy(o->weights + at, o->dispatch->gates + at, o->top_k * sizeof *o->weights);
    }
}

status cpu_route_softmax(struct backend *backend, const struct route_softmax *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    size_t n = o->samples * o->experts;
    void *logits;
    TRY(cpu_scratch(cpu, o->routers * n * sizeof(float), &logits, error));
    for (size_t r = 0; r < o->routers && n > 0; r++)
        TRY(cpu_gemm(backend,
                     &(struct gemm){.a = matrix_rows((void *)o->x, o->samples, o->width),
                                    .b = router_of(o->routers_value, r, o->width, o->experts),
                                    .out = matrix_rows((float *)logits + r * n, o->samples, o->experts),
                                    .exact = true},
                     error));
    cpu_run_rows(cpu, o->samples, 8 * o->experts, choose_rows, &(struct choose_run){o, logits});
    cpu_sort_slots(o->dispatch, o->limit);
    if (o->weights != NULL)
        cpu_run_rows(cpu, o->samples, 4 * o->top_k, weigh_rows, o);
    if (o->training)
        cpu_count_selections(o->dispatch, o->counts, o->used, o->add_used, o->frozen);
    arena_release(&cpu->scratch, mark);
    return OK;
}

struct slopes_run {
    const struct route_softmax_backward *o;
    float *dz; /* [T, B, E] gradients of the logits, 0 for all routers but the sample's */
};

static void slope_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct slopes_run *run = operation;
    const struct route_softmax_backward *o = run->o;
    for (size_t b = first; b < last; b++) {
        for (size_t r = 0; r < o->routers; r++)
            memset(run->dz + (r * o->samples + b) * o->experts, 0, o->experts * sizeof *run->dz);
        if (o->router[b] < 0)
            continue;
        float *dz = run->dz + ((size_t)o->router[b] * o->samples + b) * o->experts;
        if (o->dprobabilities != NULL)
            memcpy(dz, o->dprobabilities + b * o->experts, o->experts * sizeof *dz);
        for (size_t i = b * o->top_k; i < (b + 1) * o->top_k; i++)
            if (o->dispatch->slot[i] >= 0)
                dz[o->dispatch->chosen[i]] += o->dgates[i];
        cpu->vector->softmax_backward(o->experts, 1.0f, o->probabilities + b * o->experts, dz, dz);
        for (size_t e = 0; e < o->experts; e++)
            dz[e] = routing_drop_tiny(dz[e]);
    }
}

status cpu_route_softmax_backward(struct backend *backend, const struct route_softmax_backward *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    size_t n = o->samples * o->experts;
    struct matrix x = matrix_rows((void *)o->x, o->samples, o->width), dx = matrix_rows(o->dx, o->samples, o->width);
    void *memory;
    TRY(cpu_scratch(cpu, o->routers * n * sizeof(float), &memory, error));
    struct slopes_run run = {o, memory};
    cpu_run_rows(cpu, o->samples, 8 * o->experts, slope_rows, &run);
    for (size_t r = 0; r < o->routers && n > 0; r++) {
        struct matrix dz = matrix_rows(run.dz + r * n, o->samples, o->experts);
        TRY(cpu_gemm(backend,
                     &(struct gemm){.a = x,
                                    .b = dz,
                                    .out = router_of(o->drouters, r, o->width, o->experts),
                                    .transpose_a = true,
                                    .accumulate = true,
                                    .exact = true},
                     error));
        if (o->dx != NULL)
            TRY(cpu_gemm(backend,
                         &(struct gemm){.a = dz,
                                        .b = router_of(o->routers_value, r, o->width, o->experts),
                                        .out = dx,
                                        .transpose_b = true,
                                        .accumulate = true,
                                        .exact = true},
                         error));
    }
    arena_release(&cpu->scratch, mark);
    return OK;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* Samples in a random order: numbers [samples] random ones with the sample below; returns how many take part. */
static size_t draw_order(const struct partition *o, uint64_t *numbers)
{
    struct rng rng = rng_make(o->state->seed, RNG_TOKENS, o->state->task, o->state->step);
    size_t n = 0;
    for (size_t b = 0; b < o->dispatch->samples; b++)
        if (o->router[b] >= 0)
            numbers[n++] = (uint64_t)rng_uint32(&rng, o->base + b) << 32 | b;
    qsort(numbers, n, sizeof *numbers, compare_numbers);
    return n;
}

status cpu_partition(struct backend *backend, const struct partition *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    const struct dispatch *d = o->dispatch;
    for (size_t b = 0; b < d->samples; b++) {
        d->chosen[b] = o->owner != NULL && o->router[b] >= 0 ? o->owner[b] : -1;
        d->gates[b] = o->router[b] >= 0;
    }
    if (o->owner == NULL) {
        void *numbers;
        TRY(cpu_scratch(cpu, d->samples * sizeof(uint64_t), &numbers, error));
        size_t n = draw_order(o, numbers);
        for (size_t rank = 0; rank < n; rank++)
            d->chosen[(uint32_t)((uint64_t *)numbers)[rank]] = routing_group(rank, n, d->experts);
    }
    cpu_sort_slots(d, 0);
    if (o->counts != NULL)
        cpu_count_selections(d, o->counts, o->used, o->add_used, o->frozen);
    arena_release(&cpu->scratch, mark);
    return OK;
}

/* Softmax top-k with capacity, random partitions, and the balance losses of noisy top-k and of softmax top-k. */
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
    const struct route_softmax *o = operation;
    for (size_t at = first * o->top_k; at < last * o->top_k; at += o->top_k) {
        if (o->aligned != ALIGN_NONE)
            routing_align(o->top_k, o->aligned == ALIGN_EACH, o->dispatch->slot + at, o->dispatch->gates + at,
                          o->weights + at);
        else
            memcpy(o->weights + at, o->dispatch->gates + at, o->top_k * sizeof *o->weights);
    }
}

status cpu_route_softmax(struct cpu *cpu, const struct route_softmax *o, struct error *error)
{
    struct backend *backend = &cpu->backend;
    size_t n = o->samples * o->experts;
    void *logits;
    TRY(cpu_scratch(cpu, o->routers * n * sizeof(float), &logits, error));
    for (size_t r = 0; r < o->routers && n > 0; r++)
        TRY(backend->ops->gemm(backend,
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

status cpu_route_softmax_backward(struct cpu *cpu, const struct route_softmax_backward *o, struct error *error)
{
    struct backend *backend = &cpu->backend;
    size_t n = o->samples * o->experts;
    struct matrix x = matrix_rows((void *)o->x, o->samples, o->width), dx = matrix_rows(o->dx, o->samples, o->width);
    void *memory;
    TRY(cpu_scratch(cpu, o->routers * n * sizeof(float), &memory, error));
    struct slopes_run run = {o, memory};
    cpu_run_rows(cpu, o->samples, 8 * o->experts, slope_rows, &run);
    for (size_t r = 0; r < o->routers && n > 0; r++) {
        struct matrix dz = matrix_rows(run.dz + r * n, o->samples, o->experts);
        TRY(backend->ops->gemm(backend,
                               &(struct gemm){.a = x,
                                              .b = dz,
                                              .out = router_of(o->drouters, r, o->width, o->experts),
                                              .transpose_a = true,
                                              .accumulate = true,
                                              .exact = true},
                               error));
        if (o->dx != NULL)
            TRY(backend->ops->gemm(backend,
                                   &(struct gemm){.a = dz,
                                                  .b = router_of(o->routers_value, r, o->width, o->experts),
                                                  .out = dx,
                                                  .transpose_b = true,
                                                  .accumulate = true,
                                                  .exact = true},
                                   error));
    }
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

status cpu_partition(struct cpu *cpu, const struct partition *o, struct error *error)
{
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
    return OK;
}

/* ---- the balance losses ---- */

struct balance_run {
    const struct balance *o;
    int32_t *next;             /* [B] the expert of the (K + 1)-th largest z; −1: none */
    float *probability;        /* [B, E] of being chosen; 0 where all or none are */
    double *importance, *load; /* [E], then their slopes */
};

/* The logit that expert e has to exceed. */
static float threshold_of(const struct balance *o, const float *z, const int32_t *chosen, int32_t next, size_t e)
{
    size_t top_k = o->dispatch->top_k;
    return z[routing_is_chosen(chosen, top_k, e) ? next : chosen[top_k - 1]];
}

static void find_probabilities(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct balance_run *run = operation;
    const struct balance *o = run->o;
    size_t experts = o->dispatch->experts, top_k = o->dispatch->top_k;
    for (size_t b = first; b < last; b++) {
        const int32_t *chosen = o->dispatch->chosen + b * top_k;
        const float *z = o->logits + b * experts, *u = o->noise_logits + b * experts, *n = o->drawn + b * experts;
        float *p = run->probability + b * experts;
        run->next[b] = chosen[0] < 0 ? -1 : routing_next(z, experts, top_k, chosen);
        memset(p, 0, experts * sizeof *p);
        for (size_t e = 0; run->next[b] >= 0 && e < experts; e++)
            p[e] = routing_probability(routing_margin(z[e], routing_deviation(u[e], o->epsilon), n[e],
                                                      threshold_of(o, z, chosen, run->next[b], e)));
    }
}

static void add_up(const struct balance_run *run)
{
    const struct dispatch *d = run->o->dispatch;
    memset(run->importance, 0, 2 * d->experts * sizeof *run->importance);
    for (size_t i = 0; i < d->samples * d->top_k; i++)
        if (d->chosen[i] >= 0)
            run->importance[d->chosen[i]] += (double)d->gates[i];
    for (size_t b = 0; b < d->samples; b++)
        for (size_t e = 0; e < d->experts; e++)
            run->load[e] += (double)run->probability[b * d->experts + e];
}

static void find_gradients(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct balance_run *run = operation;
    const struct balance *o = run->o;
    size_t experts = o->dispatch->experts, top_k = o->dispatch->top_k;
    for (size_t b = first; b < last; b++) {
        const int32_t *chosen = o->dispatch->chosen + b * top_k;
        int32_t next = run->next[b];
        float *z = o->logits + b * experts, *du = o->dnoise_logits + b * experts;
        const float *u = o->noise_logits + b * experts, *n = o->drawn + b * experts;
        for (size_t k = 0; k < top_k; k++)
            o->dgates[b * top_k + k] = chosen[k] >= 0 ? (float)run->importance[chosen[k]] : 0;
        memset(du, 0, experts * sizeof *du);
        if (next < 0) {
            memset(z, 0, experts * sizeof *z);
            continue;
        }
        float kth = z[chosen[top_k - 1]], after = z[next], from_kth = 0, from_after = 0;
        for (size_t e = 0; e < experts; e++) {
            bool in = routing_is_chosen(chosen, top_k, e);
            struct routing_slopes slopes = routing_slopes(z[e], u[e], n[e], in ? after : kth, o->epsilon);
            float load = (float)run->load[e];
            *(in ? &from_after : &from_kth) -= load * slopes.clean;
            z[e] = load * slopes.clean;
            du[e] = load * slopes.noise;
        }
        const int32_t thresholds[] = {chosen[top_k - 1], next};
        const float from[] = {from_kth, from_after};
        for (int i = 0; i < 2; i++) {
            z[thresholds[i]] += from[i];
            du[thresholds[i]] += from[i] * n[thresholds[i]] * routing_sigmoid(u[thresholds[i]]);
        }
    }
}

status cpu_balance(struct cpu *cpu, const struct balance *o, struct error *error)
{
    struct balance_run run = {.o = o};
    size_t samples = o->dispatch->samples, experts = o->dispatch->experts;
    TRY(cpu_scratch(cpu, samples * sizeof *run.next, &run.next, error));
    TRY(cpu_scratch(cpu, samples * experts * sizeof *run.probability, &run.probability, error));
    TRY(cpu_scratch(cpu, 2 * experts * sizeof *run.importance, &run.importance, error));
    run.load = run.importance + experts;
    cpu_run_rows(cpu, samples, 32 * experts, find_probabilities, &run);
    add_up(&run);
    double weight = (double)o->weight, variation = routing_variation(run.importance, experts, weight) +
                                                   routing_variation(run.load, experts, weight);
    *o->loss += (float)(weight * variation);
    if (o->unweighted != NULL)
        *o->unweighted += (float)((double)o->share * variation);
    cpu_run_rows(cpu, samples, 32 * experts, find_gradients, &run);
    return OK;
}

/* --- Of softmax top-k --- */

struct softmax_run {
    const struct balance_softmax *o;
    double
        *load; /* [E] Σ p of each expert; then what is added to the gradient along p (WideNet) or along a kept gate */
};

enum { COLUMNS = 16 }; /* experts that one job adds up: neighbours in memory */

static void add_probabilities(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct softmax_run *run = operation;
    const struct balance_softmax *o = run->o;
    size_t experts = o->dispatch->experts, end = last * COLUMNS < experts ? last * COLUMNS : experts;
    for (size_t b = 0; b < o->dispatch->samples; b++)
        for (size_t e = first * COLUMNS; e < end; e++)
            run->load[e] += (double)o->probabilities[b * experts + e];
}

/* E · Σ m P; load becomes weight · E · m / n */
static double widenet_loss(struct cpu *cpu, const struct softmax_run *run, int32_t *sent)
{
    const struct dispatch *d = run->o->dispatch;
    size_t samples = 0;
    for (size_t i = 0; i < d->samples * d->top_k; i++)
        if (d->chosen[i] >= 0) {
            sent[d->chosen[i]]++;
            samples += i % d->top_k == 0;
        }
    cpu_run_rows(cpu, (d->experts + COLUMNS - 1) / COLUMNS, COLUMNS * d->samples, add_probabilities, run);
    double loss = 0, n = samples > 0 ? (double)samples : 1;
    for (size_t e = 0; e < d->experts; e++) {
        double slope = (double)d->experts * sent[e] / n / n;
        loss += slope * run->load[e];
        run->load[e] = (double)run->o->weight * slope;
    }
    return loss;
}

static double rmoe_loss(const struct softmax_run *run)
{
    const struct dispatch *d = run->o->dispatch;
    for (size_t i = 0; i < d->samples * d->top_k; i++)
        if (d->chosen[i] >= 0)
            run->load[d->chosen[i]] += (double)d->gates[i]; /* 0 beyond the limit */
    return routing_population_variation(run->load, d->experts, (double)run->o->weight);
}

static void probability_gradients(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct softmax_run *run = operation;
    const struct dispatch *d = run->o->dispatch;
    for (size_t b = first; b < last; b++) {
        float *dp = run->o->dprobabilities + b * d->experts;
        const int32_t *chosen = d->chosen + b * d->top_k, *slot = d->slot + b * d->top_k;
        bool all = run->o->kind == BALANCE_WIDENET && chosen[0] >= 0;
        for (size_t e = 0; e < d->experts; e++)
            dp[e] = all ? (float)run->load[e] : 0;
        for (size_t k = 0; run->o->kind == BALANCE_RMOE && k < d->top_k; k++)
            if (slot[k] >= 0)
                dp[chosen[k]] = (float)run->load[chosen[k]];
    }
}

status cpu_balance_softmax(struct cpu *cpu, const struct balance_softmax *o, struct error *error)
{
    struct softmax_run run = {.o = o};
    size_t experts = o->dispatch->experts;
    void *sent, *load;
    TRY(cpu_scratch(cpu, experts * sizeof(int32_t), &sent, error));
    TRY(cpu_scratch(cpu, experts * sizeof(double), &load, error));
    memset(sent, 0, experts * sizeof(int32_t));
    memset(load, 0, experts * sizeof(double));
    run.load = load;
    double loss = o->kind == BALANCE_WIDENET ? widenet_loss(cpu, &run, sent) : rmoe_loss(&run);
    *o->loss += (float)((double)o->weight * loss);
    if (o->unweighted != NULL)
        *o->unweighted += (float)((double)o->share * loss);
    cpu_run_rows(cpu, o->dispatch->samples, experts, probability_gradients, &run);
    return OK;
}

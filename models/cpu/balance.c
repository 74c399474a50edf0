/* The balance losses of noisy top-k and of softmax top-k. */
#include <string.h>

#include "models/cpu/cpu.h"
#include "models/routing.h"

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
    (void)cpu;
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
    (void)cpu;
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

status cpu_balance(struct backend *backend, const struct balance *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
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
    arena_release(&cpu->scratch, mark);
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
    (void)cpu;
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
    (void)cpu;
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

status cpu_balance_softmax(struct backend *backend, const struct balance_softmax *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
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
    arena_release(&cpu->scratch, mark);
    return OK;
}

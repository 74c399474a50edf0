/* Noisy top-k routing of samples to experts; softmax_routing.c has the other one. */
#include <string.h>

#include "core/rng.h"
#include "models/cpu/cpu.h"
#include "models/routing.h"

static const float *first_position(const void *x, size_t b, size_t positions, size_t width)
{
    return (const float *)x + b * positions * width;
}

/* out [E] = Σ_i x_i matrix[i, :] */
static void project(struct cpu *cpu, size_t width, size_t experts, const float *x, const float *matrix, float *out)
{
    memset(out, 0, experts * sizeof *out);
    for (size_t i = 0; i < width; i++)
        cpu->vector->axpy(experts, x[i], matrix + i * experts, out);
}

/* With more experts than this, samples are projected together and noise is computed by vector kernels: other bits, and a
 * time that hardly shows in a step. */
enum { FEW_EXPERTS = 128 };

static bool has_many_experts(const struct route *o)
{
    return o->experts > FEW_EXPERTS;
}

/* out [B, E]: x₀ of each sample times its router's matrix; rows without a router are left. */
static status project_together(struct cpu *cpu, const struct route *o, const void *matrices, float *out,
                               struct error *error)
{
    struct backend *backend = &cpu->backend;
    struct matrix x = matrix_rows((void *)o->x, o->batch, o->width);
    x.stride = o->positions * o->width;
    void *rows;
    TRY(cpu_scratch(cpu, o->batch * o->experts * sizeof(float), &rows, error));
    for (size_t r = 0; r < o->routers; r++) {
        bool computed = false;
        struct matrix router = matrix_rows((float *)matrices + r * o->width * o->experts, o->width, o->experts);
        for (size_t b = 0; b < o->batch; b++) {
            if (o->router[b] != (int32_t)r)
                continue;
            if (!computed)
                TRY(backend->ops->gemm(
                    backend,
                    &(struct gemm){.a = x, .b = router, .out = matrix_rows(rows, o->batch, o->experts), .exact = true},
                    error));
            computed = true;
            memcpy(out + b * o->experts, (const float *)rows + b * o->experts, o->experts * sizeof *out);
        }
    }
    return OK;
}

struct route_run {
    const struct route *o;
    float *logits; /* [B, E] scratch */
};

static void draw_noise(struct cpu *cpu, const struct route *o, size_t b, float *drawn)
{
    uint64_t base = o->noise_base + b * o->experts;
    if (o->noise != NULL) {
        memcpy(drawn, (const float *)o->noise + b * o->experts, o->experts * sizeof *drawn);
    } else if (has_many_experts(o)) {
        const uint32_t key[2] = {(uint32_t)o->state->seed, (uint32_t)(o->state->seed >> 32)};
        const uint32_t counter[2] = {o->state->step, philox_stream(RNG_ROUTER_NOISE, o->state->task)};
        cpu->vector->normals(o->experts, base, key, counter, drawn);
    } else {
        struct rng rng = rng_make(o->state->seed, RNG_ROUTER_NOISE, o->state->task, o->state->step);
        for (size_t e = 0; e < o->experts; e++)
            drawn[e] = rng_normal(&rng, base + e);
    }
}

static void add_noise(struct cpu *cpu, const struct route *o, size_t b, float *z)
{
    const float *logits = o->noise_logits + b * o->experts;
    float *drawn = o->drawn + b * o->experts;
    draw_noise(cpu, o, b, drawn);
    if (has_many_experts(o) && cpu->vector->finite(o->experts, logits))
        cpu->vector->add_noise(o->experts, o->epsilon, logits, drawn, z);
    else
        for (size_t e = 0; e < o->experts; e++)
            z[e] += drawn[e] * routing_deviation(logits[e], o->epsilon);
}

static void route_samples(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct route_run *run = operation;
    const struct route *o = run->o;
    for (size_t b = first; b < last; b++) {
        int32_t *chosen = o->dispatch->chosen + b * o->top_k;
        float *gates = o->dispatch->gates + b * o->top_k;
        if (o->router[b] < 0) {
            for (size_t k = 0; k < o->top_k; k++) {
                chosen[k] = -1;
                gates[k] = 0;
            }
            continue;
        }
        size_t offset = (size_t)o->router[b] * o->width * o->experts;
        const float *x0 = first_position(o->x, b, o->positions, o->width);
        float *z = run->logits + b * o->experts; /* o->logits, or scratch */
        if (!has_many_experts(o)) {
            project(cpu, o->width, o->experts, x0, (const float *)o->routers_value + offset, z);
            if (o->training)
                project(cpu, o->width, o->experts, x0, (const float *)o->noise_value + offset,
                        o->noise_logits + b * o->experts);
        }
        if (o->training)
            add_noise(cpu, o, b, z);
        routing_top_k(z, o->experts, o->top_k, chosen);
        routing_gates(z, o->experts, chosen, o->top_k, gates);
    }
}

status cpu_route(struct cpu *cpu, const struct route *o, struct error *error)
{
    struct route_run run = {.o = o};
    void *memory;
    TRY(cpu_scratch(cpu, o->batch * o->experts * sizeof(float), &memory, error));
    run.logits = o->logits != NULL ? o->logits : memory;
    if (has_many_experts(o)) {
        TRY(project_together(cpu, o, o->routers_value, run.logits, error));
        if (o->training)
            TRY(project_together(cpu, o, o->noise_value, o->noise_logits, error));
    }
    cpu_run_rows(cpu, o->batch, 4 * o->width * o->experts, route_samples, &run);
    cpu_sort_slots(o->dispatch, 0);
    if (o->training)
        cpu_count_selections(o->dispatch, o->counts, o->used, o->add_used, o->frozen);
    return OK;
}

struct route_backward_run {
    const struct route_backward *o;
    float *dz, *du; /* [B, K] gradients of the chosen logits and of their noise logits */
};

static void chosen_gradients(const struct route_backward_run *run)
{
    const struct route_backward *o = run->o;
    for (size_t b = 0; b < o->batch; b++) {
        size_t at = b * o->top_k, row = b * o->experts;
        const float *gates = o->dispatch->gates + at;
        float mean = routing_mean(o->top_k, gates, o->dgates + at);
        for (size_t k = 0; k < o->top_k; k++) {
            int32_t e = o->dispatch->chosen[at + k];
            run->dz[at + k] = e >= 0 ? routing_logit_gradient(gates[k], o->dgates[at + k], mean) : 0;
            run->du[at + k] = e >= 0 ? routing_noise_gradient(run->dz[at + k], o->noise_logits[row + (size_t)e],
                                                              o->drawn[row + (size_t)e])
                                     : 0;
        }
    }
}

/* Width coordinates [first, last): every sample in order. */
static void route_backward_coordinates(const struct route_backward_run *run, size_t first, size_t last)
{
    const struct route_backward *o = run->o;
    for (size_t b = 0; b < o->batch; b++) {
        const float *x0 = first_position(o->x, b, o->positions, o->width);
        float *dx0 = o->dx != NULL ? (float *)o->dx + b * o->positions * o->width : NULL;
        for (size_t k = 0; k < o->top_k; k++) {
            int32_t e = o->dispatch->chosen[b * o->top_k + k];
            if (e < 0)
                continue;
            float dz = run->dz[b * o->top_k + k], du = run->du[b * o->top_k + k];
            size_t column = (size_t)o->router[b] * o->width * o->experts + (size_t)e;
            for (size_t i = first; i < last; i++) {
                size_t at = column + i * o->experts;
                ((float *)o->drouters)[at] += x0[i] * dz;
                ((float *)o->dnoise)[at] += x0[i] * du;
                if (dx0 != NULL)
                    dx0[i] += dz * ((const float *)o->routers_value)[at] + du * ((const float *)o->noise_value)[at];
            }
        }
    }
}

/* A few coordinates at a time, whose routers over many experts stay in the caches from sample to sample. */
static void route_backward_width(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    enum { COORDINATES = 8 };
    for (size_t i = first; i < last; i += COORDINATES)
        route_backward_coordinates(operation, i, last - i < COORDINATES ? last : i + COORDINATES);
}

/* Every expert of every sample, for width coordinates [first, last). */
static void spread_gradients(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct route_backward *o = operation;
    size_t e = o->experts;
    for (size_t b = 0; b < o->batch; b++) {
        if (o->router[b] < 0)
            continue;
        const float *x0 = first_position(o->x, b, o->positions, o->width), *dz = o->dlogits + b * e,
                    *du = o->dnoise_logits + b * e;
        float *dx0 = o->dx != NULL ? (float *)o->dx + b * o->positions * o->width : NULL;
        for (size_t i = first; i < last; i++) {
            size_t at = ((size_t)o->router[b] * o->width + i) * e;
            cpu->vector->axpy(e, x0[i], dz, (float *)o->drouters + at);
            cpu->vector->axpy(e, x0[i], du, (float *)o->dnoise + at);
            if (dx0 != NULL)
                dx0[i] += cpu->vector->dot(e, dz, (const float *)o->routers_value + at) +
                          cpu->vector->dot(e, du, (const float *)o->noise_value + at);
        }
    }
}

status cpu_route_backward(struct cpu *cpu, const struct route_backward *o, struct error *error)
{
    struct route_backward_run run = {.o = o};
    size_t choices = o->batch * o->top_k;
    TRY(cpu_scratch(cpu, 2 * choices * sizeof(float), &run.dz, error));
    run.du = run.dz + choices;
    chosen_gradients(&run);
    cpu_run_rows(cpu, o->width, 8 * choices, route_backward_width, &run);
    if (o->dlogits != NULL)
        cpu_run_rows(cpu, o->width, 8 * o->batch * o->experts, spread_gradients, o);
    return OK;
}

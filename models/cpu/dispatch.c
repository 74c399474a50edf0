/* Routing of samples to experts, and combining the experts' outputs. */
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
static status project_together(struct backend *backend, const struct route *o, const void *matrices, float *out,
                               struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct matrix x = matrix_rows((void *)o->x, o->batch, o->width);
    x.stride = o->positions * o->width;
    void *rows;
    TRY(cpu_scratch(cpu, o->batch * o->experts * sizeof(float), &rows, error));
    for (size_t r = 0; r < o->routers; r++) {
        bool computed = false;
        for (size_t b = 0; b < o->batch; b++) {
            if (o->router[b] != (int32_t)r)
                continue;
            if (!computed)
                TRY(cpu_gemm(backend,
                             &(struct gemm){
                                 .a = x,
                                 .b = matrix_rows((float *)matrices + r * o->width * o->experts, o->width, o->experts),
                                 .out = matrix_rows(rows, o->batch, o->experts),
                                 .exact = true},
                             error));
            computed = true;
            memcpy(out + b * o->experts, (const float *)rows + b * o->experts, o->experts * sizeof *out);
        }
    }
    arena_release(&cpu->scratch, mark);
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

/* Sets slot to −1 for choices without a slot and to 0 for the others. */
static void mark_kept(const struct dispatch *d, size_t limit)
{
    memset(d->offsets, 0, (d->experts + 1) * sizeof *d->offsets); /* choices seen of each expert */
    for (size_t k = 0; k < d->top_k; k++)
        for (size_t i = k; i < d->samples * d->top_k; i += d->top_k) {
            int32_t e = d->chosen[i];
            bool full = e >= 0 && limit > 0 && (size_t)d->offsets[e]++ >= limit;
            d->slot[i] = e < 0 || full ? -1 : 0;
            if (full)
                d->gates[i] *= 0; /* NaN stays */
        }
}

/* A counting sort. */
void cpu_sort_slots(const struct dispatch *d, size_t limit)
{
    size_t choices = d->samples * d->top_k;
    mark_kept(d, limit);
    memset(d->offsets, 0, (d->experts + 1) * sizeof *d->offsets);
    for (size_t i = 0; i < choices; i++)
        if (d->slot[i] >= 0)
            d->offsets[d->chosen[i] + 1]++;
    for (size_t e = 0; e < d->experts; e++)
        d->offsets[e + 1] += d->offsets[e];
    for (size_t i = 0; i < choices; i++) {
        if (d->slot[i] < 0)
            continue;
        int32_t slot = d->offsets[d->chosen[i]]++;
        d->slot[i] = slot;
        d->choice[slot] = (int32_t)i;
        d->sample[slot] = (int32_t)(i / d->top_k);
    }
    for (size_t e = d->experts; e > 0; e--)
        d->offsets[e] = d->offsets[e - 1];
    d->offsets[0] = 0;
}

void cpu_count_selections(const struct dispatch *d, int32_t *counts, int32_t *used, bool add_used,
                          const int32_t *frozen)
{
    if (used != NULL && !add_used)
        memset(used, 0, d->experts * sizeof *used);
    for (size_t i = 0; i < d->samples * d->top_k; i++) {
        int32_t e = d->chosen[i];
        if (e < 0)
            continue;
        if (used != NULL && (frozen == NULL || frozen[e] == 0))
            used[e] = 1;
        counts[e] += d->gates[i] > 0;
    }
}

status cpu_route(struct backend *backend, const struct route *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct route_run run = {.o = o};
    void *memory;
    TRY(cpu_scratch(cpu, o->batch * o->experts * sizeof(float), &memory, error));
    run.logits = o->logits != NULL ? o->logits : memory;
    if (has_many_experts(o)) {
        TRY(project_together(backend, o, o->routers_value, run.logits, error));
        if (o->training)
            TRY(project_together(backend, o, o->noise_value, o->noise_logits, error));
    }
    cpu_run_rows(cpu, o->batch, 4 * o->width * o->experts, route_samples, &run);
    cpu_sort_slots(o->dispatch, 0);
    if (o->training)
        cpu_count_selections(o->dispatch, o->counts, o->used, o->add_used, o->frozen);
    arena_release(&cpu->scratch, mark);
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
    (void)cpu;
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

status cpu_route_backward(struct backend *backend, const struct route_backward *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct route_backward_run run = {.o = o};
    size_t choices = o->batch * o->top_k;
    TRY(cpu_scratch(cpu, 2 * choices * sizeof(float), &run.dz, error));
    run.du = run.dz + choices;
    chosen_gradients(&run);
    cpu_run_rows(cpu, o->width, 8 * choices, route_backward_width, &run);
    if (o->dlogits != NULL)
        cpu_run_rows(cpu, o->width, 8 * o->batch * o->experts, spread_gradients, o);
    arena_release(&cpu->scratch, mark);
    return OK;
}

static size_t slots_of(const struct dispatch *dispatch)
{
    return (size_t)dispatch->offsets[dispatch->experts];
}

/* A row per sample or slot. */
static struct matrix values_of(enum tensor_type type, const void *data, size_t values)
{
    return (struct matrix){(void *)data, type, 0, values, values};
}

CPU_ROWS(dispatch_gather, slots_of(o->dispatch), o->rows_per_sample * o->width)
{
    size_t values = o->rows_per_sample * o->width;
    struct matrix x = values_of(o->x_type, o->x, values), out = values_of(o->out_type, o->out, values);
    out.rows = slots_of(o->dispatch);
    for (size_t s = first; s < last; s++)
        cpu_copy_row(cpu, x, (size_t)o->dispatch->sample[s], out, s);
}

CPU_ROWS(dispatch_combine, o->dispatch->samples, o->rows_per_sample * o->width)
{
    size_t values = o->rows_per_sample * o->width, top_k = o->dispatch->top_k;
    for (size_t b = first; b < last; b++)
        for (size_t k = 0; k < top_k; k++) {
            int32_t slot = o->dispatch->slot[b * top_k + k];
            float weight = o->scale * (o->weights != NULL ? o->weights[b * top_k + k] : 1.0f);
            if (slot >= 0)
                cpu_add_row(cpu, weight, values_of(o->rows_type, o->rows, values), (size_t)slot,
                            values_of(TENSOR_F32, o->y, values), b);
        }
}

static void drop_slots(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct dispatch_dropout *o = operation;
    size_t values = o->rows_per_sample * o->width;
    const uint32_t key[2] = {(uint32_t)o->state->seed, (uint32_t)(o->state->seed >> 32)};
    const uint32_t counter[2] = {o->state->step, philox_stream(RNG_DROPOUT, o->state->task)};
    uint32_t threshold = (uint32_t)((double)o->probability * 4294967296.0);
    struct matrix hidden = values_of(o->type, o->hidden, values);
    float buffer[CPU_PIECE];
    size_t piece = cpu_piece(values, o->type, TENSOR_F32, TENSOR_F32);
    for (size_t s = first; s < last; s++)
        for (size_t j = 0, n; j < values; j += n) {
            n = values - j < piece ? values - j : piece;
            float *row = cpu_float_row(hidden, s, j, buffer);
            cpu_floats(cpu, hidden, s, j, n, row);
            cpu->vector->dropout(n / 4, (o->base + (uint64_t)o->dispatch->choice[s] * values + j) / 4, key, counter,
                                 threshold, 1.0f / (1.0f - o->probability), row);
            cpu_store(cpu, hidden, s, j, n, row);
        }
}

status cpu_dispatch_dropout(struct backend *backend, const struct dispatch_dropout *o, struct error *error)
{
    if (o->rows_per_sample * o->width % 4 != 0 || o->base % 4 != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "dropout: expected a multiple of 4 hidden values per sample, found %zu; change "
                         "adapter.bottleneck, or model.hidden",
                         o->rows_per_sample * o->width);
    if (o->probability > 0)
        cpu_run_rows(cpu_of(backend), slots_of(o->dispatch), 16 * o->rows_per_sample * o->width, drop_slots, o);
    return OK;
}

struct gate_run {
    const struct expert_gate_backward *o;
    float *sums; /* [slots, d] Σ over rows of dy */
};

/* The sums of a slot's gradients over its rows. */
static void sum_rows(struct cpu *cpu, const struct expert_gate_backward *o, size_t slot, float *sums)
{
    struct matrix dy = {(void *)o->dy, o->type, 0, o->width, o->width}, out = matrix_rows(sums, 1, o->width);
    memset(sums, 0, o->width * sizeof *sums);
    for (size_t l = 0; l < o->rows_per_sample; l++)
        cpu_add_row(cpu, 1.0f, dy, slot * o->rows_per_sample + l, out, 0);
}

/* A slot's hidden units, a piece at a time: returns h · dh, then dh ← weight / keep · dh ⊙ act'(before), h ← weight · h. */
static float gate_units(struct cpu *cpu, const struct expert_gate_backward *o, size_t s, float weight)
{
    size_t values = o->rows_per_sample * o->hidden, piece = cpu_piece(values, o->type, TENSOR_F32, TENSOR_F32);
    struct matrix hs = values_of(o->type, o->h, values), dhs = values_of(o->type, o->dh, values),
                  befores = values_of(o->type, o->before, values);
    float buffers[3][CPU_PIECE], total = 0;
    for (size_t j = 0, n; j < values; j += n) {
        n = values - j < piece ? values - j : piece;
        float *h = cpu_float_row(hs, s, j, buffers[0]), *dh = cpu_float_row(dhs, s, j, buffers[1]);
        cpu_floats(cpu, hs, s, j, n, h);
        cpu_floats(cpu, dhs, s, j, n, dh);
        float product = cpu->vector->dot(n, h, dh);
        total = j == 0 ? product : total + product;
        cpu->vector->scale(n, weight / o->keep, dh, dh);
        if (o->before != NULL)
            cpu->vector->activate_backward(o->activation, n, cpu_floats(cpu, befores, s, j, n, buffers[2]), dh, dh);
        else
            cpu->vector->activate_backward(ACTIVATION_RELU, n, h, dh, dh);
        cpu->vector->scale(n, weight, h, h);
        cpu_store(cpu, dhs, s, j, n, dh);
        cpu_store(cpu, hs, s, j, n, h);
    }
    return total;
}

static void gate_slots(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct gate_run *run = operation;
    const struct expert_gate_backward *o = run->o;
    for (size_t s = first; s < last; s++) {
        float *sums = run->sums + s * o->width;
        int32_t choice = o->dispatch->choice[s];
        const float *up_bias = (const float *)o->up_bias + (size_t)o->dispatch->chosen[choice] * o->width;
        sum_rows(cpu, o, s, sums);
        float units = gate_units(cpu, o, s, o->scale * o->dispatch->gates[choice]);
        o->dgates[choice] = o->scale * (units + cpu->vector->dot(o->width, up_bias, sums));
    }
}

static void gate_bias(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct gate_run *run = operation;
    const struct expert_gate_backward *o = run->o;
    for (size_t e = first; e < last; e++) {
        if (o->frozen != NULL && o->frozen[e])
            continue;
        for (size_t s = (size_t)o->dispatch->offsets[e]; s < (size_t)o->dispatch->offsets[e + 1]; s++)
            cpu->vector->axpy(o->width, o->scale * o->dispatch->gates[o->dispatch->choice[s]], run->sums + s * o->width,
                              (float *)o->dup_bias + e * o->width);
    }
}

status cpu_expert_gate_backward(struct backend *backend, const struct expert_gate_backward *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct gate_run run = {.o = o};
    size_t slots = slots_of(o->dispatch);
    TRY(cpu_scratch(cpu, slots * o->width * sizeof(float), &run.sums, error));
    memset(o->dgates, 0, o->dispatch->samples * o->dispatch->top_k * sizeof *o->dgates);
    cpu_run_rows(cpu, slots, o->rows_per_sample * (o->width + 3 * o->hidden), gate_slots, &run);
    cpu_run_rows(cpu, o->dispatch->experts, slots * o->width / (o->dispatch->experts + 1) + 1, gate_bias, &run);
    arena_release(&cpu->scratch, mark);
    return OK;
}

status cpu_count_pairs(struct backend *backend, const struct count_pairs *o, struct error *error)
{
    (void)backend;
    (void)error;
    for (size_t b = 0; b < o->samples; b++)
        for (size_t i = 0; i < o->top_k; i++)
            for (size_t j = 0; j < o->top_k; j++) {
                int32_t e = o->first[b * o->top_k + i], f = o->second[b * o->top_k + j];
                if (e >= 0 && f >= 0)
                    o->counts[(size_t)e * o->experts + (size_t)f]++;
            }
    return OK;
}

/* ---- experts: a composition of the operations above ---- */

status cpu_experts(struct backend *backend, const struct experts *o, struct error *error)
{
    return experts_by_slots(backend, o, error);
}

status cpu_experts_backward(struct backend *backend, const struct experts_backward *o, struct error *error)
{
    return experts_backward_by_slots(backend, o, error);
}

status cpu_experts_backward_input(struct backend *backend, const struct experts_backward_input *o, struct error *error)
{
    return experts_backward_input_by_slots(backend, o, error);
}

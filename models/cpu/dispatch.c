/* Dispatch: samples to the slots of their experts, and the experts' outputs back. */
#include <string.h>

#include "core/rng.h"
#include "models/cpu/cpu.h"

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

status cpu_dispatch_dropout(struct cpu *cpu, const struct dispatch_dropout *o, struct error *error)
{
    if (o->rows_per_sample * o->width % 4 != 0 || o->base % 4 != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "dropout: expected a multiple of 4 hidden values per sample, found %zu; change "
                         "adapter.bottleneck, or model.hidden",
                         o->rows_per_sample * o->width);
    if (o->probability > 0)
        cpu_run_rows(cpu, slots_of(o->dispatch), 16 * o->rows_per_sample * o->width, drop_slots, o);
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

status cpu_expert_gate_backward(struct cpu *cpu, const struct expert_gate_backward *o, struct error *error)
{
    struct gate_run run = {.o = o};
    size_t slots = slots_of(o->dispatch);
    TRY(cpu_scratch(cpu, slots * o->width * sizeof(float), &run.sums, error));
    memset(o->dgates, 0, o->dispatch->samples * o->dispatch->top_k * sizeof *o->dgates);
    cpu_run_rows(cpu, slots, o->rows_per_sample * (o->width + 3 * o->hidden), gate_slots, &run);
    cpu_run_rows(cpu, o->dispatch->experts, slots * o->width / (o->dispatch->experts + 1) + 1, gate_bias, &run);
    return OK;
}

status cpu_count_pairs(struct cpu *cpu, const struct count_pairs *o, struct error *error)
{
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

status cpu_experts(struct cpu *cpu, const struct experts *o, struct error *error)
{
    return experts_by_slots(&cpu->backend, o, error);
}

status cpu_experts_backward(struct cpu *cpu, const struct experts_backward *o, struct error *error)
{
    return experts_backward_by_slots(&cpu->backend, o, error);
}

status cpu_experts_backward_input(struct cpu *cpu, const struct experts_backward_input *o, struct error *error)
{
    return experts_backward_input_by_slots(&cpu->backend, o, error);
}

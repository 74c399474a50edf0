#include <math.h>
#include <string.h>

#include "models/cpu/cpu.h"

enum { CHUNK = 1 << 15 }; /* values a job: segments are cut so that one large tensor does not hold up the rest */

static void find_in_chunks(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct find_not_finite *o = operation;
    if (!cpu->vector->finite(last - first, o->values + first))
        __atomic_store_n(o->found, 1, __ATOMIC_RELAXED);
}

status cpu_hold_step(struct backend *backend, const struct hold_step *o, struct error *error)
{
    (void)backend;
    (void)error;
    if (!o->guard->held)
        return OK;
    o->guard->skipped++;
    if (o->guard->first == 0)
        o->guard->first = (int32_t)o->state->step + 1;
    for (size_t l = 0; l < HELD_COUNTS; l++)
        for (size_t i = 0; i < o->lists[l].n; i++)
            o->lists[l].counts[i] = o->lists[l].before[i];
    return OK;
}

struct piece {
    size_t segment;
    uint64_t first, last;
};

/* Segments whose flag is set, in pieces. */
struct segments {
    size_t count;
    const uint64_t *offsets;
    const int32_t *flag, *flags;
};

static size_t list_pieces(const struct segments *l, struct piece *pieces)
{
    size_t count = 0;
    for (size_t s = 0; s < l->count; s++) {
        if (!l->flags[l->flag[s]])
            continue;
        for (uint64_t at = l->offsets[s]; at < l->offsets[s + 1]; at += CHUNK, count++)
            if (pieces != NULL)
                pieces[count] = (struct piece){s, at, at + CHUNK < l->offsets[s + 1] ? at + CHUNK : l->offsets[s + 1]};
    }
    return count;
}

static status take_pieces(struct cpu *cpu, const struct segments *list, struct piece **pieces, size_t *count,
                          struct error *error)
{
    void *memory;
    *count = list_pieces(list, NULL);
    TRY(cpu_scratch(cpu, *count * sizeof **pieces, &memory, error));
    *pieces = memory;
    list_pieces(list, *pieces);
    return OK;
}

struct find_run {
    struct cpu *cpu;
    const struct find_not_finite *o;
    struct piece *pieces;
};

static void find_in_piece(void *context, size_t job, size_t worker)
{
    (void)worker;
    const struct find_run *run = context;
    find_in_chunks(run->cpu, run->o, run->pieces[job].first, run->pieces[job].last);
}

status cpu_find_not_finite(struct backend *backend, const struct find_not_finite *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    if (o->segments == 0) {
        cpu_run_rows(cpu, o->n, 1, find_in_chunks, o);
        return OK;
    }
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct find_run run = {.cpu = cpu, .o = o};
    size_t count;
    TRY(take_pieces(cpu, &(struct segments){o->segments, o->offsets, o->flag, o->flags}, &run.pieces, &count, error));
    threads_run(cpu->threads, count, find_in_piece, &run);
    arena_release(&cpu->scratch, mark);
    return OK;
}

struct adamw_run {
    struct cpu *cpu;
    const struct adamw *o;
    struct piece *pieces;
};

static void step_piece(void *context, size_t job, size_t worker)
{
    (void)worker;
    const struct adamw_run *run = context;
    const struct adamw *o = run->o;
    struct piece piece = run->pieces[job];
    double steps = o->steps[piece.segment];
    struct vector_adamw rule = {.rate = o->state->learning_rate,
                                .beta1 = (float)o->beta1,
                                .beta2 = (float)o->beta2,
                                .rest1 = (float)(1.0 - o->beta1),
                                .rest2 = (float)(1.0 - o->beta2),
                                .epsilon = (float)o->epsilon,
                                .weight_decay = (float)o->weight_decay,
                                .l2 = (float)o->l2,
                                .correction1 = (float)(1.0 - pow(o->beta1, steps)),
                                .correction2 = (float)sqrt(1.0 - pow(o->beta2, steps))};
    run->cpu->vector->adamw(&rule, piece.last - piece.first, o->values + piece.first, o->gradients + piece.first,
                            o->first_moment + piece.first, o->second_moment + piece.first);
}

static void clear_gradients(const struct adamw *o)
{
    for (size_t s = 0; s < o->segments; s++)
        memset(o->gradients + o->offsets[s], 0, (o->offsets[s + 1] - o->offsets[s]) * sizeof *o->gradients);
}

status cpu_adamw(struct backend *backend, const struct adamw *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    if (o->guard != NULL && o->guard->held) {
        if (o->clear_held)
            clear_gradients(o);
        return OK;
    }
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct adamw_run run = {.cpu = cpu, .o = o};
    size_t count;
    TRY(take_pieces(cpu, &(struct segments){o->segments, o->offsets, o->flag, o->flags}, &run.pieces, &count, error));
    for (size_t s = 0; s < o->segments; s++) {
        bool updated = o->flags[o->flag[s]] != 0;
        o->steps[s] += updated;
        if (o->changes != NULL)
            o->changes[s] += updated;
    }
    threads_run(cpu->threads, count, step_piece, &run);
    arena_release(&cpu->scratch, mark);
    return OK;
}

static void sum_weighted(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    (void)cpu;
    const struct weighted_sum *o = operation;
    for (size_t i = first; i < last; i++) {
        double total = 0;
        for (size_t k = 0; k < o->count; k++)
            total += (double)o->weights[k] * (double)((const float *)o->inputs[k])[i];
        ((float *)o->out)[i] = (float)total;
    }
}

status cpu_weighted_sum(struct backend *backend, const struct weighted_sum *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->n, o->count, sum_weighted, o);
    return OK;
}

static void multiply_values(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    (void)cpu;
    const struct multiply *o = operation;
    for (size_t i = first; i < last; i++)
        o->out[i] = (o->accumulate ? o->out[i] : 0) + o->a[i] * o->b[i];
}

status cpu_multiply(struct backend *backend, const struct multiply *o, struct error *error)
{
    (void)error;
    if (o->guard == NULL || !o->guard->held)
        cpu_run_rows(cpu_of(backend), o->n, 1, multiply_values, o);
    return OK;
}

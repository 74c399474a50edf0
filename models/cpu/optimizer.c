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

status cpu_skip_step(struct cpu *cpu, const struct skip_step *o, struct error *error)
{
    if (!o->guard->skip)
        return OK;
    o->guard->skipped++;
    if (o->guard->first == 0)
        o->guard->first = (int32_t)o->state->step + 1;
    for (size_t l = 0; l < RESTORED_COUNTS; l++)
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
    *count = list_pieces(list, NULL);
    TRY(cpu_scratch(cpu, *count * sizeof **pieces, pieces, error));
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
    const struct find_run *run = context;
    find_in_chunks(run->cpu, run->o, run->pieces[job].first, run->pieces[job].last);
}

status cpu_find_not_finite(struct cpu *cpu, const struct find_not_finite *o, struct error *error)
{
    if (o->segments == 0) {
        cpu_run_rows(cpu, o->n, 1, find_in_chunks, o);
        return OK;
    }
    struct find_run run = {.cpu = cpu, .o = o};
    size_t count;
    TRY(take_pieces(cpu, &(struct segments){o->segments, o->offsets, o->flag, o->flags}, &run.pieces, &count, error));
    threads_run(cpu->threads, count, find_in_piece, &run);
    return OK;
}

/* A step over the pieces of what is updated. */
struct update_run {
    struct cpu *cpu;
    const void *operation;
    const struct update *update;
    struct piece *pieces;
    size_t count;
    double (*squares)[2]; /* LAMB: of each piece, Σ p² and Σ u² */
    float *scales;        /* LAMB: of each segment, −rate · ‖p‖ / ‖u‖ */
};

static void clear_gradients(const struct update *u)
{
    for (size_t s = 0; s < u->segments; s++)
        memset(u->gradients + u->offsets[s], 0, (u->offsets[s + 1] - u->offsets[s]) * sizeof *u->gradients);
}

/* Counts the step and lists its pieces: none where it is held. */
static status begin_update(struct update_run *run, struct error *error)
{
    const struct update *u = run->update;
    if (u->guard != NULL && u->guard->skip) {
        if (u->clear_skipped)
            clear_gradients(u);
        return OK;
    }
    TRY(take_pieces(run->cpu, &(struct segments){u->segments, u->offsets, u->flag, u->flags}, &run->pieces, &run->count,
                    error));
    for (size_t s = 0; s < u->segments; s++) {
        bool updated = u->flags[u->flag[s]] != 0;
        u->steps[s] += updated;
        if (u->changes != NULL)
            u->changes[s] += updated;
    }
    return OK;
}

static status update_pieces(struct cpu *cpu, const void *operation, const struct update *update, threads_job step,
                            struct error *error)
{
    struct update_run run = {.cpu = cpu, .operation = operation, .update = update};
    TRY(begin_update(&run, error));
    threads_run(cpu->threads, run.count, step, &run);
    return OK;
}

static struct vector_adamw adam_rule(const struct adamw *o, int32_t steps, float rate)
{
    return (struct vector_adamw){.rate = rate,
                                 .beta1 = (float)o->beta1,
                                 .beta2 = (float)o->beta2,
                                 .rest1 = (float)(1.0 - o->beta1),
                                 .rest2 = (float)(1.0 - o->beta2),
                                 .epsilon = (float)o->epsilon,
                                 .weight_decay = (float)o->weight_decay,
                                 .l2 = (float)o->l2,
                                 .correction1 = (float)(1.0 - pow(o->beta1, (double)steps)),
                                 .correction2 = (float)sqrt(1.0 - pow(o->beta2, (double)steps))};
}

static void step_adamw(void *context, size_t job, size_t worker)
{
    const struct update_run *run = context;
    const struct update *u = run->update;
    const struct adamw *o = run->operation;
    struct piece piece = run->pieces[job];
    struct vector_adamw rule = adam_rule(o, u->steps[piece.segment], u->state->learning_rate);
    run->cpu->vector->adamw(&rule, piece.last - piece.first, u->values + piece.first, u->gradients + piece.first,
                            u->first_moment + piece.first, u->second_moment + piece.first);
}

status cpu_adamw(struct cpu *cpu, const struct adamw *o, struct error *error)
{
    return update_pieces(cpu, o, &o->update, step_adamw, error);
}

static void step_sgd(void *context, size_t job, size_t worker)
{
    const struct update_run *run = context;
    const struct update *u = run->update;
    const struct sgd *o = run->operation;
    struct piece piece = run->pieces[job];
    struct vector_sgd rule = {.rate = u->state->learning_rate, .momentum = (float)o->momentum, .l2 = (float)o->l2};
    run->cpu->vector->sgd(&rule, piece.last - piece.first, u->values + piece.first, u->gradients + piece.first,
                          u->first_moment + piece.first);
}

status cpu_sgd(struct cpu *cpu, const struct sgd *o, struct error *error)
{
    return update_pieces(cpu, o, &o->update, step_sgd, error);
}

/* Moments, u in place of the gradient, and what the norms need. */
static void find_direction(void *context, size_t job, size_t worker)
{
    const struct update_run *run = context;
    const struct update *u = run->update;
    const struct lamb *o = run->operation;
    struct piece piece = run->pieces[job];
    size_t n = piece.last - piece.first;
    struct adamw adam = {.beta1 = o->beta1, .beta2 = o->beta2, .epsilon = o->epsilon, .weight_decay = o->weight_decay};
    struct vector_adamw rule = adam_rule(&adam, u->steps[piece.segment], u->state->learning_rate);
    run->cpu->vector->lamb(&rule, n, u->values + piece.first, u->gradients + piece.first, u->first_moment + piece.first,
                           u->second_moment + piece.first);
    run->squares[job][0] = run->cpu->vector->squares(n, u->values + piece.first);
    run->squares[job][1] = run->cpu->vector->squares(n, u->gradients + piece.first);
}

/* Pieces lie in the order of their segments. */
static void find_scales(const struct update_run *run)
{
    for (size_t job = 0; job < run->count;) {
        size_t segment = run->pieces[job].segment;
        double values = 0, directions = 0;
        for (; job < run->count && run->pieces[job].segment == segment; job++) {
            values += run->squares[job][0];
            directions += run->squares[job][1];
        }
        double ratio = values == 0 || directions == 0 ? 1 : sqrt(values) / sqrt(directions);
        run->scales[segment] = (float)(-(double)run->update->state->learning_rate * ratio);
    }
}

static void step_lamb(void *context, size_t job, size_t worker)
{
    const struct update_run *run = context;
    const struct update *u = run->update;
    struct piece piece = run->pieces[job];
    size_t n = piece.last - piece.first;
    run->cpu->vector->axpy(n, run->scales[piece.segment], u->gradients + piece.first, u->values + piece.first);
    memset(u->gradients + piece.first, 0, n * sizeof *u->gradients);
}

status cpu_lamb(struct cpu *cpu, const struct lamb *o, struct error *error)
{
    struct update_run run = {.cpu = cpu, .operation = o, .update = &o->update};
    TRY(cpu_scratch(cpu, o->update.segments * sizeof *run.scales, &run.scales, error));
    TRY(begin_update(&run, error));
    TRY(cpu_scratch(cpu, run.count * sizeof *run.squares, &run.squares, error));
    threads_run(cpu->threads, run.count, find_direction, &run);
    find_scales(&run);
    threads_run(cpu->threads, run.count, step_lamb, &run);
    return OK;
}

CPU_ROWS(weighted_sum, o->n, o->count)
{
    for (size_t i = first; i < last; i++) {
        double total = 0;
        for (size_t k = 0; k < o->count; k++)
            total += (double)o->weights[k] * (double)((const float *)o->inputs[k])[i];
        ((float *)o->out)[i] = (float)(o->divisor != 0 ? total / o->divisor : total);
    }
}

/* In pieces whose sums stay in the cache. */
CPU_ROWS(average_experts, o->n, 4 * o->experts)
{
    enum { PIECE = 512 };
    double sums[PIECE];
    for (size_t from = first; from < last; from += PIECE) {
        size_t n = last - from < PIECE ? last - from : PIECE, count = 0;
        memset(sums, 0, sizeof sums);
        for (size_t e = 0; e < o->experts; e++) {
            if (o->frozen != NULL && o->frozen[e])
                continue;
            const float *values = o->values + e * o->n + from;
            for (size_t i = 0; i < n; i++)
                sums[i] += (double)values[i];
            count++;
        }
        for (size_t e = 0; count > 1 && e < o->experts; e++) {
            if (o->frozen != NULL && o->frozen[e])
                continue;
            float *values = o->values + e * o->n + from;
            double others = (double)o->share / (double)(count - 1), own = 1 - (double)o->share - others;
            for (size_t i = 0; i < n; i++)
                values[i] = (float)(own * (double)values[i] + others * sums[i]);
        }
    }
}

CPU_ROWS(multiply, o->guard != NULL && o->guard->skip != 0 ? 0 : o->n, 1)
{
    for (size_t i = first; i < last; i++)
        o->out[i] = (o->accumulate ? o->out[i] : 0) + o->a[i] * o->b[i];
}

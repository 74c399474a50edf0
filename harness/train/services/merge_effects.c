#include "harness/train/services/merge_effects.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/statistics.h"
#include "core/alloc.h"

/* A merge whose window is open, or closed but not read yet. The struct has no padding, so it is saved as it is. */
struct watched {
    uint64_t iteration, tower, block, position, target;
    int64_t chosen, choices; /* of the target, and of all experts of the block, when it was merged */
    double loss_before, distance;
};

/* Device memory for the ends of windows, indexed by (iteration of the merge) mod EFFECT_WINDOW. A slot is read before
 * the next merge that uses it. */
struct merge_effects {
    float *losses;           /* [EFFECT_WINDOW], iteration i at i mod EFFECT_WINDOW */
    float *after;            /* [EFFECT_WINDOW, EFFECT_WINDOW]: losses at the end of a window */
    int32_t *counts[TOWERS]; /* [EFFECT_WINDOW, blocks · E] */
    size_t all[TOWERS];      /* blocks · E */
    size_t experts;
    int32_t *host[TOWERS]; /* host [2 · blocks · E] */
    size_t count;
    struct watched *watched; /* in the order of their iterations */
};

/* --- Opening --- */

static status take(struct arena *arena, const struct model *model, enum tensor_type type, size_t n, void **data,
                   struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, type, "effects of merges", 1, &n, error));
    *data = memory.data;
    return model->backend->ops->zero(model->backend, memory.data, tensor_bytes(&memory), error);
}

/* Losses of earlier iterations without this analysis are unknown, not 0. */
static status forget_losses(const struct merge_effects *m, const struct model *model, struct error *error)
{
    float losses[EFFECT_WINDOW];
    for (size_t i = 0; i < EFFECT_WINDOW; i++)
        losses[i] = NAN;
    return model->backend->ops->upload(model->backend, m->losses, losses, sizeof losses, error);
}

static status take_all(struct merge_effects *m, const struct model *model, struct arena *arena, struct error *error)
{
    TRY(take(arena, model, TENSOR_F32, EFFECT_WINDOW, (void **)&m->losses, error));
    TRY(forget_losses(m, model, error));
    TRY(take(arena, model, TENSOR_F32, EFFECT_WINDOW * EFFECT_WINDOW, (void **)&m->after, error));
    m->experts = model->adapters->settings.experts;
    for (int t = 0; t < TOWERS; t++) {
        m->all[t] = adapters_counts(model->adapters, (enum tower)t).n;
        TRY(take(arena, model, TENSOR_I32, EFFECT_WINDOW * m->all[t], (void **)&m->counts[t], error));
        m->host[t] = xmalloc(array_size(2 * m->all[t], sizeof *m->host[t]));
    }
    return OK;
}

status merge_effects_open(struct merge_effects **effects, const struct model *model, struct arena *arena,
                          struct error *error)
{
    *effects = xcalloc(1, sizeof **effects);
    return take_all(*effects, model, arena, error);
}

void merge_effects_close(struct merge_effects *m)
{
    if (m == NULL)
        return;
    for (int t = 0; t < TOWERS; t++)
        free(m->host[t]);
    free(m->watched);
    free(m);
}

void merge_effects_begin_task(struct merge_effects *m)
{
    if (m != NULL)
        m->count = 0;
}

/* --- On the device --- */

static bool ends_now(const struct merge_effects *m, size_t iteration)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->watched[i].iteration + EFFECT_WINDOW == iteration)
            return true;
    return false;
}

status merge_effects_step(const struct merge_effects *m, const struct model *model, size_t iteration,
                          struct error *error)
{
    struct backend *backend = model->backend;
    if (m == NULL)
        return OK;
    size_t slot = iteration % EFFECT_WINDOW;
    TRY(backend->ops->copy(backend, m->losses + slot, model->loss, sizeof *m->losses, error));
    if (!ends_now(m, iteration))
        return OK;
    TRY(backend->ops->copy(backend, m->after + slot * EFFECT_WINDOW, m->losses, EFFECT_WINDOW * sizeof *m->losses,
                           error));
    for (int t = 0; t < TOWERS; t++)
        if (m->all[t] > 0)
            TRY(backend->ops->copy(backend, m->counts[t] + slot * m->all[t],
                                   adapters_counts(model->adapters, (enum tower)t).counts,
                                   m->all[t] * sizeof *m->counts[t], error));
    return OK;
}

/* --- On the host --- */

/* The mean over the n iterations up to `last`; NAN: none had a finite loss. */
static double mean_loss(const float losses[EFFECT_WINDOW], size_t last, size_t n)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        double loss = (double)losses[(last - i) % EFFECT_WINDOW];
        sum += isfinite(loss) ? loss : 0;
        count += isfinite(loss) ? 1 : 0;
    }
    return count > 0 ? sum / count : (double)NAN;
}

static int64_t choices_of(const struct merge_effects *m, size_t tower, size_t block)
{
    int64_t choices = 0;
    for (size_t i = 0; i < m->experts; i++)
        choices += m->host[tower][block * m->experts + i];
    return choices;
}

static void report(struct merge_effects *m, struct method_run *run, const struct watched *w, size_t known, size_t last,
                   const float *losses)
{
    size_t iterations = last - w->iteration;
    GROW(run->effects.effects, run->effects.count);
    run->effects.effects[run->effects.count++] =
        (struct merge_effect){.tower = (enum tower)w->tower,
                              .block = w->block,
                              .position = w->position,
                              .iteration = w->iteration,
                              .known = known,
                              .iterations = iterations,
                              .chosen = m->host[w->tower][w->block * m->experts + w->target] - w->chosen,
                              .choices = choices_of(m, w->tower, w->block) - w->choices,
                              .loss_before = w->loss_before,
                              .loss_after = mean_loss(losses, last, iterations),
                              .distance = w->distance};
}

/* Reads the state at the end of a window, or the present state for a window that the end of the task cuts off. */
static status read_window(struct merge_effects *m, const struct model *model, size_t slot, bool present,
                          float losses[EFFECT_WINDOW], struct error *error)
{
    struct backend *backend = model->backend;
    TRY(backend->ops->download(backend, losses, present ? m->losses : m->after + slot * EFFECT_WINDOW,
                               EFFECT_WINDOW * sizeof *losses, error));
    for (int t = 0; t < TOWERS; t++)
        if (m->all[t] > 0)
            TRY(backend->ops->download(backend, m->host[t],
                                       present ? adapters_counts(model->adapters, (enum tower)t).counts
                                               : m->counts[t] + slot * m->all[t],
                                       m->all[t] * sizeof *m->host[t], error));
    return OK;
}

/* Reports the merges whose window ended by `iteration`; with `cut` also the others, whose windows end there. */
static status report_ended(struct merge_effects *m, struct method_run *run, size_t iteration, size_t known, bool cut,
                           struct error *error)
{
    float losses[EFFECT_WINDOW];
    size_t done = 0;
    for (uint64_t read = 0; done < m->count; done++) {
        const struct watched *w = &m->watched[done];
        bool whole = w->iteration + EFFECT_WINDOW <= iteration;
        if (!whole && !cut)
            break;
        uint64_t window = whole ? w->iteration + 1 : UINT64_MAX; /* windows that are cut off end together */
        if (read != window)
            TRY(read_window(m, run->model, w->iteration % EFFECT_WINDOW, !whole, losses, error));
        read = window;
        report(m, run, w, known, whole ? w->iteration + EFFECT_WINDOW : iteration, losses);
    }
    if (done > 0)
        memmove(m->watched, m->watched + done, (m->count - done) * sizeof *m->watched);
    m->count -= done;
    return OK;
}

status merge_effects_look(struct merge_effects *m, struct method_run *run, size_t iteration, struct error *error)
{
    return m != NULL ? report_ended(m, run, iteration, iteration, false, error) : OK;
}

status merge_effects_end_task(struct merge_effects *m, struct method_run *run, size_t iterations, struct error *error)
{
    return m != NULL ? report_ended(m, run, iterations, iterations + 1, true, error) : OK;
}

/* The number of earlier changes of the same block, which is the change's position among the events. */
static size_t position_of(const struct expert_changes *changes, size_t first, size_t index)
{
    const struct expert_change *c = &changes->changes[index];
    size_t position = 0;
    for (size_t i = first; i < index; i++)
        position += changes->changes[i].tower == c->tower && changes->changes[i].merge.block == c->merge.block;
    return position;
}

static status watch(struct merge_effects *m, const struct method_run *run, size_t iteration, size_t first, size_t index,
                    double loss_before, struct arena *arena, struct error *error)
{
    const struct expert_change *c = &run->changes.changes[index];
    struct watched w = {.iteration = iteration,
                        .tower = (uint64_t)c->tower,
                        .block = c->merge.block,
                        .position = position_of(&run->changes, first, index),
                        .target = (uint64_t)c->merge.target,
                        .loss_before = loss_before};
    w.chosen = m->host[w.tower][w.block * m->experts + w.target];
    w.choices = choices_of(m, w.tower, w.block);
    TRY(statistics_distance(&run->model->adapters->towers[c->tower], &c->merge, arena, &w.distance, error));
    GROW(m->watched, m->count);
    m->watched[m->count++] = w;
    return OK;
}

status merge_effects_add(struct merge_effects *m, const struct method_run *run, size_t iteration, size_t first,
                         struct error *error)
{
    struct backend *backend = run->model->backend;
    float losses[EFFECT_WINDOW];
    struct arena arena;
    size_t merges = 0;
    for (size_t i = first; m != NULL && i < run->changes.count; i++)
        merges += run->changes.changes[i].kind == CHANGE_MERGE;
    if (merges == 0)
        return OK;
    TRY(read_window(m, run->model, 0, true, losses, error));
    double before = mean_loss(losses, iteration, iteration < EFFECT_WINDOW ? iteration : EFFECT_WINDOW);
    TRY(backend->ops->arena_create(backend, &arena, 0, "effects of merges", error));
    status result = OK;
    for (size_t i = first; i < run->changes.count; i++)
        if (run->changes.changes[i].kind == CHANGE_MERGE)
            NEXT(result, watch(m, run, iteration, first, i, before, &arena, error));
    backend->ops->arena_destroy(backend, &arena);
    return result;
}

/* --- Keeping --- */

static status keep_device(struct merge_effects *m, const struct serializer *serializer, struct error *error)
{
    TRY(serializer_device(serializer, "effects.losses", SAFETENSOR_F32, EFFECT_WINDOW, m->losses, error));
    TRY(serializer_device(serializer, "effects.after", SAFETENSOR_F32, EFFECT_WINDOW * EFFECT_WINDOW, m->after, error));
    TRY(serializer_device(serializer, "effects.image", SAFETENSOR_I32, EFFECT_WINDOW * m->all[TOWER_IMAGE],
                          m->counts[TOWER_IMAGE], error));
    return serializer_device(serializer, "effects.text", SAFETENSOR_I32, EFFECT_WINDOW * m->all[TOWER_TEXT],
                             m->counts[TOWER_TEXT], error);
}

status merge_effects_keep(struct merge_effects *m, const struct serializer *serializer, struct error *error)
{
    if (m == NULL || (!serializer->saving && !archive_has(serializer->archive, "effects.watched")))
        return OK;
    uint64_t count = m->count;
    TRY(serializer_host(serializer, "effects.count", SAFETENSOR_U64, 1, &count, error));
    for (m->count = serializer->saving ? count : 0; m->count < count; m->count++)
        GROW(m->watched, m->count);
    TRY(serializer_host(serializer, "effects.watched", SAFETENSOR_U8, count * sizeof *m->watched, m->watched, error));
    return keep_device(m, serializer, error);
}

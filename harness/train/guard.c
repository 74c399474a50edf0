#include "harness/train/guard.h"

#include <stdio.h>
#include <stdlib.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/model.h"

/* --- Memory --- */

status guard_create(struct model *model, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, &model->memory, TENSOR_U8, "guard", 1, (size_t[]){sizeof *model->guard}, error));
    model->guard = memory.data;
    for (int t = 0; model->adapters != NULL && t < TOWERS; t++) {
        size_t n = adapters_counts(model->adapters, (enum tower)t).n;
        if (n == 0)
            continue;
        TRY(tensor_take(&memory, &model->memory, TENSOR_I32, "counts before a step", 1, &n, error));
        model->counts_before[t] = memory.data;
    }
    return guard_begin_task(model, error);
}

status guard_begin_task(struct model *model, struct error *error)
{
    return model->backend->ops->zero(model->backend, model->guard, sizeof *model->guard, error);
}

/* --- A step --- */

static bool skips(const struct task *task)
{
    return task->settings.on_nan == ON_NAN_SKIP;
}

status guard_begin_step(struct model *model, const struct task *task, struct error *error)
{
    const struct backend_ops *ops = model->backend->ops;
    if (!skips(task))
        return OK;
    TRY(ops->zero(model->backend, &model->guard->skip, sizeof model->guard->skip, error));
    for (int t = 0; model->adapters != NULL && t < TOWERS; t++) {
        struct adapter_counts use = adapters_counts(model->adapters, (enum tower)t);
        if (use.n == 0)
            continue;
        TRY(ops->copy(model->backend, model->counts_before[t], use.counts, use.n * sizeof(int32_t), error));
    }
    return OK;
}

static status find(const struct model *model, const float *values, size_t n, int32_t *found, struct error *error)
{
    return model->backend->ops->find_not_finite(
        model->backend, &(struct find_not_finite){.n = n, .values = values, .found = found}, error);
}

status guard_end_step(struct model *model, const struct task *task, struct error *error)
{
    struct trained_group group;
    struct skip_step skip = {.guard = model->guard, .state = model->state};
    TRY(find(model, model->loss, 1, &model->guard->skip, error));
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        TRY(parameters_find_not_finite(group.parameters, &model->guard->skip, error));
    for (int t = 0; skips(task) && model->adapters != NULL && t < TOWERS; t++) {
        struct adapter_counts use = adapters_counts(model->adapters, (enum tower)t);
        skip.lists[t].n = use.n;
        skip.lists[t].counts = use.counts;
        skip.lists[t].before = model->counts_before[t];
    }
    return model->backend->ops->skip_step(model->backend, &skip, error);
}

struct update_rule guard_rule(const struct model *model, const struct task *task, struct update_rule rule)
{
    rule.guard = model->guard;
    rule.clear_skipped = skips(task);
    return rule;
}

/* --- Results --- */

static status read_guard(const struct model *model, struct step_guard *guard, struct error *error)
{
    return model->backend->ops->download(model->backend, guard, model->guard, sizeof *guard, error);
}

/* Which array of a tensor is checked. */
enum part { PART_GRADIENT, PART_VALUE, PART_FIRST_MOMENT, PART_SECOND_MOMENT, PARTS };

static const char *const part_names[PARTS] = {"gradient", "value", "first moment", "second moment"};

/* Returns NULL where the group does not have the part. */
static const float *part_of(const struct parameters *group, enum part part)
{
    const float *const parts[PARTS] = {group->gradients, group->values, group->first_moment, group->second_moment};
    return parts[part];
}

static status is_finite(const struct parameters *group, enum part part, size_t offset, size_t n, bool *finite,
                        struct error *error)
{
    OWNED float *values = xmalloc(array_size(n, sizeof *values));
    TRY(group->backend->ops->download(group->backend, values, part_of(group, part) + offset, n * sizeof *values,
                                      error));
    *finite = not_finite_at(values, n) == n;
    return OK;
}

/* "gradient of visual.transformer.resblocks.0.…", under its name in files, where experts are not stacked. */
static void say(const struct model *model, const struct parameters *group, enum part part, const struct parameter *p,
                size_t offset, char *name, size_t capacity)
{
    struct group_tensor t;
    snprintf(name, capacity, "%s of %s", part_names[part], p->name);
    for (size_t i = 0; model->adapters != NULL && i < adapters_tensor_count(model->adapters); i++) {
        adapters_tensor_at(model->adapters, i, &t);
        if (t.group == group && t.offset == offset)
            snprintf(name, capacity, "%s of %s", part_names[part], t.name);
    }
}

/* Of the first segment of a tensor that is not finite; otherwise where there is none. */
static status name_first(const struct model *model, enum part first, enum part last, const char *otherwise, char *name,
                         size_t capacity, struct error *error)
{
    struct trained_group g;
    snprintf(name, capacity, "%s", otherwise);
    for (size_t i = 0; trained_group_at(model, i, &g); i++)
        for (size_t k = 0; k < g.parameters->count; k++) {
            const struct parameter *p = &g.parameters->list[k];
            size_t n = p->size / p->segments;
            for (size_t offset = p->offset; offset < p->offset + p->size; offset += n)
                for (enum part part = first; part <= last; part++) {
                    bool finite = true;
                    if (part_of(g.parameters, part) != NULL)
                        TRY(is_finite(g.parameters, part, offset, n, &finite, error));
                    if (!finite) {
                        say(model, g.parameters, part, p, offset, name, capacity);
                        return OK;
                    }
                }
        }
    return OK;
}

static status skipped_step(const struct model *model, const struct task *task, const struct step_guard *guard,
                           struct error *error)
{
    char name[192];
    TRY(name_first(model, PART_GRADIENT, PART_GRADIENT, "loss", name, sizeof name, error));
    return error_set(
        error, ERROR_FORMAT,
        "%s: iteration %d: the loss or its gradients are not finite (the %s); lower training.learning_rate "
        "(it peaks at %g), lengthen training.warmup, or leave such iterations out with "
        "training.on_nan=skip",
        task->settings.name, guard->first, name, task->settings.rate);
}

status guard_check_steps(const struct model *model, const struct task *task, struct error *error)
{
    struct step_guard guard;
    if (skips(task))
        return OK;
    TRY(read_guard(model, &guard, error));
    return guard.skip ? skipped_step(model, task, &guard, error) : OK;
}

status guard_check(const struct model *model, const struct task *task, size_t iteration, struct error *error)
{
    struct trained_group group;
    struct step_guard guard;
    char name[192];
    if (skips(task)) /* clears what the last step found */
        TRY(model->backend->ops->zero(model->backend, &model->guard->skip, sizeof model->guard->skip, error));
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        for (enum part part = PART_VALUE; part < PARTS; part++)
            if (part_of(group.parameters, part) != NULL)
                TRY(find(model, part_of(group.parameters, part), group.parameters->values_count, &model->guard->skip,
                         error));
    TRY(read_guard(model, &guard, error));
    if (!guard.skip)
        return OK;
    if (guard.first > 0 && !skips(task))
        return skipped_step(model, task, &guard, error);
    TRY(name_first(model, PART_VALUE, PART_SECOND_MOMENT, "model", name, sizeof name, error));
    return error_set(error, ERROR_FORMAT,
                     "%s: after iteration %zu the %s is not finite; lower training.learning_rate (it peaks at %g) or "
                     "lengthen training.warmup",
                     task->settings.name, iteration, name, task->settings.rate);
}

status guard_skipped(const struct model *model, size_t *steps, size_t *first, struct error *error)
{
    struct step_guard guard;
    TRY(read_guard(model, &guard, error));
    *steps = (size_t)guard.skipped;
    *first = (size_t)guard.first;
    return OK;
}

status guard_images(const struct guarded_images *images, struct error *error)
{
    size_t at = not_finite_at(images->features, images->n * images->width);
    if (at == images->n * images->width)
        return OK;
    size_t place = images->first + at / images->width, item = images->items != NULL ? images->items[place] : place;
    OWNED char *name = dataset_item_name(images->dataset, images->split, item);
    error_set(
        error, ERROR_FORMAT,
        "%s: image %s: its features are not finite: numbers overflow on their way through the model; are these the "
        "right weights?",
        dataset_name(images->dataset), name != NULL ? name : "?");
    return ERROR_FORMAT;
}

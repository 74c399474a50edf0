#include "harness/train/guard.h"

#include <stdio.h>
#include <stdlib.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "harness/heads/trained.h"

/* --- Memory --- */

status guard_create(struct experiment *e, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, &e->model.memory, TENSOR_U8, "guard", 1, (size_t[]){sizeof *e->model.guard}, error));
    e->model.guard = memory.data;
    TRY(tensor_take(&memory, &e->model.memory, TENSOR_I32, "found", 1, (size_t[]){1}, error));
    e->model.found = memory.data;
    for (int t = 0; e->model.adapters != NULL && t < TOWERS; t++) {
        size_t n = adapters_marks(e->model.adapters, (enum tower)t).n;
        if (n == 0)
            continue;
        TRY(tensor_take(&memory, &e->model.memory, TENSOR_I32, "counts before a step", 1, &n, error));
        e->model.counts_before[t] = memory.data;
    }
    return guard_begin_task(e, error);
}

status guard_begin_task(struct experiment *e, struct error *error)
{
    return e->model.backend->ops->zero(e->model.backend, e->model.guard, sizeof *e->model.guard, error);
}

/* --- A step --- */

static bool skips(const struct task *task)
{
    return task->settings.on_nan == ON_NAN_SKIP;
}

status guard_begin_step(struct experiment *e, const struct task *task, struct error *error)
{
    const struct backend_ops *ops = e->model.backend->ops;
    if (!skips(task))
        return OK;
    TRY(ops->zero(e->model.backend, &e->model.guard->held, sizeof e->model.guard->held, error));
    for (int t = 0; e->model.adapters != NULL && t < TOWERS; t++) {
        struct adapter_marks marks = adapters_marks(e->model.adapters, (enum tower)t);
        if (marks.n == 0)
            continue;
        TRY(ops->copy(e->model.backend, e->model.counts_before[t], marks.counts, marks.n * sizeof(int32_t), error));
    }
    return OK;
}

static status find(const struct experiment *e, const float *values, size_t n, int32_t *found, struct error *error)
{
    return e->model.backend->ops->find_not_finite(
        e->model.backend, &(struct find_not_finite){.n = n, .values = values, .found = found}, error);
}

status guard_end_step(struct experiment *e, const struct task *task, struct error *error)
{
    struct trained_group group;
    struct hold_step hold = {.guard = e->model.guard, .state = e->model.state};
    TRY(find(e, e->model.loss, 1, &e->model.guard->held, error));
    for (size_t i = 0; trained_group_at(e, i, &group); i++)
        TRY(parameters_find_not_finite(group.parameters, &e->model.guard->held, error));
    for (int t = 0; skips(task) && e->model.adapters != NULL && t < TOWERS; t++) {
        struct adapter_marks marks = adapters_marks(e->model.adapters, (enum tower)t);
        hold.lists[t].n = marks.n;
        hold.lists[t].counts = marks.counts;
        hold.lists[t].before = e->model.counts_before[t];
    }
    return e->model.backend->ops->hold_step(e->model.backend, &hold, error);
}

struct update_rule guard_rule(const struct experiment *e, const struct task *task, struct update_rule rule)
{
    rule.guard = e->model.guard;
    rule.clear_held = skips(task);
    return rule;
}

/* --- Results --- */

static status read_guard(const struct experiment *e, struct step_guard *guard, struct error *error)
{
    return e->model.backend->ops->download(e->model.backend, guard, e->model.guard, sizeof *guard, error);
}

/* Which array of a tensor is checked. */
enum part { PART_GRADIENT, PART_VALUE, PART_FIRST_MOMENT, PART_SECOND_MOMENT, PARTS };

static const char *const part_names[PARTS] = {"gradient", "value", "first moment", "second moment"};

/* NULL: the group does not have it. */
static const float *part_of(const struct parameters *group, enum part part)
{
    const float *const parts[PARTS] = {group->gradients, group->values, group->first_moment, group->second_moment};
    return parts[part];
}

/* Under its name in files. */
struct trained_tensor {
    char name[128];
    const struct parameters *group;
    size_t offset, size;
};

static bool trained_parameter_at(const struct parameters *group, size_t index, struct trained_tensor *tensor)
{
    if (index >= group->count)
        return false;
    const struct parameter *p = &group->list[index];
    *tensor = (struct trained_tensor){.group = group, .offset = p->offset, .size = p->size};
    snprintf(tensor->name, sizeof tensor->name, "%s", p->name);
    return true;
}

static bool trained_tensor_at(const struct experiment *e, size_t index, struct trained_tensor *tensor)
{
    size_t towers = e->model.groups & GROUPS_TOWERS ? e->model.clip->parameters->count : 0,
           adapters = e->model.groups & GROUP_ADAPTERS ? adapters_tensor_count(e->model.adapters) : 0;
    if (index < adapters) {
        struct adapter_tensor t;
        adapters_tensor_at(e->model.adapters, index, &t);
        *tensor = (struct trained_tensor){
            .group = e->model.adapters->towers[t.tower].parameters, .offset = t.offset, .size = t.size};
        snprintf(tensor->name, sizeof tensor->name, "%s", t.name);
        return true;
    }
    index -= adapters;
    if (index < towers)
        return trained_parameter_at(e->model.clip->parameters, index, tensor);
    return e->model.groups & GROUP_HEAD && trained_parameter_at(e->model.head->parameters(e), index - towers, tensor);
}

static status is_finite(const struct trained_tensor *tensor, enum part part, bool *finite, struct error *error)
{
    const struct backend_ops *ops = tensor->group->backend->ops;
    float *values = xmalloc(array_size(tensor->size, sizeof *values));
    status result = ops->download(tensor->group->backend, values, part_of(tensor->group, part) + tensor->offset,
                                  tensor->size * sizeof *values, error);
    *finite = not_finite_at(values, tensor->size) == tensor->size;
    free(values);
    return result;
}

/* "gradient of visual.transformer.resblocks.0.…", of the first tensor that is not finite; otherwise where there is
 * none. */
static status name_first(const struct experiment *e, enum part first, enum part last, const char *otherwise, char *name,
                         size_t capacity, struct error *error)
{
    struct trained_tensor tensor;
    bool finite = true;
    snprintf(name, capacity, "%s", otherwise);
    for (size_t i = 0; finite && trained_tensor_at(e, i, &tensor); i++)
        for (enum part part = first; finite && part <= last; part++) {
            if (part_of(tensor.group, part) == NULL)
                continue;
            TRY(is_finite(&tensor, part, &finite, error));
            if (!finite)
                snprintf(name, capacity, "%s of %s", part_names[part], tensor.name);
        }
    return OK;
}

static status held_step(const struct experiment *e, const struct task *task, const struct step_guard *guard,
                        struct error *error)
{
    char name[192];
    TRY(name_first(e, PART_GRADIENT, PART_GRADIENT, "loss", name, sizeof name, error));
    return error_set(
        error, ERROR_FORMAT,
        "%s: iteration %d: the loss or its gradients are not finite (the %s); lower training.learning_rate "
        "(it peaks at %g), lengthen training.warmup, or leave such iterations out with "
        "training.on_nan=skip",
        task->settings.name, guard->first, name, task->settings.rate);
}

status guard_check_steps(const struct experiment *e, const struct task *task, struct error *error)
{
    struct step_guard guard;
    if (skips(task))
        return OK;
    TRY(read_guard(e, &guard, error));
    return guard.held ? held_step(e, task, &guard, error) : OK;
}

status guard_check(const struct experiment *e, const struct task *task, size_t iteration, struct error *error)
{
    struct trained_group group;
    struct step_guard guard;
    char name[192];
    if (skips(task)) /* clears what the last step found */
        TRY(e->model.backend->ops->zero(e->model.backend, &e->model.guard->held, sizeof e->model.guard->held, error));
    for (size_t i = 0; trained_group_at(e, i, &group); i++)
        for (enum part part = PART_VALUE; part < PARTS; part++)
            if (part_of(group.parameters, part) != NULL)
                TRY(find(e, part_of(group.parameters, part), group.parameters->values_count, &e->model.guard->held,
                         error));
    TRY(read_guard(e, &guard, error));
    if (!guard.held)
        return OK;
    if (guard.first > 0 && !skips(task))
        return held_step(e, task, &guard, error);
    TRY(name_first(e, PART_VALUE, PART_SECOND_MOMENT, "model", name, sizeof name, error));
    return error_set(error, ERROR_FORMAT,
                     "%s: after iteration %zu the %s is not finite; lower training.learning_rate (it peaks at %g) or "
                     "lengthen training.warmup",
                     task->settings.name, iteration, name, task->settings.rate);
}

status guard_skipped(const struct experiment *e, size_t *steps, size_t *first, struct error *error)
{
    struct step_guard guard;
    TRY(read_guard(e, &guard, error));
    *steps = (size_t)guard.skipped;
    *first = (size_t)guard.first;
    return OK;
}

status guard_finite(const struct experiment *e, const float *values, size_t n, bool *finite, struct error *error)
{
    int32_t found;
    TRY(e->model.backend->ops->zero(e->model.backend, e->model.found, sizeof *e->model.found, error));
    TRY(find(e, values, n, e->model.found, error));
    TRY(e->model.backend->ops->download(e->model.backend, &found, e->model.found, sizeof found, error));
    *finite = !found;
    return OK;
}

status guard_images(const struct guarded_images *images, struct error *error)
{
    size_t at = not_finite_at(images->features, images->n * images->width);
    if (at == images->n * images->width)
        return OK;
    size_t place = images->first + at / images->width, item = images->items != NULL ? images->items[place] : place;
    char *name = dataset_item_name(images->dataset, images->split, item);
    error_set(
        error, ERROR_FORMAT,
        "%s: image %s: its features are not finite: numbers overflow on their way through the model; are these the "
        "right weights?",
        dataset_name(images->dataset), name != NULL ? name : "?");
    free(name);
    return ERROR_FORMAT;
}

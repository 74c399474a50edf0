#include "harness/methods/weights/start.h"

#include <stdio.h>

#include "harness/model/model.h"

status average_open(struct average *average, const struct parameters *group, struct arena *arena, struct error *error)
{
    struct tensor values;
    TRY(tensor_take(&values, arena, TENSOR_F32, "earlier weights", 1, &group->values_count, error));
    *average = (struct average){.values = values.data};
    return OK;
}

status average_start(struct average *average, const struct parameters *group, struct error *error)
{
    average->count = 1;
    return group->backend->ops->copy(group->backend, average->values, group->values,
                                     group->values_count * sizeof *group->values, error);
}

/* to += weight · (other − to) */
static status approach(const struct parameters *group, float *to, const float *other, float weight, struct error *error)
{
    return group->backend->ops->weighted_sum(group->backend,
                                             &(struct weighted_sum){.count = 3,
                                                                    .n = group->values_count,
                                                                    .inputs = {to, other, to},
                                                                    .weights = {1, weight, -weight},
                                                                    .out = to},
                                             error);
}

status average_add(struct average *average, const struct parameters *group, struct error *error)
{
    average->count++;
    return approach(group, average->values, group->values, 1.0f / (float)average->count, error);
}

status average_apply(struct average *average, struct parameters *group, float alpha, struct error *error)
{
    average->count = 0;
    return approach(group, parameters_write_all(group), average->values, 1.0f - alpha, error);
}

status average_keep(struct average *average, const struct parameters *group, const char *name,
                    const struct serializer *serializer, struct error *error)
{
    char count[64];
    snprintf(count, sizeof count, "%s.count", name);
    TRY(serializer_host(serializer, count, SAFETENSOR_I32, 1, &average->count, error));
    if (average->count == 0)
        return OK;
    return serializer_device(serializer, name, SAFETENSOR_F32, group->values_count, average->values, error);
}

status penalty_add(const struct parameters *group, const float *anchor, const float *importance, float strength,
                   float *loss, struct error *error)
{
    return group->backend->ops->penalty(group->backend,
                                        &(struct penalty){.n = group->values_count,
                                                          .values = group->values,
                                                          .anchor = anchor,
                                                          .importance = importance,
                                                          .strength = strength,
                                                          .gradients = group->gradients,
                                                          .loss = loss},
                                        error);
}

struct parameters *weights_of(const struct method_run *run)
{
    return run->model->clip->parameters;
}

status start_open(struct method_run *run, struct error *error)
{
    return average_open(run->state, weights_of(run), run->memory, error);
}

status start_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    if (resumed)
        return OK;
    TRY(average_start(run->state, weights_of(run), error));
    return trained_groups_reset(run->model, error);
}

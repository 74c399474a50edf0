#include "harness/train/services/average.h"

status average_open(struct average *average, const struct parameters *group, struct arena *arena, struct error *error)
{
    struct tensor values;
    TRY(tensor_take(&values, arena, TENSOR_F32, "a copy of the weights", 1, &group->values_count, error));
    average->values = values.data;
    return average_start(average, group, error);
}

static status copy(const struct parameters *group, float *to, const float *from, struct error *error)
{
    return group->backend->ops->copy(group->backend, to, from, group->values_count * sizeof *to, error);
}

/* to += weight · (other − to) */
static status approach(const struct parameters *group, float *to, const float *other, float weight, struct error *error)
{
    return group->backend->ops->blend(group->backend,
                                      &(struct blend){.count = 3,
                                                      .n = group->values_count,
                                                      .inputs = {to, other, to},
                                                      .weights = {1, weight, -weight},
                                                      .out = to},
                                      error);
}

status average_start(struct average *average, const struct parameters *group, struct error *error)
{
    average->count = 1;
    return copy(group, average->values, group->values, error);
}

status average_add(struct average *average, const struct parameters *group, struct error *error)
{
    average->count++;
    return approach(group, average->values, group->values, 1.0f / (float)average->count, error);
}

status average_apply(const struct average *average, struct parameters *group, struct error *error)
{
    return copy(group, group->values, average->values, error);
}

status average_mix(const struct average *average, struct parameters *group, float alpha, struct error *error)
{
    return approach(group, group->values, average->values, 1.0f - alpha, error);
}

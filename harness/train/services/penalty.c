#include "harness/train/services/penalty.h"

status penalty_open(struct penalty_term *penalty, const struct parameters *group, struct arena *arena,
                    struct error *error)
{
    struct tensor anchor;
    TRY(tensor_take(&anchor, arena, TENSOR_F32, "anchor of the weights", 1, &group->values_count, error));
    penalty->anchor = anchor.data;
    return penalty_anchor(penalty, group, error);
}

status penalty_anchor(const struct penalty_term *penalty, const struct parameters *group, struct error *error)
{
    return group->backend->ops->copy(group->backend, penalty->anchor, group->values,
                                     group->values_count * sizeof *group->values, error);
}

status penalty_add(const struct penalty_term *penalty, const struct parameters *group, float strength, float *loss,
                   struct error *error)
{
    return group->backend->ops->penalty(group->backend,
                                        &(struct penalty){.n = group->values_count,
                                                          .values = group->values,
                                                          .anchor = penalty->anchor,
                                                          .strength = strength,
                                                          .gradients = group->gradients,
                                                          .loss = loss},
                                        error);
}

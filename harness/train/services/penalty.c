#include "harness/train/services/penalty.h"

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

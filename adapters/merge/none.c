/* No merging: MoE-Adapters (CVPR 2024). Also the template for a policy: copy this file, fill plan, declare the table in
 * policies.h and list it in ../merge_policy.c. */
#include "adapters/merge/policies.h"

static status plan(const struct merge_view *view, const struct options *options, struct rng rng,
                   struct merge_list *list, struct error *error)
{
    (void)view;
    (void)options;
    (void)rng;
    (void)list;
    (void)error;
    return OK;
}

const struct merge_policy merge_none = {
    .name = "none", .source = "MoE-Adapters, CVPR 2024", .needs = NEEDS_NOTHING, .plan = plan};

/* No merging: MoE-Adapters (CVPR 2024). Also the template for a policy: copy this file, fill plan, and add the name to
 * policies.h. */
#include "adapters/merge/policies.h"

static status plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list,
                   struct error *error)
{
    (void)view;
    (void)call;
    (void)list;
    (void)error;
    return OK;
}

const struct merge_policy policy_none = {
    .name = "none", .source = "MoE-Adapters, CVPR 2024", .formula = "no merge", .plan = plan};

/* No merging: MoE-Adapters (CVPR 2024). A policy without plan and after_step reads no other key of merge and combine. Also the
 * template for a policy: copy this file, give it a plan (adapters/merge.h), and add the name to policies.h. */
#include "adapters/merge/policies.h"

const struct merge_policy policy_none = {.name = "none", .source = "MoE-Adapters, CVPR 2024", .formula = "no merge"};

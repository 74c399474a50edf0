/* Mixture-of-experts adapters in sequence: MoE-Adapters (Yu et al., CVPR 2024, arXiv 2403.11549) with merge policy
 * none, Park's system with most_used. Method merge_experts is the same with a merge policy other than none, for tables
 * in which merging is a row of its own. */
#include "adapters/merge/policies.h"
#include "harness/methods/methods.h"
#include "harness/train/services/merging.h"

static status open_merging(struct method_run *run, struct error *error)
{
    if (run->model->settings.merge.policy == &policy_none)
        return error_set(
            error, ERROR_ARGUMENT,
            "merge.policy: method merge_experts merges, but the policy is none; name another one (mtil list "
            "policies), or use method.name=moe_adapters, which is the same without merging");
    return merging_open(run, error);
}

#define FORMULA                                                                                                           \
    "x ← x + MLP(ln_2 x) + Σ_k g_k ε_k(x), g = softmax of the top_k largest of x₀R_t + n ⊙ (softplus(x₀N_t) + " \
    "noise_epsilon), n = 0 in tests; loss = training.loss"
#define HOOKS                                                                                                          \
    .sections = {"merge", "combine", "selector"}, .state_size = sizeof(struct merging), .trains = GROUP_ADAPTERS,      \
    .close = merging_close, .begin_task = merging_begin_task, .after_step = merging_after_step,                        \
    .end_task = merging_end_task, .keep = merging_keep

const struct method method_moe_adapters = {.name = "moe_adapters",
                                           .source = "MoE-Adapters, CVPR 2024; with merging, Park",
                                           .formula = FORMULA,
                                           .open = merging_open,
                                           HOOKS};

const struct method method_merge_experts = {.name = "merge_experts",
                                            .source = "Park, merging experts of MoE-Adapters",
                                            .formula =
                                                FORMULA "; experts are merged by merge.policy, which is not none",
                                            .open = open_merging,
                                            HOOKS};

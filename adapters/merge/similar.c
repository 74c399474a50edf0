/* The two experts whose outputs on the probes are most alike replace the least used one that is not frozen; ties: the
 * lowest first expert, then the lowest second one. */
#include "adapters/merge/policies.h"

static void most_alike(const float *similarity, size_t experts, int pair[2])
{
    pair[0] = 0;
    pair[1] = 1;
    for (size_t e = 0; e < experts; e++)
        for (size_t f = e + 1; f < experts; f++)
            if (similarity[e * experts + f] > similarity[(size_t)pair[0] * experts + (size_t)pair[1]]) {
                pair[0] = (int)e;
                pair[1] = (int)f;
            }
}

static status plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list,
                   struct error *error)
{
    (void)call;
    if (view->experts < 2)
        return OK;
    for (size_t block = 0; block < view->blocks; block++) {
        struct merge merge = {.block = block, .sources = 2};
        most_alike(view->similarity + block * view->experts * view->experts, view->experts, merge.source);
        merge_onto_least_used(view, &merge);
        TRY(merge_list_add(list, &merge, error));
    }
    return OK;
}

const struct merge_policy policy_similar = {.name = "similar",
                                            .source = "cosine of outputs; compare Li et al., ICLR 2024 (M-SMoE)",
                                            .needs = NEEDS_SIMILARITY,
                                            .plan = plan};

/* Two random experts replace a random one that is not frozen: the control that shows whether usage matters. */
#include <stdlib.h>

#include "adapters/merge/policies.h"

/* The draw'th of the experts that `taken` leaves; −1: none. */
static int draw(const struct rng *rng, uint64_t index, const bool *taken, size_t experts)
{
    uint32_t left = 0;
    for (size_t e = 0; e < experts; e++)
        left += !taken[e];
    if (left == 0)
        return -1;
    uint32_t number = rng_below(rng, index, left);
    for (size_t e = 0;; e++)
        if (!taken[e] && number-- == 0)
            return (int)e;
}

static status plan_block(const struct merge_view *view, size_t block, const struct rng *rng, bool *taken,
                         struct merge_list *list, struct error *error)
{
    const int32_t *frozen = view->frozen + block * view->experts;
    uint64_t index = ((uint64_t)view->tower << 32 | block) * 4; /* three draws a block */
    struct merge merge = {.block = block, .sources = 2};
    for (size_t e = 0; e < view->experts; e++)
        taken[e] = false;
    for (size_t i = 0; i < merge.sources; i++) {
        merge.source[i] = draw(rng, index + i, taken, view->experts);
        taken[merge.source[i]] = true;
    }
    for (size_t e = 0; e < view->experts; e++)
        taken[e] = taken[e] || frozen[e] != 0;
    merge.target = draw(rng, index + merge.sources, taken, view->experts);
    if (merge.target < 0)
        merge.skip = MERGE_NO_FREE_EXPERT;
    return merge_list_add(list, &merge, error);
}

static status plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list,
                   struct error *error)
{
    if (view->experts < 2)
        return OK;
    bool *taken = malloc(array_size(view->experts, sizeof *taken));
    status result =
        taken != NULL ? OK : error_set(error, ERROR_MEMORY, "merge: no memory for %zu experts", view->experts);
    for (size_t block = 0; result == OK && block < view->blocks; block++)
        result = plan_block(view, block, &call->rng, taken, list, error);
    free(taken);
    return result;
}

const struct merge_policy policy_random = {.name = "random", .source = "the control of a comparison", .plan = plan};

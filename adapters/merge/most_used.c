/* The most used experts replace the least used one: Park, Algorithm 1, lines 19 to 21, with two sources. Line 20 takes the least
 * used of all experts (target least_used_any); by default frozen ones are left out. */
#include "adapters/merge/policies.h"

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "sources", 2, MERGE_SOURCES, "2", "number of the most used experts that are merged"),
    MERGE_TARGET_OPTIONS("least_used"),
    {0}};

static void plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list)
{
    size_t sources = call->options != NULL ? (size_t)options_integer(call->options, "sources") : 2;
    if (view->experts < sources)
        return;
    for (size_t block = 0; block < view->blocks; block++) {
        struct merge merge = {.block = block, .sources = sources};
        highest_counts(view->counts + block * view->experts, view->experts, sources, merge.source);
        merge_choose_target(view, call, &merge);
        merge_list_add(list, &merge);
    }
}

const struct merge_policy policy_most_used = {.name = "most_used",
                                              .source =
                                                  "Park, Learning More Generalized Experts by Merging Experts in MoE",
                                              .formula = "target ← sources of the highest counts c_k since the task "
                                                         "began; target: the lowest count, by default of those that "
                                                         "are not frozen",
                                              .options = options,
                                              .plan = plan};

/* The two experts whose samples go on to the most similar experts of the next block replace the least used one that is
 * not frozen: future work in Park's paper. Similarity is the cosine of two rows of the next counts since the task began;
 * ties: the lowest first expert, then the lowest second one. The last block has no next counts and is never merged; nor is
 * a block in which no two experts share a next expert. */
#include <math.h>

#include "adapters/merge/policies.h"

/* The cosine rounded to float, so that rows that are multiples of each other tie. */
static double likeness(const struct merge_view *view, size_t block, size_t first, size_t second)
{
    if (block + 1 == view->blocks)
        return 0;
    const int32_t *a = view->next + (block * view->experts + first) * view->experts,
                  *b = view->next + (block * view->experts + second) * view->experts;
    double dot = 0, length_a = 0, length_b = 0;
    for (size_t e = 0; e < view->experts; e++) {
        dot += (double)a[e] * b[e];
        length_a += (double)a[e] * a[e];
        length_b += (double)b[e] * b[e];
    }
    return dot > 0 ? (double)(float)(dot / (sqrt(length_a) * sqrt(length_b))) : 0;
}

static const struct option options[] = {MERGE_TARGET_OPTIONS("least_used"), {0}};

static void plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list)
{
    merge_best_pairs(view, call, likeness, 0, list);
}

const struct merge_policy policy_downstream = {
    .name = "downstream",
    .source = "use of the next block's experts; future work of Park",
    .formula =
        "sources: the pair e < f of highest cos(n_e, n_f), n_e[k] = samples that chose e here and k in the next block",
    .needs = NEEDS_NEXT_COUNTS,
    .options = options,
    .plan = plan};

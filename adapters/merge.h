/* Merging experts during training, and freezing them after a task (Park, Algorithm 1; spec 4).
 *
 *     const struct merge_policy *policy;
 *     TRY(merge_policy_find(&policy, "most_used", error));
 *     if (iteration % every == 0)                                  // events: what was done or skipped
 *         TRY(adapters_merge(adapters, policy, options, MOMENTS_KEEP, rng, &events, error));
 *     ...
 *     TRY(adapters_freeze(adapters, 2, &events, error));                                       // after the task
 *
 * A policy looks at a tower and decides which expert becomes which mixture of which others; the bank carries it out.
 * One policy is one file in merge/ and one line in merge_policy.c; merge/none.c is the template to copy.
 */
#ifndef MTIL_ADAPTERS_MERGE_H
#define MTIL_ADAPTERS_MERGE_H

#include "adapters/adapter.h"
#include "core/option.h"
#include "core/rng.h"

enum { MERGE_SOURCES = BLEND_INPUTS };

enum merge_skip { MERGE_DONE, MERGE_TARGET_IS_SOURCE, MERGE_NO_FREE_EXPERT };

/* target becomes Σ weight[i] · source[i]; with a skip it says what would have been merged. target −1: none is free. */
struct merge {
    size_t block;
    int target;
    size_t sources;
    int source[MERGE_SOURCES];
    float weight[MERGE_SOURCES];
    enum merge_skip skip;
};

struct merge_list {
    size_t count, capacity;
    struct merge *merges;
};

/* A tower as a policy sees it: [blocks, E] each, on the host. */
struct merge_view {
    enum tower tower;
    size_t blocks, experts;
    const int32_t *counts; /* since the task began */
    const int32_t *frozen;
};

/* Statistics that the bank collects only when a policy asks for them. */
enum merge_needs { NEEDS_NOTHING = 0 };

struct merge_policy {
    const char *name, *source; /* source: where it is published */
    unsigned needs;
    const struct option *options;
    status (*plan)(const struct merge_view *view, const struct options *options, struct rng rng,
                   struct merge_list *list, struct error *error);
};

status merge_policy_find(const struct merge_policy **policy, const char *name, struct error *error);
const struct merge_policy *merge_policy_at(size_t index); /* NULL past the last one */

status merge_list_add(struct merge_list *list, const struct merge *merge, struct error *error);

/* What happens to Adam's moments and step count of the expert that is replaced. */
enum merge_moments { MOMENTS_KEEP, MOMENTS_AVERAGE, MOMENTS_RESET };
#define MERGE_MOMENTS_CHOICES "keep|average|reset"

enum expert_change_kind { CHANGE_MERGE, CHANGE_SKIP, CHANGE_FREEZE };

struct expert_change {
    enum expert_change_kind kind;
    enum tower tower;
    struct merge merge; /* of a freeze: source[0 … sources−1] are the experts picked, in order of rank */
};

struct expert_changes {
    size_t count, capacity;
    struct expert_change *changes;
};
void expert_changes_clear(struct expert_changes *events); /* keeps the memory */
void expert_changes_free(struct expert_changes *events);
const char *merge_skip_name(enum merge_skip skip); /* "", "target_is_source", "no_free_expert" */

/* Plans and carries out the merges of both towers, image first; appends an event for every merge and skip. */
status adapters_merge(struct adapters *adapters, const struct merge_policy *policy, const struct options *options,
                      enum merge_moments moments, struct rng rng, struct expert_changes *events, struct error *error);

/* The top_k highest counts of every block join its frozen set (ties: the lowest index); appends one event per block. */
status adapters_freeze(struct adapters *adapters, size_t top_k, struct expert_changes *events, struct error *error);

/* Indices of the n highest counts, highest first, ties: the lowest index. For policies. */
void highest_counts(const int32_t *counts, size_t experts, size_t n, int *highest);

#endif

/* Freezing experts after a task. Frozen experts are still used, but neither trained nor merged into. The frozen set of a
 * block only grows; an expert may be picked again.
 *
 *     struct freeze_plan plan = {.top_k = 2, .options = options};
 *     TRY(freeze_policy_find(&plan.policy, "most_used", error));
 *     TRY(adapters_freeze(adapters, &plan, rng, &events, error));                              // after the task
 *
 * One policy is one file in freeze/ and a name in FREEZE_POLICIES; freeze/none.c is the template to copy.
 */
#pragma once

#include "adapters/merge.h"

/* One block of a tower, on the host. */
struct freeze_view {
    enum tower tower;
    size_t block, experts;
    const int32_t *counts; /* [E] since the task began */
};

struct freeze_plan;

struct freeze_policy {
    const char *name, *source;
    const char *formula;          /* what defines it, in one line */
    const struct option *options; /* its keys under `adapter` */
    bool counts;                  /* it freezes adapter.freeze_top_k experts */
    /* Experts to freeze, in order of rank, in picked [E]; returns how many. */
    size_t (*pick)(const struct freeze_view *view, const struct freeze_plan *plan, const struct rng *rng, int *picked);
};

struct freeze_plan {
    const struct freeze_policy *policy;
    size_t top_k;                  /* adapter.freeze_top_k */
    const struct options *options; /* section adapter */
};

#define FREEZE_POLICIES(X) X(most_used) X(none) X(share) X(random)
#define DECLARE(name) extern const struct freeze_policy freeze_##name;
FREEZE_POLICIES(DECLARE)
#undef DECLARE

status freeze_policy_find(const struct freeze_policy **policy, const char *name, struct error *error);
const struct freeze_policy *freeze_policy_at(size_t index); /* NULL past the last one */

/* Freezes in all blocks of both towers, image first; appends events with at most MERGE_SOURCES experts each (NULL: not
 * wanted). rng is of the task. */
status adapters_freeze(struct adapters *adapters, const struct freeze_plan *plan, struct rng rng,
                       struct expert_changes *events, struct error *error);

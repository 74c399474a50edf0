/* All merge policies and all ways to combine experts: a new one is a file in this folder and a name here. */
#pragma once

#include "adapters/merge.h"
#include "adapters/merge/combine.h"

#define MERGE_POLICIES(X) X(none) X(most_used) X(random) X(similar) X(coactivated) X(downstream) X(ewa)
#define MERGE_COMBINERS(X) X(mean) X(weighted) X(fisher) X(ties) X(slerp) X(aligned)

#define DECLARE(name) extern const struct merge_policy policy_##name;
MERGE_POLICIES(DECLARE)
#undef DECLARE
#define DECLARE(name) extern const struct merge_combiner combine_##name;
MERGE_COMBINERS(DECLARE)
#undef DECLARE

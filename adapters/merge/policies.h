/* The policies' tables; one per file of this folder. */
#ifndef MTIL_ADAPTERS_MERGE_POLICIES_H
#define MTIL_ADAPTERS_MERGE_POLICIES_H

#include "adapters/merge.h"

extern const struct merge_policy merge_none, merge_most_used;

#endif

/* The sections of a suite on adapters and merging: tables of their keys, and their values as settings. */
#pragma once

#include "adapters/merge.h"

enum { ADAPTER_EXPERTS = 1024 }; /* at most in a block */

extern const struct option adapter_options[], merge_options[], combine_options[];

/* Conflicts between keys, such as top_k above experts, are errors here. drawn: the model has random weights. */
status adapter_settings_of(struct adapter_settings *settings, const struct options *adapter, size_t tasks, bool drawn,
                           struct error *error);

/* Options are borrowed. */
status merge_plan_of(struct merge_plan *plan, const struct options *merge, const struct options *combine,
                     struct error *error);

/* Refuses policies that would never merge with such adapters. */
status merge_plan_check(const struct merge_plan *plan, const struct adapter_settings *adapter, struct error *error);

status freeze_plan_of(struct freeze_plan *plan, const struct options *adapter, struct error *error);

/* The options that select runs of a database, shared by several commands.
 *
 *     static const struct option options[] = {OUTPUT_FORMAT_OPTION, FILTER_OPTIONS, {0}};
 *     struct query_filter filter = filter_read(call->options);        // borrows from the options
 */
#pragma once

#include "core/option.h"
#include "results/query.h"

#define FILTER_OPTIONS                                                                                                 \
    OPTION(TEXT, "run", NULL, "only the runs of these numbers: 1,4"),                                                  \
        OPTION(TEXT, "suite", NULL, "only runs of this suite"),                                                        \
        OPTION(TEXT, "setting", NULL,                                                                                  \
               "only runs of this setting, as in the suite: full_shot, few_shot, x_tail, class_incremental, "          \
               "open_domain, domain_incremental"),                                                                     \
        OPTION(TEXT, "method", NULL, "only runs of this method"),                                                      \
        OPTION(TEXT, "policy", NULL, "only runs of this merge policy"),                                                \
        OPTION(TEXT, "selector", NULL, "only runs of this selector"),                                                  \
        OPTION_ONE_OF("status", "running|stopped|finished|failed", NULL, "only runs in this state"),                   \
        OPTION(TEXT, "seed", NULL, "only runs of these seeds: 1,2"), OPTION(TEXT, "dataset", NULL, "only this task"),  \
        OPTION(TEXT, "since", NULL, "only runs started at this time (UTC) or later: 2026-01-31T12:00"),                \
        OPTION(TEXT, "where", NULL, "only runs with these settings: merge.every=50,training.batch=64"),                \
        OPTION(TEXT, "before", NULL, "only runs started before this time")

struct query_filter filter_read(const struct options *given);

/* The name of a filter that was given; NULL: none. */
const char *filter_given(const struct options *given);

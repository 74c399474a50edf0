/* The options that select runs of a database, shared by several commands.
 *
 *     static const struct option options[] = {OUTPUT_FORMAT_OPTION, FILTER_OPTIONS, {0}};
 *     struct query_filter filter = filter_read(call->options);        // borrows from the options
 */
#pragma once

#include "core/option.h"
#include "results/query.h"

#define FILTER_OPTIONS                                                                                                 \
    {.name = "run", .type = OPTION_TEXT, .help = "only the runs of these numbers: 1,4"},                               \
        {.name = "suite", .type = OPTION_TEXT, .help = "only runs of this suite"},                                     \
        {.name = "setting",                                                                                            \
         .type = OPTION_TEXT,                                                                                          \
         .help = "only runs of this setting, as in the suite: full_shot, few_shot, x_tail, class_incremental, "        \
                 "open_domain, "                                                                                       \
                 "domain_incremental"},                                                                                \
        {.name = "method", .type = OPTION_TEXT, .help = "only runs of this method"},                                   \
        {.name = "policy", .type = OPTION_TEXT, .help = "only runs of this merge policy"},                             \
        {.name = "selector", .type = OPTION_TEXT, .help = "only runs of this selector"},                               \
        {.name = "status",                                                                                             \
         .type = OPTION_CHOICE,                                                                                        \
         .choices = "running|stopped|finished|failed",                                                                 \
         .help = "only runs in this state"},                                                                           \
        {.name = "seed", .type = OPTION_TEXT, .help = "only runs of these seeds: 1,2"},                                \
        {.name = "dataset", .type = OPTION_TEXT, .help = "only this task"},                                            \
        {.name = "since",                                                                                              \
         .type = OPTION_TEXT,                                                                                          \
         .help = "only runs started at this time (UTC) or later: 2026-01-31T12:00"},                                   \
        {.name = "where",                                                                                              \
         .type = OPTION_TEXT,                                                                                          \
         .help = "only runs with these settings: merge.every=50,training.batch=64"},                                   \
    {                                                                                                                  \
        .name = "before", .type = OPTION_TEXT, .help = "only runs started before this time"                            \
    }

struct query_filter filter_read(const struct options *given);

/* The name of a filter that was given; NULL: none. */
const char *filter_given(const struct options *given);

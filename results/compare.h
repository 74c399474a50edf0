/* Compares policies (methods, settings, …): which is better, by how much, and whether the seeds support it.
 *
 *     const char *by[] = {"policy"}, *metrics[] = {"transfer", "average", "last"};
 *     struct comparison_request request = {.by = by, .by_count = 1, .metrics = metrics, .metric_count = 3};
 *     struct comparison comparison;
 *     TRY(compare_runs(store, &request, &comparison, error));
 *     TRY(compare_table(&comparison, COMPARE_PAIRS, &table, error));
 *     comparison_free(&comparison);
 *
 * A context holds runs that differ only in the compared settings and in the seed. A group is one configuration of a
 * context; its runs differ in the seed alone. A question is about two names of groups (or an effect of two factors) and one
 * metric, whatever the number of contexts; it has one test, one interval and one verdict, and all questions are one family.
 * Accuracies are in percent, differences in points. The statistics are functions of SQL (METRICS.md) over the connection's
 * temporary tables:
 *
 *     observed    context, seed, grp, metric, dataset, value      what tests are functions of; dataset 0: the mean over tasks
 *     question    question, factor, baseline, other               term: the groups of each, by context, and their weights
 *     difference  question, context, metric, dataset, seed, value
 *     cell        the samples that an answer is made of; summed: their sum, its deviation and degrees of freedom
 *     detail      a question in one context; pair: in all of them, corrected
 *     sample, imaged, discordance, note                           groups, images, and what to know
 *
 * The answer is their views answer_contexts, answer_groups, answer_pairs, answer_details, answer_images, answer_discordance,
 * answer_words and answer_notes (the part `parts` of compare/answers.sql), in order, with the columns of the parts below.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "results/query.h"
#include "results/store.h"
#include "results/table.h"

enum comparison_detail {
    COMPARE_MEANS,    /* metrics, means over tasks */
    COMPARE_DATASETS, /* and each task separately */
    COMPARE_IMAGES    /* and each test image after the last task */
};

#define COMPARE_ALL_PAIRS "all"

/* Everything is borrowed for the call. */
struct comparison_request {
    /* A filter without a status chooses finished runs; with a dataset, details are of that task alone. incidental:
     * whether a suite key with this value changes only how results are computed, not the results; NULL: no key does. */
    struct query_filter filter;
    const char *const *by; /* policy, method, selector, setting, order, model, suite, row, or suite keys: merge.every */
    size_t by_count;       /* several keys: a group is a combination of their values */
    const char *const *metrics; /* names of metrics.h */
    size_t metric_count;        /* 0: Transfer, Average and Last, and others with their tag */
    /* Name of the group that the others are compared with. "all": every pair. NULL: a usual baseline, none or
     * zero-shot, that every context has, else every pair. */
    const char *baseline;
    const char *const *only; /* [only_count] names of the groups to compare, in the tests too; 0: all */
    size_t only_count;
    enum comparison_detail detail;
    const char *primary; /* the metric that is tested before the others; NULL: all alike */
    double equivalence;  /* points within which two groups count as equal; 0: not asked */
    bool unpaired;       /* runs of one seed are as independent as others */
    bool factors;        /* by has two settings: their main effects and interaction, in place of pairs */
    double detect;       /* points to detect, for seeds_needed; 0: not asked */
    uint64_t seed;       /* of random draws */
    size_t draws;        /* of the bootstrap; 0: BOOTSTRAP_DRAWS */
};

/* The rows are in the store's connection until its next comparison. */
struct comparison {
    struct store *store;
    char *by; /* "policy" */
};

/* The caller frees with comparison_free, before the store is closed. ERROR_ARGUMENT for an unknown metric, key or
 * baseline (the message lists the known ones) and when no run is left to compare. */
status compare_runs(struct store *store, const struct comparison_request *request, struct comparison *comparison,
                    struct error *error);
void comparison_free(struct comparison *comparison);

enum comparison_part {
    COMPARE_CONTEXTS, /* their numbers, from 1, and names */
    COMPARE_GROUPS,
    COMPARE_PAIRS,       /* an answer per question: other − baseline, over all contexts */
    COMPARE_DETAILS,     /* the same in each context, where there are several; not corrected */
    COMPARE_PER_IMAGE,   /* after the last task, over the seeds that kept results per image */
    COMPARE_DISCORDANCE, /* McNemar's test of one seed and task */
    COMPARE_WORDS,       /* of the answers */
    COMPARE_NOTES        /* what was left out and why, in words */
};

/* A part as a table, without rows where the comparison lacks it. Columns that would be the same in all rows, context
 * and dataset, are left out. */
status compare_table(const struct comparison *comparison, enum comparison_part part, struct table *table,
                     struct error *error);

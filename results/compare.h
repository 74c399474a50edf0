/* Compares policies (methods, settings, …): which is better, by how much, and whether the seeds support it.
 *
 *     const char *by[] = {"policy"}, *metrics[] = {"transfer", "average", "last"};
 *     struct comparison_request request = {.by = by, .by_count = 1, .metrics = metrics, .metric_count = 3};
 *     struct comparison comparison;
 *     TRY(compare_runs(store, &request, &comparison, error));
 *     for (size_t i = 0; i < comparison.pair_count; i++)
 *         use(comparison.pair[i].difference, comparison.pair[i].words);
 *     TRY(compare_table(&comparison, COMPARE_PAIRS, &table, error));     // or the same as a table
 *     comparison_free(&comparison);
 *
 * A context holds runs that differ only in the compared settings and in the seed. A group is one configuration of a
 * context; its runs differ in the seed alone. Two groups of a context are paired by seed. Accuracies are in percent,
 * differences in points. The statistics are in statistics.h, permutation.h and bootstrap.h.
 */
#ifndef MTIL_RESULTS_COMPARE_H
#define MTIL_RESULTS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "results/metrics.h"
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
    struct query_filter filter; /* without a status: finished runs; with a dataset: details of that task alone */
    const char *const *by; /* policy, method, selector, setting, order, model, suite, row, or suite keys: merge.every */
    size_t by_count;       /* several keys: a group is a combination of their values */
    const char *const *metrics; /* names of metrics.h */
    size_t metric_count;
    /* Name of the group that the others are compared with. "all": every pair. NULL: a usual baseline, none or
     * zero-shot, that every context has, else every pair. */
    const char *baseline;
    const char *const *only; /* [only_count] names of the groups to compare, in the tests too; 0: all */
    size_t only_count;
    enum comparison_detail detail;
    double detect; /* points to detect, for seeds_needed; 0: not asked */
    uint64_t seed; /* of random draws */
    size_t draws;  /* of the bootstrap; 0: BOOTSTRAP_DRAWS */
    /* Whether a suite key with this value changes only how results are computed, not the results; NULL: no key does. */
    bool (*incidental)(const char *key, const char *value);
};

/* The settings in which a context differs from the others: "merge.every = 50"; "" when there is only one. */
struct comparison_context {
    char *name;
};

struct comparison_group {
    size_t context;
    char *name; /* the compared values: "most_used"; further differences from another group in parentheses */
    size_t runs;
    int64_t *run, *seed; /* [runs], by seed */
};

/* One group's values of one metric, over its runs. */
struct comparison_sample {
    size_t group;
    const struct metric *metric;
    const char *dataset; /* NULL: the mean over all tasks. Borrowed from the comparison */
    size_t n;
    double *value;              /* [n], in the order of the group's seeds; owned */
    double mean, sd, low, high; /* 95% interval of the mean (Student); NAN where n is too small */
};

/* Two groups of a context over their common seeds; differences are other − baseline. */
struct comparison_pair {
    size_t baseline, other; /* groups */
    const struct metric *metric;
    const char *dataset;
    size_t n;                         /* seeds in common */
    double difference, sd, low, high; /* mean, its standard deviation and 95% interval */
    double median;                    /* Hodges–Lehmann */
    double p_permutation, p_wilcoxon, p_t;
    double p_holm;       /* p_permutation, corrected for all pairs of this comparison; each detail is a family */
    double effect;       /* Cohen's d_z with Hedges' correction; NAN for n < 3 */
    size_t seeds_needed; /* for request.detect with 80% power and an exact p of 0.05; 0: not asked, or unknown */
    char *words;         /* the conclusion */
};

/* Two groups over all contexts that have both. Each context is a comparison of its own. */
struct comparison_overview {
    size_t baseline, other; /* groups in the first of these contexts, for their names */
    const struct metric *metric;
    size_t contexts, above, below;           /* number of contexts; with other above baseline; below it */
    size_t supported_above, supported_below; /* of those, with p_holm ≤ 0.05 */
    double difference, least, most;          /* mean, least and greatest over contexts */
    size_t first;                            /* its first pair */
};

/* Errors after the last task by cause, in percent of the test images. NAN: predictions were not kept, or there is no
 * selector. */
struct comparison_errors {
    double router, class; /* wrong router; right router but wrong class */
};

/* Two groups image by image after the last task, over the seeds that kept results per image. */
struct comparison_images {
    size_t baseline, other;
    const char *dataset; /* NULL: the mean over all tasks */
    size_t seeds, images;
    double difference, low, high;       /* 95% interval of the bootstrap over seeds and images */
    struct comparison_errors errors[2]; /* of baseline, of other */
};

/* One seed's images of one task: McNemar's test. */
struct comparison_discordance {
    size_t baseline, other;
    const char *dataset;
    int64_t seed;
    size_t images, only_baseline, only_other; /* right in one group alone */
    double p, p_holm;
};

struct comparison {
    char *by;       /* "policy" */
    char **dataset; /* names, borrowed by the rows */
    size_t dataset_count;
    struct comparison_context *context;
    size_t context_count;
    struct comparison_group *group; /* by context, then as the names sort */
    size_t group_count;
    struct comparison_sample *sample; /* by context, metric and dataset; the groups of each one after another */
    size_t sample_count;
    struct comparison_pair *pair;
    size_t pair_count;
    struct comparison_overview *overview; /* pairs that several contexts have */
    size_t overview_count;
    struct comparison_images *images;
    size_t images_count;
    struct comparison_discordance *discordance;
    size_t discordance_count;
    char **note; /* what was left out and why, in words */
    size_t note_count;
};

/* The caller frees with comparison_free. ERROR_ARGUMENT for an unknown metric, key or baseline (the message lists the
 * known ones) and when no run is left to compare. */
status compare_runs(struct store *store, const struct comparison_request *request, struct comparison *comparison,
                    struct error *error);
void comparison_free(struct comparison *comparison);

enum comparison_part {
    COMPARE_CONTEXTS, /* their numbers, from 1, and names */
    COMPARE_GROUPS,
    COMPARE_PAIRS,
    COMPARE_PER_IMAGE,
    COMPARE_DISCORDANCE,
    COMPARE_WORDS, /* of the pairs */
    COMPARE_OVERVIEW,
    COMPARE_NOTES
};

/* A part as a table, without rows where the comparison lacks it. */
status compare_table(const struct comparison *comparison, enum comparison_part part, struct table *table,
                     struct error *error);

#endif

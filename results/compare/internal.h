/* Shared by the files of a comparison; other folders include compare.h alone.
 *
 * read.c reads runs, their test sets and metrics; contexts.c finds the settings that differ and makes contexts and
 * groups; match.c pairs the groups to compare; pairs.c does the statistics over seeds, overview.c counts their results
 * over contexts, images.c does the statistics over images; words.c puts results into words, table.c into tables.
 */
#ifndef MTIL_RESULTS_COMPARE_INTERNAL_H
#define MTIL_RESULTS_COMPARE_INTERNAL_H

#include "results/compare.h"
#include "results/store/contents.h"
#include "results/store/setting_values.h"

#define COMPARE_LEVEL 0.05
#define COMPARE_CONFIDENCE 0.95
#define COMPARE_POWER 0.8

struct compared_run {
    int64_t run, seed;
    size_t tasks;
    size_t *dataset;  /* [tasks]: index among the comparison's datasets; points into compare.dataset */
    int64_t *images;  /* [tasks]: test images */
    double *value;    /* [metrics, datasets + 1]: of each dataset, then the mean over tasks; NAN */
    bool complete;    /* whether the matrix is complete */
    bool routed;      /* a selector chose its routers */
    bool accumulates; /* class-incremental: accuracy_matrix.images */
    bool untrained;   /* zero-shot CLIP, which no task changes */
};

/* Runs that differ in the seed alone: [first, first + runs) of compare.run. */
struct configuration {
    char *name; /* the compared values, joined */
    char **by;  /* [by_count] the same, one by one */
    char *key;  /* settings and test sets that a context has in common */
    struct setting_values values;
    size_t first, runs, context;
};

/* A comparison in the making. */
struct compare {
    struct store *store;
    const struct comparison_request *request;
    struct comparison *result;
    struct run_contents contents;
    const char *baseline;     /* a group's name, NULL: every pair */
    struct compared_run *run; /* [runs], by configuration and seed */
    size_t runs;
    struct configuration *configuration; /* [configurations] in the order of the result's groups once those are made */
    size_t configurations;               /* with a run; they come first */
    size_t made;                         /* configurations with and without a run */
    size_t *dataset;                     /* [sum of tasks], for the runs */
    int64_t *images;
    double *values;
    size_t images_noted; /* pairs with missing images, noted or not */
};

/* Index of a metric's value in a run: a dataset's or, after the datasets, the mean's. */
static inline size_t compare_place(const struct compare *c, size_t metric, size_t dataset)
{
    return metric * (c->result->dataset_count + 1) + dataset;
}

/* The suite keys that a word like "policy" stands for, separated by '|'; "*": all keys. A key stands for itself. */
const char *compare_by_keys(const char *name);

/* Whether it does not matter that a suite key is a in one run and b in another; NULL: no value. */
bool compare_is_incidental(const struct comparison_request *request, const char *key, const char *a, const char *b);

/* Whether a suite key is compared, by name or through a word like "policy". */
bool compare_is_by(const struct comparison_request *request, const char *key);

status compare_read(struct compare *c, struct error *error);
status compare_make_contexts(struct compare *c, struct error *error);
status compare_make_samples(struct compare *c, struct error *error);
status compare_make_pairs(struct compare *c, struct error *error);
status compare_make_overview(struct compare *c, struct error *error);
status compare_make_images(struct compare *c, struct error *error);

/* End of the configurations, or groups, of the context that begins at `begin`. */
size_t compare_context_end(const struct compare *c, size_t begin);

/* Sets the requested baseline, or a usual one that every context has and that a note names. */
status compare_choose_baseline(struct compare *c, struct error *error);

/* Checks that the baseline is known. *feasible: there are not too many pairs; otherwise a note says so. */
status compare_check_pairs(struct compare *c, bool *feasible, struct error *error);

/* Calls make for every pair of groups to compare, baseline first. */
typedef status compare_two(struct compare *c, size_t baseline, size_t other, struct error *error);
status compare_each_pair(struct compare *c, compare_two *make, struct error *error);
size_t compare_pair_count(const struct compare *c);

/* Common seeds of two configurations, as indices of their runs. The caller frees the *n seeds. */
struct common_seed {
    size_t baseline, other;
};
status compare_common_seeds(const struct compare *c, size_t baseline, size_t other, struct common_seed **seeds,
                            size_t *n, struct error *error);

/* The conclusion of a pair in words. The caller frees; NULL when out of memory. family: number of tests corrected
 * together. */
char *compare_words(const struct comparison *comparison, const struct comparison_pair *pair, size_t family,
                    double detect);

status compare_add_note(struct compare *c, struct error *error, const char *format, ...) PRINTF_LIKE(3, 4);
status compare_no_memory(const struct compare *c, struct error *error);

#endif

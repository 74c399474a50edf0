/* What the files of a comparison share; other folders see compare.h alone.
 *
 * The work goes from file to file: read.c brings runs, their test sets and their metrics, contexts.c
 * tells which settings differ and makes contexts and groups, match.c which groups stand against one another,
 * pairs.c does the statistics of seeds, overview.c counts them over contexts, images.c does those
 * of images, words.c puts them into words, table.c into tables.
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
    size_t *dataset;  /* [tasks]: its place among the comparison's datasets; part of `tests` below */
    int64_t *images;  /* [tasks]: test images */
    double *value;    /* [metrics, datasets + 1]: of each dataset, then the mean over tasks; NAN */
    bool complete;    /* the matrix is */
    bool routed;      /* a selector chose its routers */
    bool accumulates; /* class-incremental: accuracy_matrix.images */
    bool untrained;   /* zero-shot CLIP, which no task changes */
};

/* Runs that differ in the seed alone; of them [first, first + runs) are its. */
struct configuration {
    char *name; /* values of what is compared, joined */
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
    size_t configurations;               /* those without a run are behind them: */
    size_t made;                         /* all */
    size_t *dataset;                     /* [sum of tasks], what the runs' point into */
    int64_t *images;
    double *values;
    size_t images_noted; /* pairs of which it was to be said that images are missing */
};

/* Places of a metric's values of a run: a dataset's, or behind them the mean's. */
static inline size_t compare_place(const struct compare *c, size_t metric, size_t dataset)
{
    return metric * (c->result->dataset_count + 1) + dataset;
}

/* The suite keys behind a word like "policy", separated by '|', "*" for all of them; a key is its own. */
const char *compare_by_keys(const char *name);

/* Whether it makes no difference that a suite key is a here and b there; NULL: it has no value. */
bool compare_is_incidental(const struct comparison_request *request, const char *key, const char *a, const char *b);

/* Whether a suite key is what is compared, by name or as the one behind a word like "policy". */
bool compare_is_by(const struct comparison_request *request, const char *key);

status compare_read(struct compare *c, struct error *error);
status compare_make_contexts(struct compare *c, struct error *error);
status compare_make_samples(struct compare *c, struct error *error);
status compare_make_pairs(struct compare *c, struct error *error);
status compare_make_overview(struct compare *c, struct error *error);
status compare_make_images(struct compare *c, struct error *error);

/* Where the configurations, or groups, of another context begin, behind that of the one at begin. */
size_t compare_context_end(const struct compare *c, size_t begin);

/* The baseline that was asked for, or a usual one that every context has, which a note says. */
status compare_choose_baseline(struct compare *c, struct error *error);

/* That the baseline is known, and *feasible: there are not too many pairs, else a note says so. */
status compare_check_pairs(struct compare *c, bool *feasible, struct error *error);

/* Calls make for every two groups that are to be compared, baseline first. */
typedef status compare_two(struct compare *c, size_t baseline, size_t other, struct error *error);
status compare_each_pair(struct compare *c, compare_two *make, struct error *error);
size_t compare_pair_count(const struct compare *c);

/* Seeds that two configurations have in common: places of their runs. *n of them in a block that the caller frees. */
struct common_seed {
    size_t baseline, other;
};
status compare_common_seeds(const struct compare *c, size_t baseline, size_t other, struct common_seed **seeds,
                            size_t *n, struct error *error);

/* What can and cannot be said of a pair, its own memory; NULL when there is none. family: tests corrected together. */
char *compare_words(const struct comparison *comparison, const struct comparison_pair *pair, size_t family,
                    double detect);

status compare_add_note(struct compare *c, struct error *error, const char *format, ...) PRINTF_LIKE(3, 4);
status compare_no_memory(const struct compare *c, struct error *error);

#endif

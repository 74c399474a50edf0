/* The statistics of seeds: a sample per group, and groups against one another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/compare/internal.h"
#include "results/statistics/permutation.h"
#include "results/statistics/statistics.h"

/* ---- What is measured: a metric, over all tasks or of one ---- */

struct measure {
    size_t metric, place; /* of the dataset; behind the last: the mean over tasks */
};

static const char *dataset_name(const struct compare *c, const struct measure *measure)
{
    return measure->place < c->result->dataset_count ? c->result->dataset[measure->place] : NULL;
}

static double value_of(const struct compare *c, const struct compared_run *run, const struct measure *measure)
{
    return run->value[compare_place(c, measure->metric, measure->place)];
}

/* Calls take for every measure that was asked for; metrics one after another, the mean first. */
typedef status take_measure(struct compare *c, const struct measure *measure, size_t a, size_t b, struct error *error);
static status each_measure(struct compare *c, take_measure *take, size_t a, size_t b, struct error *error)
{
    const struct comparison_request *request = c->request;
    size_t datasets = c->result->dataset_count;
    for (size_t metric = 0; metric < request->metric_count; metric++) {
        struct measure mean = {metric, datasets};
        if (!request->filter.dataset)
            TRY(take(c, &mean, a, b, error));
        for (size_t dataset = 0; dataset < datasets; dataset++) {
            struct measure measure = {metric, dataset};
            bool asked = request->filter.dataset ? strcmp(request->filter.dataset, c->result->dataset[dataset]) == 0
                                                 : request->detail != COMPARE_MEANS;
            if (asked)
                TRY(take(c, &measure, a, b, error));
        }
    }
    return OK;
}

static size_t measure_limit(const struct compare *c)
{
    return c->request->metric_count * (c->result->dataset_count + 1);
}

/* ---- Samples ---- */

/* A group that has none of it, such as the transfer of a first task, has no sample. */
static status make_sample(struct compare *c, const struct measure *measure, size_t group, struct error *error)
{
    const struct configuration *configuration = &c->configuration[group];
    struct comparison_sample sample = {.group = group,
                                       .metric = metric_find(c->request->metrics[measure->metric]),
                                       .dataset = dataset_name(c, measure),
                                       .value = malloc(configuration->runs * sizeof *sample.value)};
    if (!sample.value)
        return compare_no_memory(c, error);
    for (size_t i = 0; i < configuration->runs; i++) {
        sample.value[sample.n] = value_of(c, &c->run[configuration->first + i], measure);
        sample.n += !isnan(sample.value[sample.n]);
    }
    if (sample.n == 0) {
        free(sample.value);
        return OK;
    }
    sample.mean = statistics_mean(sample.value, sample.n);
    sample.sd = statistics_sd(sample.value, sample.n);
    struct interval interval = statistics_mean_interval(sample.mean, sample.sd, sample.n, COMPARE_CONFIDENCE);
    sample.low = interval.low;
    sample.high = interval.high;
    c->result->sample[c->result->sample_count++] = sample;
    return OK;
}

/* What is to be seen side by side stands one below the other. */
static status make_context_samples(struct compare *c, const struct measure *measure, size_t begin, size_t end,
                                   struct error *error)
{
    for (size_t group = begin; group < end; group++)
        TRY(make_sample(c, measure, group, error));
    return OK;
}

/* The transfer of runs with one task; the gain of those that did not evaluate zero-shot CLIP. */
static status note_undefined(struct compare *c, struct error *error)
{
    for (size_t m = 0; m < c->request->metric_count; m++) {
        const struct metric *metric = metric_find(c->request->metrics[m]);
        bool defined = false;
        for (size_t i = 0; i < c->result->sample_count && !defined; i++)
            defined = c->result->sample[i].metric == metric;
        if (!defined)
            TRY(compare_add_note(c, error, "%s is not defined for any of these runs", metric->name));
    }
    return OK;
}

status compare_make_samples(struct compare *c, struct error *error)
{
    c->result->sample = calloc(c->configurations * measure_limit(c), sizeof *c->result->sample);
    if (!c->result->sample)
        return compare_no_memory(c, error);
    for (size_t begin = 0, end; begin < c->configurations; begin = end) {
        end = compare_context_end(c, begin);
        TRY(each_measure(c, make_context_samples, begin, end, error));
    }
    return note_undefined(c, error);
}

/* ---- Pairs ---- */

/* Differences that are the same on paper are the same: no deviation is made of what rounding left. */
static void level_differences(double *difference, size_t n)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        difference[i] = fabs(difference[i]) <= PERMUTATION_TIE ? 0 : difference[i];
        low = fmin(low, difference[i]);
        high = fmax(high, difference[i]);
    }
    for (size_t i = 0; i < n && high - low <= PERMUTATION_TIE; i++)
        difference[i] = difference[0];
}

/* Student's test tells the power; the exact test cannot do with fewer than some, however large the effect. */
static size_t seeds_needed(double effect)
{
    size_t needed = statistics_pairs_needed(effect, COMPARE_LEVEL, COMPARE_POWER);
    size_t least = statistics_least_pairs(COMPARE_LEVEL, 1);
    return needed == 0 || needed > least ? needed : least;
}

static status fill_pair(struct compare *c, struct comparison_pair *pair, double *difference, struct error *error)
{
    level_differences(difference, pair->n);
    struct paired_test test = statistics_paired_t(difference, pair->n, COMPARE_CONFIDENCE);
    struct sign_flip_test flips;
    struct signed_rank_test ranks;
    TRY(permutation_sign_flips(difference, pair->n, c->request->seed, &flips, error));
    TRY(permutation_signed_ranks(difference, pair->n, &ranks, error));
    TRY(statistics_hodges_lehmann(difference, pair->n, &pair->median, error));
    pair->difference = test.mean;
    pair->sd = test.sd;
    pair->low = test.interval.low;
    pair->high = test.interval.high;
    pair->p_t = test.p;
    pair->p_permutation = flips.p;
    pair->p_wilcoxon = pair->n ? ranks.p : (double)NAN;
    pair->effect = pair->n > 2 ? test.hedges : (double)NAN;
    if (c->request->detect > 0 && test.sd > 0)
        pair->seeds_needed = seeds_needed(c->request->detect / test.sd);
    return OK;
}

static bool has_value(const struct compare *c, size_t group, const struct measure *measure)
{
    const struct configuration *configuration = &c->configuration[group];
    for (size_t i = 0; i < configuration->runs; i++)
        if (!isnan(value_of(c, &c->run[configuration->first + i], measure)))
            return true;
    return false;
}

static status make_pair(struct compare *c, const struct measure *measure, size_t baseline, size_t other,
                        struct error *error)
{
    struct common_seed *seeds;
    size_t common;
    if (!has_value(c, baseline, measure) || !has_value(c, other, measure))
        return OK;
    TRY(compare_common_seeds(c, baseline, other, &seeds, &common, error));
    double *difference = malloc((common + 1) * sizeof *difference);
    struct comparison_pair pair = {.baseline = baseline,
                                   .other = other,
                                   .metric = metric_find(c->request->metrics[measure->metric]),
                                   .dataset = dataset_name(c, measure)};
    for (size_t i = 0; difference && i < common; i++) {
        difference[pair.n] =
            value_of(c, &c->run[seeds[i].other], measure) - value_of(c, &c->run[seeds[i].baseline], measure);
        pair.n += !isnan(difference[pair.n]);
    }
    status result = difference ? fill_pair(c, &pair, difference, error) : compare_no_memory(c, error);
    free(difference);
    free(seeds);
    c->result->pair[c->result->pair_count++] = pair;
    return result;
}

static status make_pair_measures(struct compare *c, size_t baseline, size_t other, struct error *error)
{
    return each_measure(c, make_pair, baseline, other, error);
}

/* Means and datasets are corrected each for themselves. *family: tests that were. */
static status correct_family(struct compare *c, bool of_datasets, double *p, size_t *family, struct error *error)
{
    struct comparison *result = c->result;
    *family = 0;
    for (size_t i = 0; i < result->pair_count; i++) {
        bool member = (result->pair[i].dataset != NULL) == of_datasets;
        p[i] = member ? result->pair[i].p_permutation : (double)NAN;
        *family += !isnan(p[i]);
    }
    TRY(statistics_holm(p, result->pair_count, p, error));
    for (size_t i = 0; i < result->pair_count; i++)
        if ((result->pair[i].dataset != NULL) == of_datasets)
            result->pair[i].p_holm = p[i];
    return OK;
}

static status correct_and_say(struct compare *c, double *p, struct error *error)
{
    for (int of_datasets = 0; of_datasets < 2; of_datasets++) {
        size_t family;
        TRY(correct_family(c, of_datasets, p, &family, error));
        for (size_t i = 0; i < c->result->pair_count; i++) {
            struct comparison_pair *pair = &c->result->pair[i];
            if ((pair->dataset != NULL) != of_datasets)
                continue;
            pair->words = compare_words(c->result, pair, family, c->request->detect);
            if (!pair->words)
                return compare_no_memory(c, error);
        }
    }
    return OK;
}

status compare_make_pairs(struct compare *c, struct error *error)
{
    size_t limit = compare_pair_count(c) * measure_limit(c);
    c->result->pair = calloc(limit + 1, sizeof *c->result->pair);
    double *p = malloc((limit + 1) * sizeof *p);
    status result =
        c->result->pair && p ? compare_each_pair(c, make_pair_measures, error) : compare_no_memory(c, error);
    if (result == OK)
        result = correct_and_say(c, p, error);
    free(p);
    return result;
}

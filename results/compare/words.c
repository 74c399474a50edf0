/* What the numbers of two groups allow to be said, for people who do not read p-values every day. */
#include <math.h>

#include "core/text.h"
#include "results/compare/internal.h"
#include "results/statistics/statistics.h"

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* A p-value with the digits that matter. */
static void add_p(struct text *text, double p)
{
    if (p >= 0.0001)
        text_add(text, "%.4g", round(p * 1e4) / 1e4);
    else
        text_add(text, "%.1e", p);
}

static void add_difference(struct text *text, const struct comparison *comparison, const struct comparison_pair *pair)
{
    const char *other = comparison->group[pair->other].name, *baseline = comparison->group[pair->baseline].name;
    text_add(text, "%s%s%s: %s ", pair->metric->title, pair->dataset ? " on " : "", pair->dataset ? pair->dataset : "",
             other);
    if (pair->difference == 0)
        text_add(text, "equals %s on average", baseline);
    else
        text_add(text, "is %.2f points %s %s", fabs(pair->difference), pair->difference > 0 ? "above" : "below",
                 baseline);
    if (pair->n > 1)
        text_add(text, " (95%% interval %+.2f to %+.2f)", pair->low, pair->high);
    text_add(text, " over %zu common seed%s. ", pair->n, plural(pair->n));
}

/* Whether more seeds are needed before any result could count; family: tests that are corrected together. */
static bool add_limit(struct text *text, const struct comparison_pair *pair, size_t family)
{
    double least = statistics_least_p(pair->n);
    bool alone = least > COMPARE_LEVEL, together = least * (double)family > COMPARE_LEVEL;
    if (alone) {
        text_add(text, "With %zu seed%s no p below %.4g is possible; %zu are needed for %.2f", pair->n, plural(pair->n),
                 least, statistics_least_pairs(COMPARE_LEVEL, 1), COMPARE_LEVEL);
    } else if (together) {
        text_add(text, "By itself exact p ");
        add_p(text, pair->p_permutation);
        text_add(text,
                 "; with %zu seeds and Holm's correction for %zu tests no p below %.4g is possible, %zu are needed",
                 pair->n, family, fmin(1, least * (double)family), statistics_least_pairs(COMPARE_LEVEL, family));
    }
    if (alone && family > 1)
        text_add(text, ", %zu after Holm's correction for %zu tests", statistics_least_pairs(COMPARE_LEVEL, family),
                 family);
    return alone || together;
}

static void add_verdict(struct text *text, const struct comparison_pair *pair, size_t family)
{
    bool shown = pair->p_holm <= COMPARE_LEVEL, alone = pair->p_permutation <= COMPARE_LEVEL;
    text_add(text, "%s: exact p ", shown ? "Supported" : alone ? "Not established" : "No difference shown");
    add_p(text, pair->p_permutation);
    if (family > 1) {
        text_add(text, ", after Holm's correction for %zu tests ", family);
        add_p(text, pair->p_holm);
    }
    text_add(text, shown || alone ? "." : "; that is no proof of equality.");
}

#define SPREAD 1e-9 /* points; with less, rounding alone makes Student's p 0, or nearly */

/* What Student's interval says where the exact test cannot. */
static void add_interval(struct text *text, const struct comparison_pair *pair)
{
    bool apart = pair->low > 0 || pair->high < 0;
    text_add(text, "; if differences are normally distributed, p is ");
    add_p(text, pair->p_t);
    text_add(text, " and the interval %s 0.", apart ? "leaves out" : "includes");
}

/* A standard deviation of so few seeds may be off by a factor of two. */
#define ROUGH_SEEDS 5

static void add_detection(struct text *text, const struct comparison_pair *pair, double detect)
{
    if (pair->n < 2 || pair->sd == 0) {
        text_add(text, " How many seeds would detect %.4g point%s is not known without a spread.", detect,
                 detect == 1 ? "" : "s");
        return;
    }
    text_add(text, " To detect %.4g point%s with 80%% power takes ", detect, detect == 1 ? "" : "s");
    if (pair->seeds_needed)
        text_add(text, "%zu seeds", pair->seeds_needed);
    else
        text_add(text, "more than a million seeds");
    text_add(text, ", if the standard deviation is the observed %.2f%s.", pair->sd,
             pair->n <= ROUGH_SEEDS ? ", which so few seeds tell only roughly" : "");
}

static void add_no_seed(struct text *text, const struct comparison *comparison, const struct comparison_pair *pair)
{
    text_add(text, "%s%s%s: %s and %s have no seed in common, so that nothing is paired.", pair->metric->title,
             pair->dataset ? " on " : "", pair->dataset ? pair->dataset : "", comparison->group[pair->baseline].name,
             comparison->group[pair->other].name);
}

char *compare_words(const struct comparison *comparison, const struct comparison_pair *pair, size_t family,
                    double detect)
{
    struct text text = {0};
    if (pair->n == 0) {
        add_no_seed(&text, comparison, pair);
        return text.data;
    }
    add_difference(&text, comparison, pair);
    bool limited = !(pair->p_holm <= COMPARE_LEVEL) && add_limit(&text, pair, family);
    if (limited && pair->n > 1 && pair->sd > SPREAD)
        add_interval(&text, pair);
    else if (limited)
        text_add(&text, ".");
    else
        add_verdict(&text, pair, family);
    if (detect > 0)
        add_detection(&text, pair, detect);
    return text.data;
}

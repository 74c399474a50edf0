/* Files in the format of fixtures/stats/paired.json.
 *
 * Tolerances are relative, 1e-9 and for p-values 1e-7, plus what rounding alone does to a number that nearly cancels.
 * null, NaN and Infinity stand for what is not defined or not finite. Where the definition leaves a choice, each is
 * right: an interval without width may be null; so may Wilcoxon's p with several differences of 0, and the exact p of a sample too
 * large to be enumerated; differences that tie
 * on paper alone, as 68.3 − 68.2 and 67.5 − 67.4 do, may count as tied or not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "results/statistics/permutation.h"
#include "results/statistics/statistics.h"
#include "tests/replay/pyjson.h"
#include "tests/replay/replay.h"

#define RELATIVE 1e-9
#define RELATIVE_P 1e-7
#define ROUNDING_P 1e-15 /* some of SciPy's small p are 1 less something */
#define EPSILON 2.3e-16
#define ENUMERATED 24 /* the largest n of which it can be asked that all 2^n signs were tried */

/* ---- Comparing ---- */

struct expectation {
    double relative, rounding; /* the tolerance is relative·|expected| + rounding */
    bool undefined;            /* "not defined" holds too */
};

static void check(struct report *report, const char *quantity, const json_t *expected, double got,
                  struct expectation how)
{
    double number = pyjson_number(expected);
    char unusual[64]; /* a line of its own, since the quantity's has deviations */
    snprintf(unusual, sizeof unusual, "%s, %s", quantity, isinf(number) ? "infinite" : "undefined");
    if (!expected && !isnan(got))
        report_exact(report, unusual, false, "missing, found %.17g", got);
    else if (isnan(number))
        report_exact(report, unusual, isnan(got) || how.undefined, "found %.17g, expected nothing", got);
    else if (isinf(number))
        report_exact(report, unusual, number == got, "found %g, expected %g", got, number);
    else
        report_value(report, quantity, got, number, how.relative * fabs(number) + how.rounding);
}

/* ---- Paired samples ---- */

struct sample {
    size_t n;
    double *a, *b, *difference, *ranks;
    double magnitude; /* the largest |value| */
    bool finite;
    bool flat, zero; /* all differences are the same but for rounding; they are 0 */
};

static bool read_sample(const json_t *entry, struct sample *sample)
{
    const json_t *a = json_object_get(entry, "a"), *b = json_object_get(entry, "b");
    size_t n = json_array_size(a);
    *sample = (struct sample){.n = n, .finite = true, .flat = true, .zero = true};
    const json_t *stated = json_object_get(entry, "n");
    if (n == 0 || json_array_size(b) != n || (stated && (size_t)json_integer_value(stated) != n))
        return false;
    sample->a = xcalloc(4 * n, sizeof *sample->a);
    sample->b = sample->a + n;
    sample->difference = sample->b + n;
    sample->ranks = sample->difference + n;
    for (size_t i = 0; i < n; i++) {
        sample->a[i] = pyjson_number(json_array_get(a, i));
        sample->b[i] = pyjson_number(json_array_get(b, i));
        sample->difference[i] = sample->b[i] - sample->a[i];
        sample->magnitude = fmax(sample->magnitude, fmax(fabs(sample->a[i]), fabs(sample->b[i])));
        sample->finite &= isfinite(sample->difference[i]) != 0;
        sample->zero &= sample->difference[i] == 0;
        sample->flat &= fabs(sample->difference[i] - sample->difference[0]) <= 8 * EPSILON * sample->magnitude;
    }
    return true;
}

/* Each |difference| replaced by its rank as a number, signs kept; false where two are the same number. */
static bool rank_strictly(struct sample *sample)
{
    bool strict = true;
    for (size_t i = 0; i < sample->n; i++) {
        double size = fabs(sample->difference[i]);
        size_t rank = 1;
        for (size_t j = 0; j < sample->n; j++) {
            rank += fabs(sample->difference[j]) < size;
            strict &= j == i || size == 0 || fabs(sample->difference[j]) != size;
        }
        sample->ranks[i] = size == 0 ? 0 : copysign((double)rank, sample->difference[i]);
    }
    return strict;
}

/* The number of differences that count as 0; *ties: two others count as equal. */
static size_t count_zeros(const struct sample *sample, bool *ties)
{
    size_t zeros = 0;
    *ties = false;
    for (size_t i = 0; i < sample->n; i++) {
        double size = fabs(sample->difference[i]);
        zeros += size <= PERMUTATION_TIE;
        for (size_t j = 0; j < i && size > PERMUTATION_TIE; j++) {
            double other = fabs(sample->difference[j]);
            *ties |= other > PERMUTATION_TIE && fabs(other - size) <= PERMUTATION_TIE;
        }
    }
    return zeros;
}

static void check_wilcoxon(struct report *report, const json_t *expected, struct sample *sample)
{
    bool ties;
    size_t zeros = count_zeros(sample, &ties);
    bool undefined = ties || zeros > 1 || zeros == sample->n, ranked = ties && !isnan(pyjson_number(expected));
    ranked = ranked && rank_strictly(sample);
    double got = ties && !ranked ? (double)NAN
                                 : permutation_signed_ranks(ranked ? sample->ranks : sample->difference, sample->n);
    check(report, "p_wilcoxon_exact", expected, got,
          (struct expectation){.relative = RELATIVE_P, .rounding = ROUNDING_P, .undefined = undefined});
}

static void check_exact_tests(struct report *report, const json_t *entry, struct sample *sample)
{
    double p = permutation_sign_flips(sample->difference, sample->n, 1);
    bool exact = sample->n <= PERMUTATION_EXACT;
    check(report, exact ? "p_permutation_exact" : "p_permutation (drawn)",
          json_object_get(entry, "p_permutation_exact"), p,
          (struct expectation){.relative = RELATIVE_P,
                               .rounding = ROUNDING_P + (exact ? 0 : 5 * sqrt(p * (1 - p) / PERMUTATION_DRAWS)),
                               .undefined = sample->n > ENUMERATED});
    check_wilcoxon(report, json_object_get(entry, "p_wilcoxon_exact"), sample);
    double median = statistics_hodges_lehmann(sample->difference, sample->n);
    check(report, "hodges_lehmann", json_object_get(entry, "hodges_lehmann"), median,
          (struct expectation){.relative = RELATIVE, .rounding = 4 * EPSILON * sample->magnitude});
}

/* Without spread t is what rounding leaves, or nothing. */
static void check_flat(struct report *report, const json_t *t, const json_t *p, const struct sample *sample)
{
    double t_number = pyjson_number(t), p_number = pyjson_number(p);
    bool good_t = isnan(t_number) || (sample->zero ? t_number == 0 : fabs(t_number) > 1e6);
    bool good_p = isnan(p_number) || (sample->zero ? p_number == 1 : fabs(p_number) < 1e-3);
    report_exact(report, "t without spread", good_t, "expected %.17g", t_number);
    report_exact(report, "p_t without spread", good_p, "expected %.17g", p_number);
}

static void check_t(struct report *report, const json_t *entry, const struct sample *sample)
{
    double mean = statistics_mean(sample->difference, sample->n), sd = statistics_sd(sample->difference, sample->n),
           of_t = statistics_paired_t_p(sample->difference, sample->n);
    struct interval interval_of_mean = statistics_mean_interval(mean, sd, sample->n, 0.95);
    double rounding = (double)sample->n * 4 * EPSILON * sample->magnitude, error_of_mean = sd / sqrt((double)sample->n);
    struct expectation plain = {.relative = RELATIVE, .rounding = rounding};
    check(report, "mean_diff", json_object_get(entry, "mean_diff"), mean, plain);
    const json_t *interval = json_object_get(entry, "ci95_diff");
    struct expectation ends = {
        .relative = RELATIVE, .rounding = rounding * (sample->flat ? 100 : 1), .undefined = sample->flat};
    check(report, "ci95_diff", json_is_array(interval) ? json_array_get(interval, 0) : interval, interval_of_mean.low,
          ends);
    check(report, "ci95_diff", json_is_array(interval) ? json_array_get(interval, 1) : interval, interval_of_mean.high,
          ends);
    const json_t *t = json_object_get(entry, "t"), *p = json_object_get(entry, "p_t");
    if (sample->flat && sample->n > 1) {
        check_flat(report, t, p, sample);
        return;
    }
    check(report, "t", t, mean / error_of_mean,
          (struct expectation){.relative = RELATIVE, .rounding = rounding / error_of_mean});
    check(report, "p_t", p, of_t,
          (struct expectation){.relative = RELATIVE_P,
                               .rounding = ROUNDING_P + rounding / error_of_mean * fmin(1, of_t)});
}

static void check_paired(struct report *report, const json_t *entry)
{
    struct sample sample;
    bool fits = read_sample(entry, &sample);
    if (!fits || !sample.finite)
        must(error_set(&error, ERROR_FORMAT, "paired: expected n finite values in a and in b, found %zu and %zu%s",
                       json_array_size(json_object_get(entry, "a")), json_array_size(json_object_get(entry, "b")),
                       fits ? ", not all finite" : ""));
    struct expectation plain = {.relative = RELATIVE, .rounding = 4 * EPSILON * sample.magnitude};
    check(report, "mean_a", json_object_get(entry, "mean_a"), statistics_mean(sample.a, sample.n), plain);
    check(report, "mean_b", json_object_get(entry, "mean_b"), statistics_mean(sample.b, sample.n), plain);
    plain.rounding *= (double)sample.n;
    check(report, "sd_a", json_object_get(entry, "sd_a"), statistics_sd(sample.a, sample.n), plain);
    check(report, "sd_b", json_object_get(entry, "sd_b"), statistics_sd(sample.b, sample.n), plain);
    check_t(report, entry, &sample);
    check_exact_tests(report, entry, &sample);
    free(sample.a);
}

/* ---- The other parts ---- */

static void check_holm(struct report *report, const json_t *entry)
{
    const json_t *p = json_object_get(entry, "p"), *adjusted = json_object_get(entry, "adjusted");
    size_t n = json_array_size(p), tests = 0;
    double *family = xcalloc(n + 1, sizeof *family);
    for (size_t i = 0; i < n; i++)
        if (!isnan(pyjson_number(json_array_get(p, i))))
            family[tests++] = pyjson_number(json_array_get(p, i));
    report_exact(report, "holm, family", n == json_array_size(adjusted), "found %zu, expected %zu", n,
                 json_array_size(adjusted));
    for (size_t i = 0; i < n; i++)
        check(report, "holm", json_array_get(adjusted, i),
              statistics_holm(pyjson_number(json_array_get(p, i)), family, tests),
              (struct expectation){.relative = RELATIVE_P, .rounding = ROUNDING_P});
    free(family);
}

static void check_mcnemar(struct report *report, const json_t *entry)
{
    json_int_t a = pyjson_integer(entry, "only_a_right"), b = pyjson_integer(entry, "only_b_right");
    check(report, "mcnemar", json_object_get(entry, "p_exact"), statistics_mcnemar((uint64_t)a, (uint64_t)b),
          (struct expectation){.relative = RELATIVE_P, .rounding = ROUNDING_P});
}

/* A part is a list of entries, or one. */
static const struct part {
    const char *name;
    void (*check)(struct report *, const json_t *entry);
} parts[] = {{"paired", check_paired}, {"holm", check_holm}, {"mcnemar", check_mcnemar}};

void replay_stats(struct replay *r)
{
    json_t *root;
    must(pyjson_read(&root, r->folder, &error));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const json_t *entries = json_object_get(root, parts[i].name);
        if (json_is_object(entries))
            parts[i].check(&r->report, entries);
        for (size_t k = 0; k < json_array_size(entries); k++)
            parts[i].check(&r->report, json_array_get(entries, k));
    }
    json_decref(root);
}

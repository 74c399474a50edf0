/* Exact tests of differences against 0. They assume no distribution: under the hypothesis each difference might as well
 * have had the other sign, or each run the other label.
 *
 *     double p = permutation_sign_flips(difference, n, seed);
 *     double p_of_labels = permutation_labels(value, stratum, is_b, n, seed);
 *     double p_of_ranks = permutation_signed_ranks(difference, n);
 *
 * Differences within PERMUTATION_TIE of each other count as equal, and within PERMUTATION_TIE of 0 as 0, because equal
 * means of percentages differ by rounding errors of about 1e-13.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERMUTATION_TIE 1e-10
#define PERMUTATION_EXACT 40       /* differences: the largest n whose 2^n sign flips are all counted */
#define PERMUTATION_LABELS 22      /* bits: the largest log2 of the choices of labels that are all counted */
#define PERMUTATION_RECURSION 1000 /* values: the largest n of labels that are counted */
#define PERMUTATION_DRAWS 99999    /* beyond; with the observed one 100,000 */
#define PERMUTATION_RANKS 2000     /* differences: the largest n whose distribution of ranks is computed */

/* The two-sided p of a mean: the share of all 2^n choices of signs whose |mean| is at least the observed one less 1e-12 (Fisher, "The Design
 * of Experiments", 1935). They are counted by sorting the sums of both halves (meet in the middle: Horowitz and Sahni,
 * JACM 1974). Above PERMUTATION_EXACT differences, p is (hits + 1)/(draws + 1) over PERMUTATION_DRAWS choices drawn by
 * `seed`, where the observed signs count as one more draw (Phipson and Smyth, 2010). NAN for n = 0.
 * Differences of several strata are divided by the size of theirs before: their sum is then that of the strata's means. */
double permutation_sign_flips(const double *difference, size_t n, uint64_t seed);

/* The same of two groups that are not paired: p is the share of all choices of as many labels b in each stratum whose
 * |mean over strata of (mean of b − mean of a)| is at least the observed one (Fisher 1935; Pitman, JRSS Supplement 1937).
 * stratum is sorted, and within one the values of a (is_b 0) come first. Beyond 2^PERMUTATION_LABELS choices they are
 * drawn. NAN where a stratum lacks a side. */
double permutation_labels(const double *value, const double *stratum, const double *is_b, size_t n, uint64_t seed);

/* The fewest seeds per context with which the test above finds a difference with 80% power after a correction for `tests`
 * (the first step of Holm's). effect: the difference over its deviation of one seed in all contexts, which is known with
 * cells·(n − 1) degrees of freedom. Student's test tells the power; where the exact one has few choices, 4,000 normal
 * samples do, because its steps cost power. 0: more than a million. */
struct permutation_plan {
    double effect, cells;
    size_t tests, contexts;
    bool unpaired;
};
size_t permutation_seeds_needed(const struct permutation_plan *plan);

/* Wilcoxon's signed-rank test ("Individual comparisons by ranking methods", 1945) by the distribution of the rank sum
 * over all signs, beyond PERMUTATION_RANKS by the normal approximation: its two-sided p. Differences of 0 are left out; 1 if
 * none are left. Tied differences get the mean of their ranks; the conditional distribution is then exact, too. */
double permutation_signed_ranks(const double *difference, size_t n);

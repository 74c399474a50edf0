/* Exact tests of paired differences against 0. They assume no distribution: under the hypothesis each difference might
 * as well have had the other sign.
 *
 *     double p = permutation_sign_flips(difference, n, seed).p;
 *     double p_of_ranks = permutation_signed_ranks(difference, n).p;
 *
 * Differences within PERMUTATION_TIE of each other count as equal, and within PERMUTATION_TIE of 0 as 0, because equal
 * means of percentages differ by rounding errors of about 1e-13.
 */
#ifndef MTIL_RESULTS_STATISTICS_PERMUTATION_H
#define MTIL_RESULTS_STATISTICS_PERMUTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERMUTATION_TIE 1e-10
#define PERMUTATION_EXACT 40     /* differences: the largest n whose 2^n sign flips are all counted */
#define PERMUTATION_DRAWS 999999 /* beyond */
#define PERMUTATION_RANKS 2000   /* differences: the largest n whose distribution of ranks is computed */

struct sign_flip_test {
    double p;     /* two-sided, of the mean */
    bool exact;   /* all choices of signs were counted */
    double error; /* standard error of p where it was drawn, else 0 */
};

/* p is the share of all 2^n choices of signs whose |mean| is at least the observed one less 1e-12 (Fisher, "The Design
 * of Experiments", 1935). They are counted by sorting the sums of both halves (meet in the middle: Horowitz and Sahni,
 * JACM 1974). Above PERMUTATION_EXACT differences, p is (hits + 1)/(draws + 1) over PERMUTATION_DRAWS choices drawn by
 * `seed`, where the observed signs count as one more draw (Phipson and Smyth, 2010). NAN for n = 0. */
struct sign_flip_test permutation_sign_flips(const double *difference, size_t n, uint64_t seed);

struct signed_rank_test {
    size_t n;         /* differences that are not 0; the others are left out */
    double statistic; /* sum of the ranks of positive differences */
    double p;         /* two-sided; 1 for n = 0 */
    bool ties;        /* some |differences| are equal */
    bool exact;       /* false above PERMUTATION_RANKS: the normal approximation */
};

/* Wilcoxon's signed-rank test ("Individual comparisons by ranking methods", 1945) by the distribution of the rank sum
 * over all signs. Tied differences get the mean of their ranks; the conditional distribution is then exact, too. */
struct signed_rank_test permutation_signed_ranks(const double *difference, size_t n);

#endif

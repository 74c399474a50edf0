/* Statistics for small samples, such as a handful of seeds.
 *
 *     double difference[] = {0.41, 0.38, 0.55};                       // b − a of the same seeds
 *     double p = statistics_paired_t_p(difference, 3);
 *     if (statistics_least_p(3) > 0.05)
 *         use(statistics_least_seeds(0.05, 1, false));                // 6: with 3 no exact test can be significant
 *
 * Pure functions. Undefined results (the deviation of one value, a test of none) are NAN. Exact tests of paired samples
 * are in permutation.h, intervals over seeds and images in bootstrap.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    double low, high;
};

int statistics_compare(const void *a, const void *b); /* two doubles, for qsort */

double statistics_mean(const double *value, size_t n);

/* The square root of the unbiased variance, n ≥ 2. */
double statistics_sd(const double *value, size_t n);

/* Student's interval of a mean: mean ± t·sd/√n with n − 1 degrees of freedom (Student, "The probable error of a mean",
 * Biometrika 1908). n ≥ 2. */
struct interval statistics_mean_interval(double mean, double sd, size_t n, double confidence);

/* Student's t-test of paired samples: the two-sided p of differences against 0. Without spread 0, or NAN where the
 * differences are 0. n ≥ 2. */
double statistics_paired_t_p(const double *difference, size_t n);

/* Cohen's d_z = mean/sd ("Statistical power analysis", 1988) without its bias in small samples: times
 * Γ(m/2)/(√(m/2) Γ((m−1)/2)), m = n − 1 (Hedges, Journal of Educational Statistics 1981). n ≥ 3. */
double statistics_hedges(const double *difference, size_t n);

/* The median of the means of all pairs of differences, each with itself included: a location estimate that outliers
 * hardly move (Hodges and Lehmann, Annals of Mathematical Statistics 1963). n ≥ 1. */
double statistics_hodges_lehmann(const double *difference, size_t n);

/* Holm's step-down correction of p, the nearest of a family of p-values without NANs, which is sorted ("A simple
 * sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 1979): adjusted values are compared
 * with the level itself. NAN without a family. */
double statistics_holm(double p, double *family, size_t n);

/* Pearson's correlation; NAN for fewer than 3 pairs and where one side does not vary, or by rounding alone (1e-10). */
double statistics_correlation(const double *a, const double *b, size_t n);

/* The interval of a correlation by Fisher's transformation (Metron 1921): tanh(artanh r ± z / √(n − controlled − 3));
 * controlled: number of other variables held fixed (n pairs of residuals from g groups' means: g − 1). NAN where the
 * root is not positive. */
struct interval statistics_correlation_interval(double r, size_t n, size_t controlled, double confidence);

/* McNemar's exact test: two-sided binomial test of the items that only one of two judges got right, against half each
 * (McNemar, Psychometrika 1947). 1 when there are none. */
double statistics_mcnemar(uint64_t only_a, uint64_t only_b);

/* The interval of a standard deviation that varies with so many degrees of freedom: sd·√(ν / χ²), normal values. */
struct interval statistics_sd_interval(double sd, double degrees, double confidence);

/* log2 of the number of ways to label a + b values, of which b get one label: binomial(a + b, b). */
double statistics_log2_choices(double a, double b);

/* The smallest two-sided p where there are 2^bits choices, such as the signs of `bits` differences: 2/2^bits. */
double statistics_least_p(double bits);

/* The fewest seeds per context with which the smallest p is at most the level: of signs, or of labels of twice as many runs. */
size_t statistics_least_seeds(double level, size_t contexts, bool unpaired);

/* The fewest seeds n with which a two-sided t-test at level finds a mean of `effect` standard deviations of one seed with
 * this power, where the deviation is known with cells·(n − 1) degrees of freedom; 0: more than a million. */
size_t statistics_seeds_needed(double effect, double cells, double level, double power);

/* --- Student's distribution ---
 * Relative errors stay below 1e-12, in the tails too. Outside their domain the functions are NAN. */

/* P(|T| >= |t|) of Student's distribution with ν degrees of freedom, ν > 0. Infinite t has probability 0. */
double statistics_t_two_sided(double t, double degrees);

/* The t with P(|T| <= t) = confidence, 0 <= confidence < 1. */
double statistics_t_quantile(double confidence, double degrees);

/* --- In SQL --- */

struct sqlite3;

/* The statistics of this folder as functions of SQL, for every statement of a connection (METRICS.md lists them).
 *
 *     SELECT policy, mean(last), half_width(last) FROM runs JOIN metrics USING (run) GROUP BY policy;
 *     SELECT permutation_p(b.last - a.last) FROM …;
 *
 * Aggregates leave out nulls and sort their values first, so that the order of rows does not change a bit. What is
 * undefined, such as the deviation of one value, is null. Returns SQLite's code. */
int functions_register(struct sqlite3 *connection);

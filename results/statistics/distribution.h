/* Distributions for tests and intervals.
 *
 *     double p = distribution_t_two_sided(t, n - 1);                  // P(|T| >= |t|)
 *     double t = distribution_t_quantile(0.95, n - 1);                // P(|T| <= t) = 0.95
 *
 * Relative errors stay below 1e-12, in the tails too. Outside their domain the functions are NAN.
 */
#pragma once

/* The regularised incomplete beta function I_x(a, b), a and b > 0, by its continued fraction (Didonato and Morris,
 * "Algorithm 708", ACM TOMS 1992). complement is 1 − x, which the caller often knows with more digits than 1 − x has. */
double distribution_beta(double x, double complement, double a, double b);

/* P(|T| >= |t|) of Student's distribution with ν degrees of freedom, ν > 0. Infinite t has probability 0. */
double distribution_t_two_sided(double t, double degrees);

/* The t with P(|T| <= t) = confidence, 0 <= confidence < 1. */
double distribution_t_quantile(double confidence, double degrees);

/* The z with P(|Z| <= z) = confidence for a standard normal Z. */
double distribution_normal_quantile(double confidence);

/* The x with P(X <= x) = p of the chi-square distribution with ν degrees of freedom, 0 < p < 1, to about 1e-12: the
 * incomplete gamma function by its series or continued fraction (Abramowitz and Stegun 6.5.29, 6.5.31), halved to p. */
double distribution_chi_square_quantile(double p, double degrees);

/* P(|T| > t) for T of the noncentral t distribution with ν degrees of freedom and noncentrality δ, the power of a
 * t-test. T = (Z + δ)/S with ν·S² chi-squared; the integral over ln S is summed in even steps, which converge
 * exponentially for such integrands (Trefethen and Weideman, SIAM Review 2014). */
double distribution_noncentral_t_two_sided(double t, double degrees, double noncentrality);

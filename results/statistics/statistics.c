#include "results/statistics/statistics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* --- Distributions --- */

#define HALF_LOG_TWO_PI 0.91893853320467274178
#define FRACTION_STEPS 1000000 /* about √a of them are needed */

/* ln Γ(z) less Stirling's (z − ½) ln z − z + ½ ln 2π: its series where that is exact, the difference elsewhere. */
static double stirling_rest(double z)
{
    int sign;
    if (z < 16)
        return lgamma_r(z, &sign) - ((z - 0.5) * log(z) - z + HALF_LOG_TWO_PI);
    static const double terms[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                   1.0 / 1188, -691.0 / 360360, 1.0 / 156};
    double sum = 0, inverse = 1 / z, square = inverse * inverse;
    for (size_t i = sizeof terms / sizeof *terms; i-- > 0;)
        sum = sum * square + terms[i];
    return sum * inverse;
}

/* ln r − (r − 1) for r = 1 + u, without cancellation near 1. */
static double deviance(double r, double u)
{
    if (fabs(u) > 0.3)
        return log(r) - u;
    /* ln(1 + u) = 2 atanh(w), w = u/(2 + u), and u = 2w + u·w */
    double w = u / (2 + u), square = w * w, power = 2 * w * square, sum = 0;
    for (int k = 3; fabs(power) > 1e-18 * fabs(sum) && k < 99; k += 2, power *= square)
        sum += power / k;
    return sum - u * w;
}

/* x^a y^b / B(a, b), y = 1 − x. The powers nearly cancel the beta function where a or b is large, so it is taken apart
 * around its maximum at x = a/(a + b) (Loader, "Fast and accurate computation of binomial probabilities", 2000). */
static double beta_front(double x, double y, double a, double b)
{
    double sum = a + b, excess = x * b - y * a; /* x(a + b)/a = 1 + excess/a, y(a + b)/b = 1 − excess/b */
    double exponent = a * deviance(x * sum / a, excess / a) + b * deviance(y * sum / b, -excess / b);
    exponent += stirling_rest(sum) - stirling_rest(a) - stirling_rest(b);
    return exp(exponent - HALF_LOG_TWO_PI) * sqrt(a * b / sum);
}

/* The continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) with I_x(a, b) = front/fraction, by Lentz's method, for x below
 * about a/(a + b). The mean enters as a·y − b·x: as a − (a + b)x it would cancel for large a. */
static double beta_fraction(double x, double y, double a, double b)
{
    double mean = a * y - b * x, value = a * (mean + 1) / (a + 1), c = value, d = 0;
    for (int m = 1; m < FRACTION_STEPS; m++) {
        double before = a + 2 * m - 1, after = a + 2 * m + 1, share = m * (b - m) * x / before;
        double over = share * x * (a + m - 1) * (a + b + m - 1) / before;
        double under = m + share + (a + m) * (mean + 1 + m * (1 + y)) / after;
        d = 1 / (under + over * d);
        c = under + over / c;
        double change = c * d;
        value *= change;
        if (fabs(change - 1) < 1e-16)
            break;
    }
    return value;
}

/* The regularised incomplete beta function I_x(a, b), a and b > 0, by its continued fraction (Didonato and Morris,
 * "Algorithm 708", ACM TOMS 1992). complement is 1 − x, which the caller often knows with more digits than 1 − x has. */
static double beta(double x, double complement, double a, double b)
{
    if (!(a > 0 && b > 0 && x >= 0 && complement >= 0))
        return (double)NAN;
    if (x == 0 || complement == 0)
        return x == 0 ? 0 : 1;
    double front = beta_front(x, complement, a, b);
    if (x < (a + 1) / (a + b + 2))
        return front / beta_fraction(x, complement, a, b);
    return 1 - front / beta_fraction(complement, x, b, a);
}

double statistics_t_two_sided(double t, double degrees)
{
    if (!(degrees > 0) || isnan(t))
        return (double)NAN;
    double square = t * t, sum = degrees + square;
    return isinf(square) ? 0 : beta(degrees / sum, square / sum, degrees / 2, 0.5);
}

/* The z with P(|Z| <= z) = confidence for a standard normal Z. */
static double normal_quantile(double confidence)
{
    if (!(confidence >= 0 && confidence < 1))
        return (double)NAN;
    if (confidence == 0)
        return 0;
    double low = 0, high = 40;
    for (double middle; middle = (low + high) / 2, middle > low && middle < high;)
        *(erfc(middle * M_SQRT1_2) > 1 - confidence ? &low : &high) = middle;
    return high;
}

/* Newton's method for ln P(|T| >= t) over ln t, which is concave: from below the first step passes the root, the others
 * come down to it. The derivative, −2 t f(t)/P, has the density f(t) = beta_front/t. */
double statistics_t_quantile(double confidence, double degrees)
{
    double t = normal_quantile(confidence);
    if (!(degrees > 0) || !(t > 0))
        return degrees > 0 ? t : (double)NAN;
    for (int step = 0; step < 100; step++) {
        double tail = statistics_t_two_sided(t, degrees), sum = degrees + t * t;
        double change =
            log(tail / (1 - confidence)) * tail / (2 * beta_front(degrees / sum, t * t / sum, degrees / 2, 0.5));
        t *= exp(change);
        if (fabs(change) < 1e-15)
            break;
    }
    return t;
}

/* P(a, x), the regularised lower incomplete gamma function: x^a e^−x / Γ(a + 1) times a series below a + 1, 1 less the
 * front times a continued fraction (Lentz) above. */
static double gamma_lower(double a, double x)
{
    int sign;
    double front = exp(a * log(x) - x - lgamma_r(a + 1, &sign)), sum = 1, term = 1;
    if (x < a + 1) {
        for (int n = 1; n < FRACTION_STEPS && term > 1e-17 * sum; n++)
            sum += term *= x / (a + n);
        return front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
    for (int n = 1; n < FRACTION_STEPS && fabs(c * d - 1) > 1e-16; n++) {
        b += 2;
        d = 1 / (b - n * (n - a) * d);
        c = b - n * (n - a) / c;
        value *= c * d;
    }
    return 1 - front * a * value;
}

/* The x with P(X <= x) = p of the chi-square distribution with ν degrees of freedom, 0 < p < 1, to about 1e-12: the
 * incomplete gamma function by its series or continued fraction (Abramowitz and Stegun 6.5.29, 6.5.31), halved to p. */
static double chi_square_quantile(double p, double degrees)
{
    double low = -745, high = log(degrees) + 50; /* of x, as logarithms */
    if (!(degrees > 0 && p > 0 && p < 1))
        return (double)NAN;
    for (int step = 0; step < 64; step++) {
        double middle = (low + high) / 2;
        *(gamma_lower(degrees / 2, exp(middle) / 2) < p ? &low : &high) = middle;
    }
    return exp((low + high) / 2);
}

/* ln of the density of ln S, up to a constant: 0 at its maximum, S = 1. */
static double log_density(double y, double degrees)
{
    return -degrees / 2 * (expm1(2 * y) - 2 * y);
}

/* The distance below (sign −1) or above 0 at which the density becomes negligible. */
static double reach(double degrees, double sign)
{
    double low = 0, high = 1e-9;
    while (log_density(sign * high, degrees) > -80)
        high *= 2;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        *(log_density(sign * middle, degrees) > -80 ? &low : &high) = middle;
    }
    return high;
}

/* P(|T| > t) for T of the noncentral t distribution with ν degrees of freedom and noncentrality δ, the power of a
 * t-test. T = (Z + δ)/S with ν·S² chi-squared; the integral over ln S is summed in even steps, which converge
 * exponentially for such integrands (Trefethen and Weideman, SIAM Review 2014). */
static double noncentral_t_two_sided(double t, double degrees, double noncentrality)
{
    if (!(degrees > 0) || !(t >= 0) || isnan(noncentrality))
        return (double)NAN;
    if (isinf(noncentrality))
        return 1;
    double below = reach(degrees, -1), above = reach(degrees, 1), width = below + above;
    /* Fine enough for the density and for the edge at S = δ/t, which is 1/δ wide. */
    double step = fmin(width / 256, fmax(width / 1e5, 0.25 / (1 + fabs(noncentrality)))), sum = 0, total = 0;
    for (double y = -below; y <= above; y += step) {
        double density = exp(log_density(y, degrees)), edge = t * exp(y);
        total += density;
        sum += density * 0.5 * (erfc((edge - noncentrality) * M_SQRT1_2) + erfc((edge + noncentrality) * M_SQRT1_2));
    }
    return sum / total;
}

/* --- Samples --- */

#define SEEDS_LIMIT 1000000

/* Neumaier's compensated sum. */
double statistics_mean(const double *value, size_t n)
{
    double sum = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        double next = sum + value[i];
        lost += fabs(sum) >= fabs(value[i]) ? sum - next + value[i] : value[i] - next + sum;
        sum = next;
    }
    return n ? (sum + lost) / (double)n : (double)NAN;
}

double statistics_sd(const double *value, size_t n)
{
    if (n < 2)
        return (double)NAN;
    double mean = statistics_mean(value, n), squares = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        double away = value[i] - mean;
        squares += away * away;
        rest += away; /* rounding error of the mean */
    }
    return sqrt(fmax(squares - rest * rest / (double)n, 0) / (double)(n - 1));
}

struct interval statistics_mean_interval(double mean, double sd, size_t n, double confidence)
{
    if (n < 2)
        return (struct interval){(double)NAN, (double)NAN};
    double half = statistics_t_quantile(confidence, (double)(n - 1)) * sd / sqrt((double)n);
    return (struct interval){mean - half, mean + half};
}

double statistics_correlation(const double *a, const double *b, size_t n)
{
    double mean_a = statistics_mean(a, n), mean_b = statistics_mean(b, n), aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < n; i++) {
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
        ab += (a[i] - mean_a) * (b[i] - mean_b);
    }
    double least = 1e-20 * (double)n; /* equal means of percentages differ by some 1e-13 */
    return n >= 3 && aa > least && bb > least ? fmax(-1, fmin(1, ab / sqrt(aa) / sqrt(bb))) : (double)NAN;
}

struct interval statistics_correlation_interval(double r, size_t n, size_t controlled, double confidence)
{
    if (isnan(r) || n <= controlled + 3)
        return (struct interval){(double)NAN, (double)NAN};
    double half = normal_quantile(confidence) / sqrt((double)(n - controlled - 3));
    return (struct interval){tanh(atanh(r) - half), tanh(atanh(r) + half)};
}

double statistics_paired_t_p(const double *difference, size_t n)
{
    double t = statistics_mean(difference, n) / (statistics_sd(difference, n) / sqrt((double)n));
    return n < 2 ? (double)NAN : statistics_t_two_sided(t, (double)(n - 1));
}

double statistics_hedges(const double *difference, size_t n)
{
    double m = (double)n - 1;
    int sign;
    if (n < 3)
        return (double)NAN;
    double factor = exp(lgamma_r(m / 2, &sign) - lgamma_r((m - 1) / 2, &sign)) / sqrt(m / 2);
    return statistics_mean(difference, n) / statistics_sd(difference, n) * factor;
}

int statistics_compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The number of means of two sorted values (i ≤ j) that are at most bound. */
static uint64_t count_means(const double *sorted, size_t n, double bound)
{
    uint64_t count = 0;
    size_t end = n; /* values [i, end) go with value i; end falls as i rises */
    for (size_t i = 0; i < end; i++) {
        while (end > i && (sorted[i] + sorted[end - 1]) / 2 > bound)
            end--;
        count += end - i;
    }
    return count;
}

/* Doubles in their order as integers, so that halving between two of them ends. */
static int64_t rank_of(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static double value_of(int64_t rank)
{
    int64_t bits = rank < 0 ? INT64_MIN - rank : rank;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The mean of two that has `below` others before it: the smallest number that more than `below` of them do not
 * exceed. */
static double select_mean(const double *sorted, size_t n, uint64_t below)
{
    int64_t low = rank_of(sorted[0]), high = rank_of(sorted[n - 1]);
    while (low < high) {
        int64_t middle = (low & high) + ((low ^ high) >> 1); /* their mean without overflow, rounded down */
        if (count_means(sorted, n, value_of(middle)) > below)
            high = middle;
        else
            low = middle + 1;
    }
    return value_of(low);
}

double statistics_hodges_lehmann(const double *difference, size_t n)
{
    if (n == 0)
        return (double)NAN;
    OWNED double *sorted = xmalloc(n * sizeof *sorted);
    memcpy(sorted, difference, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, statistics_compare);
    uint64_t means = (uint64_t)n * (n + 1) / 2;
    return (select_mean(sorted, n, (means - 1) / 2) + select_mean(sorted, n, means / 2)) / 2;
}

double statistics_holm(double p, double *family, size_t n)
{
    size_t nearest = 0;
    double largest = n > 0 ? 0 : (double)NAN;
    qsort(family, n, sizeof *family, statistics_compare);
    for (size_t i = 1; i < n; i++)
        nearest = fabs(family[i] - p) < fabs(family[nearest] - p) ? i : nearest;
    for (size_t i = 0; i < n && i <= nearest; i++)
        largest = fmax(largest, fmin(1, (double)(n - i) * family[i]));
    return largest;
}

/* P(X ≤ k) of the binomial distribution of n halves is I_½(n − k, k + 1); here k is the fewer, n − k the more. */
double statistics_mcnemar(uint64_t only_a, uint64_t only_b)
{
    double fewer = (double)(only_a < only_b ? only_a : only_b), more = (double)(only_a < only_b ? only_b : only_a);
    return only_a == only_b ? 1 : fmin(1, 2 * beta(0.5, 0.5, more, fewer + 1));
}

struct interval statistics_sd_interval(double sd, double degrees, double confidence)
{
    double outside = (1 - confidence) / 2;
    return (struct interval){sd * sqrt(degrees / chi_square_quantile(1 - outside, degrees)),
                             sd * sqrt(degrees / chi_square_quantile(outside, degrees))};
}

double statistics_log2_choices(double a, double b)
{
    int sign;
    return (lgamma_r(a + b + 1, &sign) - lgamma_r(a + 1, &sign) - lgamma_r(b + 1, &sign)) / M_LN2;
}

double statistics_least_p(double bits)
{
    return fmin(1, exp2(1 - bits));
}

size_t statistics_least_seeds(double level, size_t contexts, bool unpaired)
{
    size_t n = 1;
    while (n < 2000 && statistics_least_p((double)contexts * (unpaired ? statistics_log2_choices((double)n, (double)n)
                                                                       : (double)n)) > level)
        n++;
    return n;
}

static double power_of(double effect, size_t n, double cells, double level)
{
    if (n < 2)
        return (double)NAN;
    double degrees = cells * (double)(n - 1);
    return noncentral_t_two_sided(statistics_t_quantile(1 - level, degrees), degrees, fabs(effect) * sqrt((double)n));
}

size_t statistics_seeds_needed(double effect, double cells, double level, double power)
{
    if (isnan(effect) || effect == 0)
        return 0;
    size_t low = 1, high = 2; /* low: too few; high: enough, or not tested yet */
    while (high <= SEEDS_LIMIT && !(power_of(effect, high, cells, level) >= power)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(power_of(effect, middle, cells, level) >= power ? &high : &low) = middle;
    }
    return high <= SEEDS_LIMIT ? high : 0;
}

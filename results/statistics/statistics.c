#include "results/statistics/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "results/statistics/distribution.h"

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
    double half = distribution_t_quantile(confidence, (double)(n - 1)) * sd / sqrt((double)n);
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
    double half = distribution_normal_quantile(confidence) / sqrt((double)(n - controlled - 3));
    return (struct interval){tanh(atanh(r) - half), tanh(atanh(r) + half)};
}

double statistics_paired_t_p(const double *difference, size_t n)
{
    double t = statistics_mean(difference, n) / (statistics_sd(difference, n) / sqrt((double)n));
    return n < 2 ? (double)NAN : distribution_t_two_sided(t, (double)(n - 1));
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
    double *sorted = xmalloc(n * sizeof *sorted);
    memcpy(sorted, difference, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, statistics_compare);
    uint64_t means = (uint64_t)n * (n + 1) / 2;
    double median = (select_mean(sorted, n, (means - 1) / 2) + select_mean(sorted, n, means / 2)) / 2;
    free(sorted);
    return median;
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
    return only_a == only_b ? 1 : fmin(1, 2 * distribution_beta(0.5, 0.5, more, fewer + 1));
}

struct interval statistics_sd_interval(double sd, double degrees, double confidence)
{
    double outside = (1 - confidence) / 2;
    return (struct interval){sd * sqrt(degrees / distribution_chi_square_quantile(1 - outside, degrees)),
                             sd * sqrt(degrees / distribution_chi_square_quantile(outside, degrees))};
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
    return distribution_noncentral_t_two_sided(distribution_t_quantile(1 - level, degrees), degrees,
                                               fabs(effect) * sqrt((double)n));
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

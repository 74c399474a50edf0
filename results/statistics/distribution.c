#include "results/statistics/distribution.h"

#include <math.h>
#include <stddef.h>

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

double distribution_beta(double x, double complement, double a, double b)
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

double distribution_t_two_sided(double t, double degrees)
{
    if (!(degrees > 0) || isnan(t))
        return (double)NAN;
    double square = t * t, sum = degrees + square;
    return isinf(square) ? 0 : distribution_beta(degrees / sum, square / sum, degrees / 2, 0.5);
}

double distribution_normal_quantile(double confidence)
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
double distribution_t_quantile(double confidence, double degrees)
{
    double t = distribution_normal_quantile(confidence);
    if (!(degrees > 0) || !(t > 0))
        return degrees > 0 ? t : (double)NAN;
    for (int step = 0; step < 100; step++) {
        double tail = distribution_t_two_sided(t, degrees), sum = degrees + t * t;
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

double distribution_chi_square_quantile(double p, double degrees)
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

double distribution_noncentral_t_two_sided(double t, double degrees, double noncentrality)
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

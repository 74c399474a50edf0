#include "harness/train/services/gaussians.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/scope.h"

static const float *row_of(const float *gaussian, size_t width, size_t row)
{
    return gaussian + width + row * (row + 1) / 2;
}

size_t gaussian_values(size_t width)
{
    return width + width * (width + 1) / 2;
}

static double log_determinant(const float *gaussian, size_t width)
{
    double sum = 0;
    for (size_t r = 0; r < width; r++)
        sum -= 2 * log((double)row_of(gaussian, width, r)[r]);
    return sum;
}

/* μ, and S in covariance [width, width] */
static void take_moments(float *mean, const struct gaussian_rule *rule, const float *features, size_t n,
                         struct threads *pool, double *covariance)
{
    size_t width = rule->width, count = rule->unbiased && n > 1 ? n - 1 : n;
    OWNED double *gaps = xmalloc(array_size(n, width * sizeof *gaps)); /* [width, n] */
    for (size_t k = 0; k < width; k++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += (double)features[i * width + k];
        mean[k] = (float)(sum / (double)n);
        for (size_t i = 0; i < n; i++)
            gaps[k * n + i] = ((double)features[i * width + k] - sum / (double)n) / sqrt((double)count);
    }
    linear_multiply(pool, &(struct linear_product){
                              .rows = width, .columns = width, .inner = n, .a = gaps, .b = gaps, .out = covariance});
}

static void shrink(double *covariance, size_t width, double shrinkage)
{
    double trace = 0;
    for (size_t k = 0; k < width; k++)
        trace += covariance[k * width + k];
    for (size_t k = 0; k < width * width; k++)
        covariance[k] *= 1 - shrinkage;
    for (size_t k = 0; k < width; k++)
        covariance[k * width + k] += shrinkage * trace / (double)width;
}

static void widen(double *covariance, size_t width, double ridge)
{
    double sum = 0, trace = 0;
    for (size_t k = 0; k < width * width; k++) {
        sum += covariance[k];
        trace += k % (width + 1) == 0 ? covariance[k] : 0;
    }
    double variance = trace / (double)width + ridge,
           other = width > 1 ? (sum - trace) / (double)(width * (width - 1)) : 0;
    for (size_t k = 0; k < width * width; k++)
        covariance[k] += k % (width + 1) == 0 ? variance : other;
}

/* covariance becomes L. false: no ridge helps. */
static bool factor(double *covariance, size_t width, double ridge)
{
    enum { TRIES = 40 };
    OWNED double *kept = xmalloc(array_size(width * width, sizeof *kept));
    bool done = false;
    memcpy(kept, covariance, width * width * sizeof *kept);
    for (int i = 0; i < TRIES && !done; i++, ridge *= 10) {
        memcpy(covariance, kept, width * width * sizeof *kept);
        for (size_t k = 0; k < width; k++)
            covariance[k * width + k] += ridge;
        done = linear_cholesky(covariance, width);
    }
    return done;
}

status gaussian_fit(float *gaussian, const struct gaussian_rule *rule, const float *features, size_t n,
                    struct threads *pool, struct error *error)
{
    size_t width = rule->width, square = array_size(width, width);
    OWNED double *covariance = xmalloc(array_size(square, sizeof *covariance)),
                 *inverse = xmalloc(array_size(square, sizeof *inverse));
    take_moments(gaussian, rule, features, n, pool, covariance);
    shrink(covariance, width, rule->shrinkage);
    if (rule->widened)
        widen(covariance, width, rule->ridge);
    bool done = factor(covariance, width, rule->ridge);
    if (done)
        linear_invert_lower(covariance, width, inverse, NULL);
    for (size_t r = 0; done && r < width; r++)
        for (size_t k = 0; k <= r; k++)
            gaussian[width + r * (r + 1) / 2 + k] = (float)inverse[r * width + k];
    return done
               ? OK
               : error_set(error, ERROR_FORMAT, "the covariance of %zu features of %zu images is not finite", width, n);
}

/* L⁻¹ as a square matrix. */
static double *take_square(const float *gaussian, size_t width)
{
    double *square = xcalloc(array_size(width, width), sizeof *square);
    for (size_t r = 0; r < width; r++)
        for (size_t k = 0; k <= r; k++)
            square[r * width + k] = (double)row_of(gaussian, width, r)[k];
    return square;
}

void gaussian_log_densities(const float *gaussian, size_t width, const float *features, size_t n, struct threads *pool,
                            double *out, size_t stride)
{
    OWNED double *whitening = take_square(gaussian, width), *gaps = xmalloc(array_size(n, width * sizeof *gaps)),
                 *white = xmalloc(array_size(n, width * sizeof *white));
    double constant = (double)width * log(2 * M_PI) + log_determinant(gaussian, width);
    for (size_t i = 0; i < n * width; i++)
        gaps[i] = (double)features[i] - (double)gaussian[i % width];
    linear_multiply(pool, &(struct linear_product){
                              .rows = n, .columns = width, .inner = width, .a = gaps, .b = whitening, .out = white});
    for (size_t i = 0; i < n; i++) {
        double square = 0;
        for (size_t k = 0; k < width; k++)
            square += white[i * width + k] * white[i * width + k];
        out[i * stride] = -(constant + square) / 2;
    }
}

void gaussian_draw(const float *gaussian, size_t width, double *values)
{
    for (size_t r = 0; r < width; r++) {
        const float *row = row_of(gaussian, width, r);
        for (size_t k = 0; k < r; k++)
            values[r] -= (double)row[k] * values[k];
        values[r] /= (double)row[r];
    }
    for (size_t k = 0; k < width; k++)
        values[k] += (double)gaussian[k];
}

static void soften(double *row, size_t n, double temperature)
{
    double most = -INFINITY, sum = 0;
    for (size_t c = 0; c < n; c++)
        most = fmax(most, row[c]);
    for (size_t c = 0; c < n; c++)
        sum += row[c] = exp((row[c] - most) / temperature);
    for (size_t c = 0; c < n; c++)
        row[c] /= sum;
}

void gaussian_posteriors(const float *gaussians, size_t classes, size_t width, double temperature,
                         const float *features, size_t n, struct threads *pool, double *out)
{
    for (size_t c = 0; c < classes; c++)
        gaussian_log_densities(gaussians + c * gaussian_values(width), width, features, n, pool, out + c, classes);
    for (size_t i = 0; i < n; i++)
        soften(out + i * classes, classes, temperature);
}

/* tr Σq⁻¹ Σp = ‖Lq⁻¹ Lp‖² */
double gaussian_divergence(const float *p, const float *q, size_t width)
{
    size_t square = array_size(width, width);
    OWNED double *inverse = take_square(p, width), *lower = xmalloc(array_size(square, sizeof *lower));
    double sum = -(double)width;
    linear_invert_lower(inverse, width, lower, NULL);
    for (size_t r = 0; r < width; r++) {
        const float *row = row_of(q, width, r);
        double gap = 0;
        for (size_t k = 0; k <= r; k++)
            gap += (double)row[k] * ((double)p[k] - (double)q[k]);
        for (size_t k = 0; k <= r; k++) {
            double product = 0;
            for (size_t j = k; j <= r; j++)
                product += (double)row[j] * lower[j * width + k];
            sum += product * product;
        }
        sum += gap * gap;
    }
    return (sum + log_determinant(q, width) - log_determinant(p, width)) / 2;
}

double gaussian_mean_divergence(const float *gaussians, size_t classes, size_t width)
{
    size_t each = gaussian_values(width);
    double sum = 0;
    for (size_t a = 0; a < classes; a++)
        for (size_t b = 0; b < classes; b++)
            sum += gaussian_divergence(gaussians + a * each, gaussians + b * each, width);
    return sum / (double)(classes * classes);
}

#include "harness/train/services/alignment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/train/services/host_step.h"

/* --- Layers --- */

size_t alignment_work(size_t n, size_t width)
{
    return n * (2 * (2 * width + 1) + 3 * n + 2 * width + 1 + 1);
}

/* Row i is right in column i. */
static double contrast(double *scores, size_t n, int32_t *labels)
{
    for (size_t i = 0; i < n; i++)
        labels[i] = (int32_t)i;
    return host_cross_entropy(scores, n, n, labels, NULL);
}

/* weight · C(units · othersᵀ), whose gradient in units is added to slopes; work: n · (n + 2 width) values */
static double pull(const struct projection *p, const double *units, const double *others, size_t n, double weight,
                   int32_t *labels, double *work, double *slopes)
{
    double *scores = work, *turned = scores + n * n, *product = turned + n * p->width;
    projection_multiply(p, n, n, p->width, units, others, scores);
    double loss = weight * contrast(scores, n, labels);
    projection_transpose(others, n, p->width, turned);
    projection_multiply(p, n, p->width, n, scores, turned, product);
    for (size_t i = 0; i < n * p->width; i++)
        slopes[i] += weight * product[i];
    return loss;
}

double alignment_loss(const struct projection layers[2], const struct alignment_batch *b,
                      const struct alignment_rule *rule, double *const gradients[2])
{
    size_t n = b->n, width = layers[0].width;
    double *units[2] = {b->work, b->work + n * width}, *slopes[2] = {units[1] + n * width, units[1] + 2 * n * width},
           *lengths[2] = {slopes[1] + n * width, slopes[1] + n * width + n}, *scores = lengths[1] + n,
           *turned = scores + n * n, *work = turned + n * n;
    int32_t *labels = (int32_t *)(work + n * (n + 2 * width + 1));
    for (size_t k = 0; k < 2; k++)
        projection_apply(&layers[k], b->x[k], n, units[k], lengths[k]);
    projection_multiply(&layers[0], n, n, width, units[0], units[1], scores);
    for (size_t i = 0; i < n * n; i++)
        scores[i] *= rule->scale;
    projection_transpose(scores, n, n, turned);
    double loss = (contrast(scores, n, labels) + contrast(turned, n, labels)) / 2;
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < n; c++)
            scores[r * n + c] = rule->scale / 2 * (scores[r * n + c] + turned[c * n + r]);
    projection_transpose(scores, n, n, turned);
    for (size_t k = 0; k < 2; k++) {
        projection_transpose(units[1 - k], n, width, work);
        projection_multiply(&layers[k], n, width, n, k == 0 ? scores : turned, work, slopes[k]);
    }
    loss += pull(&layers[0], units[0], b->views, b->images, rule->view_weight, labels, work, slopes[0]);
    loss += pull(&layers[1], units[1], b->references, n, rule->reference_weight, labels, work, slopes[1]);
    for (size_t k = 0; k < 2; k++)
        projection_gradient(&layers[k], b->x[k], n, units[k], lengths[k], slopes[k], work, gradients[k]);
    return loss;
}

void alignment_rank(const struct alignment_ranking *r, const double *x, double *cosines, size_t count)
{
    OWNED size_t *best = xcalloc(count + 1, sizeof *best);
    size_t top = r->top < count ? r->top : count;
    OWNED double *mean = xcalloc(r->width, sizeof *mean), *added = xcalloc(count + 1, sizeof *added);
    for (size_t t = 0; t < top; t++) {
        size_t found = count;
        for (size_t c = 0; c < count; c++)
            if (added[c] == 0 && (found == count || cosines[c] > cosines[found]))
                found = c;
        best[t] = found;
        added[found] = 1;
    }
    memset(added, 0, count * sizeof *added);
    for (size_t t = 0; t < top; t++) {
        memset(mean, 0, r->width * sizeof *mean);
        for (size_t o = 0; o < top; o++)
            for (size_t k = 0; o != t && k < r->width; k++)
                mean[k] += (double)r->pairs[(best[t] * r->stride + best[o]) * r->width + k];
        linear_unit(mean, r->width);
        for (size_t k = 0; k < r->width; k++)
            added[best[t]] += r->weight * mean[k] * x[k];
    }
    for (size_t c = 0; c < count && top > 1; c++)
        cosines[c] = (1 - r->weight) * cosines[c] + added[c];
}

/* --- Discriminant analysis --- */

/* The mean μ of a range of classes. */
static void mean_of(const struct discriminant *d, size_t first, size_t end, double *mean)
{
    memset(mean, 0, d->width * sizeof *mean);
    for (size_t c = first; c < end; c++)
        for (size_t k = 0; k < d->width; k++)
            mean[k] += d->means[c * d->width + k] / (double)(end - first);
}

/* μ_c from the number of the first class on, and the rows less these; counts [classes] */
static void centre(struct discriminant *d, double *rows, const int32_t *labels, size_t n, size_t first)
{
    OWNED double *counts = xcalloc(d->classes + 1, sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        counts[labels[i]]++;
        for (size_t k = 0; k < d->width; k++)
            d->means[(size_t)labels[i] * d->width + k] += rows[i * d->width + k];
    }
    for (size_t c = first; c < d->classes; c++)
        for (size_t k = 0; k < d->width; k++)
            d->means[c * d->width + k] /= fmax(counts[c], 1);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < d->width; k++)
            rows[i * d->width + k] -= d->means[(size_t)labels[i] * d->width + k];
}

/* out [width, width] = width · (SᵀS + tr(SᵀS) / (n − 1) · I)⁻¹ */
static status invert(const double *rows, size_t n, size_t width, struct threads *pool, double *out, struct error *error)
{
    SCOPED(symmetric_destroy_at) struct symmetric *s = symmetric_create(width);
    symmetric_add(s, pool, rows, n);
    double trace = symmetric_trace(s) / (double)(n > 1 ? n - 1 : 1);
    symmetric_shift(s, trace > 0 ? trace : 1); /* one row of every class has no spread */
    TRY(symmetric_factor(s, pool, error));
    for (size_t i = 0; i < width * width; i++)
        out[i] = i % (width + 1) == 0 ? (double)width : 0;
    symmetric_solve(s, pool, out, width);
    return OK;
}

status discriminant_add(struct discriminant *d, const double *rows, const int32_t *labels, size_t n, size_t classes,
                        struct threads *pool, struct error *error)
{
    size_t width = d->width, first = d->classes, square = array_size(width, width);
    OWNED double *centred = xmalloc(array_size(n + 1, width * sizeof *centred)),
                 *found = xmalloc(array_size(square + 2 * width, sizeof *found));
    double *before = found + square, *after = before + width, share = (double)first / (double)(first + classes),
           others = (double)classes / (double)(first + classes);
    d->classes = first + classes;
    d->means = xrealloc(d->means, array_size(d->classes, width * sizeof *d->means));
    memset(d->means + first * width, 0, classes * width * sizeof *d->means);
    memcpy(centred, rows, n * width * sizeof *centred);
    centre(d, centred, labels, n, first);
    status result = invert(centred, n, width, pool, found, error);
    if (result == OK) {
        d->precision = xrealloc(d->precision, array_size(square, sizeof *d->precision));
        mean_of(d, 0, first, before);
        mean_of(d, first, d->classes, after);
        for (size_t r = 0; r < width; r++)
            for (size_t k = 0; k < width; k++) {
                double *p = &d->precision[r * width + k], apart = (before[r] - after[r]) * (before[k] - after[k]);
                *p = others * found[r * width + k] +
                     (first > 0 ? share * (*p + others / (double)d->classes * apart) : 0);
            }
        discriminant_refresh(d, pool);
    } else {
        d->classes = first;
    }
    return result;
}

void discriminant_refresh(struct discriminant *d, struct threads *pool)
{
    d->rows = xrealloc(d->rows, array_size(d->classes + 1, d->width * sizeof *d->rows));
    d->biases = xrealloc(d->biases, array_size(d->classes + 1, sizeof *d->biases));
    if (d->classes == 0)
        return;
    linear_multiply(pool, &(struct linear_product){.rows = d->classes,
                                                   .columns = d->width,
                                                   .inner = d->width,
                                                   .a = d->means,
                                                   .b = d->precision,
                                                   .out = d->rows});
    for (size_t c = 0; c < d->classes; c++) {
        d->biases[c] = -log((double)d->classes);
        for (size_t k = 0; k < d->width; k++)
            d->biases[c] -= d->means[c * d->width + k] * d->rows[c * d->width + k] / 2;
    }
}

void discriminant_scores(const struct discriminant *d, const double *x, size_t n, struct threads *pool, double *scores)
{
    linear_multiply(pool,
                    &(struct linear_product){
                        .rows = n, .columns = d->classes, .inner = d->width, .a = x, .b = d->rows, .out = scores});
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < d->classes; c++)
            scores[i * d->classes + c] += d->biases[c];
        linear_unit(scores + i * d->classes, d->classes);
    }
}

void discriminant_free(struct discriminant *d)
{
    free(d->means);
    free(d->precision);
    free(d->rows);
    free(d->biases);
}

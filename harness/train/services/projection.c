#include "harness/train/services/projection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/train/services/host_step.h"

static const double text_length = 100;

void projection_multiply(const struct projection *p, size_t rows, size_t columns, size_t inner, const double *a,
                         const double *b, double *out)
{
    linear_multiply(p->pool, &(struct linear_product){
                                 .rows = rows, .columns = columns, .inner = inner, .a = a, .b = b, .out = out});
}

void projection_transpose(const double *a, size_t rows, size_t columns, double *out)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            out[c * rows + r] = a[r * columns + c];
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

void projection_apply(const struct projection *p, const double *x, size_t n, double *units, double *lengths)
{
    projection_multiply(p, n, p->width, p->inputs, x, p->weights, units);
    for (size_t i = 0; i < n; i++) {
        double *u = units + i * p->width;
        if (lengths != NULL)
            lengths[i] = sqrt(dot(u, u, p->width));
        linear_unit(u, p->width);
    }
}

void projection_gradient(const struct projection *p, const double *x, size_t n, const double *units,
                         const double *lengths, double *slopes, double *work, double *gradient)
{
    for (size_t i = 0; i < n; i++) {
        const double *u = units + i * p->width;
        double *slope = slopes + i * p->width, along = dot(slope, u, p->width);
        for (size_t k = 0; k < p->width; k++) /* a length of 0 has no direction */
            slope[k] = lengths[i] > 0 ? (slope[k] - along * u[k]) / lengths[i] : 0;
    }
    projection_transpose(slopes, n, p->width, work);
    projection_transpose(x, n, p->inputs, work + n * p->width);
    projection_multiply(p, p->width, p->inputs, n, work, work + n * p->width, gradient);
}

/* The rows that two classes' texts share; adds their gradient in u. */
static double add_margins(const struct projection *p, const struct projection_texts *texts,
                          const struct projection_batch *b, double margin, const double *units, double *slopes)
{
    double loss = 0, share = 1 / (double)(b->n - b->labelled);
    for (size_t i = b->labelled; i < b->n; i++) {
        const double *own = texts->rows + (size_t)b->labels[i] * p->width,
                     *other = texts->rows + (size_t)b->others[i] * p->width, *u = units + i * p->width;
        double short_of = margin - (dot(u, own, p->width) - dot(u, other, p->width)) / text_length;
        loss += short_of > 0 ? share * short_of : 0;
        for (size_t k = 0; k < p->width; k++)
            slopes[i * p->width + k] = short_of > 0 ? share * (other[k] - own[k]) / text_length : 0;
    }
    return loss;
}

double projection_loss(const struct projection *p, const struct projection_texts *texts,
                       const struct projection_batch *b, double margin, double *gradient)
{
    size_t width = p->width, classes = texts->classes;
    double *units = b->work, *slopes = units + b->n * width, *turned = slopes + b->n * width,
           *scores = turned + 2 * b->n * width, *lengths = scores + b->n * classes;
    projection_apply(p, b->x, b->n, units, lengths);
    projection_multiply(p, b->labelled, classes, width, units, texts->rows, scores);
    double loss = host_cross_entropy(scores, b->labelled, classes, b->labels, NULL);
    projection_multiply(p, b->labelled, width, classes, scores, texts->columns, slopes);
    if (b->n > b->labelled)
        loss += add_margins(p, texts, b, margin, units, slopes);
    projection_gradient(p, b->x, b->n, units, lengths, slopes, turned, gradient);
    return loss;
}

status projection_fuse(struct projection *p, const double *before, double keep, struct error *error)
{
    size_t width = p->width, count = width * width;
    OWNED double *change = xmalloc(array_size(3 * count, sizeof *change));
    double *turned = change + count, *parts = turned + count, most = 0;
    SCOPED(svd_free) struct svd svd = {0};
    memcpy(change, before, count * sizeof *change);
    TRY(svd_create(&svd, change, width, width, error));
    for (size_t i = 0; i < count; i++)
        change[i] = p->weights[i] - before[i];
    projection_transpose(change, width, width, turned);
    projection_transpose(svd.u, width, width, change);
    projection_multiply(p, width, width, width, turned, change, parts); /* Dᵀ */
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(parts[i]));
    for (size_t i = 0; i < count && most > 0; i++)
        parts[i] *= fmin(1, fabs(parts[i]) / most + keep);
    projection_multiply(p, width, width, width, svd.u, parts, change);
    for (size_t i = 0; i < count; i++)
        p->weights[i] = before[i] + change[i];
    return OK;
}

void projection_scores(const struct projection *p, const struct projection_texts *texts, const double *x, size_t n,
                       double *units, double *scores)
{
    projection_apply(p, x, n, units, NULL);
    projection_multiply(p, n, texts->classes, p->width, units, texts->rows, scores);
}

/* A linear layer behind a frozen tower, compared with texts, on the host in double precision (RAPF: Huang et al., ECCV 2024,
 * arXiv 2407.14143). With features x as they are and texts that are 100 times unit vectors:
 *
 *     u = W x / ‖W x‖,  scores = u · textᵀ
 *
 *     double loss = projection_loss(&layer, &texts, &batch, 0.1, gradient);     // training, with host_adam
 *     TRY(projection_fuse(&layer, before, 0.6, error));                        // after a task
 *     projection_scores(&layer, &texts, x, n, units, scores);
 *
 * The loss and its fusion are RAPF's, of a square layer.
 */
#pragma once

#include <stdint.h>

#include "core/linear.h"

struct projection {
    size_t width, inputs;
    double *weights; /* W [width, inputs] */
    struct threads *pool;
};

/* units [n, width] = u of x [n, inputs]; lengths [n] = ‖W x‖, unless NULL */
void projection_apply(const struct projection *layer, const double *x, size_t n, double *units, double *lengths);
/* gradient [width, inputs] in W from slopes [n, width], the gradient in u, which are overwritten; work: n · (width + inputs) */
void projection_gradient(const struct projection *layer, const double *x, size_t n, const double *units,
                         const double *lengths, double *slopes, double *work, double *gradient);
/* out [rows, columns] = a bᵀ on the layer's threads; a [rows, inner], b [columns, inner] */
void projection_multiply(const struct projection *layer, size_t rows, size_t columns, size_t inner, const double *a,
                         const double *b, double *out);
void projection_transpose(const double *a, size_t rows, size_t columns, double *out);

struct projection_texts {
    size_t classes;
    double *rows, *columns; /* [classes, width] and its transpose, which the loss reads */
};

struct projection_batch {
    size_t n, labelled;       /* rows; the first ones have a label */
    double *x;                /* [n, width] */
    int32_t *labels, *others; /* [n]; others: of the rows behind, the class that theirs is told from */
    double *work;             /* n · (4 width + classes + 1) values */
};

/* The mean cross-entropy of the labelled rows, plus the mean over the others of max(0, margin − u · (text of label − text of other)) of
 * unit texts; gradient [width, width]. */
double projection_loss(const struct projection *layer, const struct projection_texts *texts,
                       const struct projection_batch *batch, double margin, double *gradient);

/* Takes back part of the change since `before`, W₀ = U S Vᵀ: with D = Uᵀ (W − W₀) and m = max |D|,
 *
 *     W ← W₀ + U (min(1, |D| / m + keep) ∘ D)                                  (equations 7 to 10)
 *
 * ERROR_FORMAT where W₀ is not finite. */
status projection_fuse(struct projection *layer, const double *before, double keep, struct error *error);

/* scores [n, classes]; x [n, width]; units [n, width] receives u. */
void projection_scores(const struct projection *layer, const struct projection_texts *texts, const double *x, size_t n,
                       double *units, double *scores);

/* A square linear layer behind a frozen tower, compared with texts, on the host in double precision (RAPF: Huang et al., ECCV 2024,
 * arXiv 2407.14143). With features x as they are and texts that are 100 times unit vectors:
 *
 *     u = W x / ‖W x‖,  scores = u · textᵀ
 *
 *     double loss = projection_loss(&layer, &texts, &batch, 0.1, gradient);     // training, with host_adam
 *     TRY(projection_fuse(&layer, before, 0.6, error));                        // after a task
 *     projection_scores(&layer, &texts, x, n, units, scores);
 */
#pragma once

#include <stdint.h>

#include "core/linear.h"

struct projection {
    size_t width;
    double *weights; /* W [width, width] */
    struct threads *pool;
};

struct projection_texts {
    size_t classes;
    double *rows, *columns; /* [classes, width] and its transpose, which the loss reads */
};

struct projection_batch {
    size_t n, labelled;       /* rows, of which the first have a label */
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

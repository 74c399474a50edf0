/* Ridge regression from frozen features to one-hot labels, in closed form and extended class by class (RAIL: Xu et al., NeurIPS
 * 2024, arXiv 2406.18868). With unit features x, Φ of all rows so far, one-hot labels Y of all classes so far:
 *
 *     primal (its theorem 1)   Φ(x) = relu(x · randomᵀ), random [M, width] fixed     W = (ΦᵀΦ + ridge · I)⁻¹ ΦᵀY
 *     dual (its theorem 2)     Φ(x)_i = exp(−gamma ‖x − x_i‖²), x_i all rows so far   W = (Φ + ridge · I)⁻¹ Y
 *     scores(x) = Φ(x) W
 *
 *     struct regression r = {.form = REGRESSION_PRIMAL, .width = d, .ridge = 0.1, .pool = pool};
 *     TRY(regression_draw(&r, hidden, seed, error));                                 // primal alone
 *     TRY(regression_add(&r, features, labels, n, classes, error));                  // the rows of a task
 *     TRY(regression_solve(&r, error));
 *     TRY(regression_scores(&r, features, n, scores, error));
 *     regression_free(&r);
 *
 * All in double precision on the host. Between two tasks the primal form keeps ΦᵀΦ (4 M² bytes, whatever the number of rows),
 * the dual one every row; solving takes a second matrix of that kind.
 */
#ifndef MTIL_HARNESS_TRAIN_SERVICES_REGRESSION_H
#define MTIL_HARNESS_TRAIN_SERVICES_REGRESSION_H

#include "core/linear.h"
#include "harness/train/serializer.h"

enum regression_form { REGRESSION_PRIMAL, REGRESSION_DUAL };

struct regression {
    enum regression_form form;
    size_t width;
    double ridge, gamma;
    struct threads *pool;
    size_t classes;         /* so far */
    size_t basis;           /* M: random directions, or rows so far */
    double *bases;          /* [M, width]: random, or x_i */
    struct symmetric *gram; /* primal: ΦᵀΦ */
    double *products;       /* primal: [classes, M], (ΦᵀY)ᵀ */
    int32_t *labels;        /* dual: [M] */
    double *coefficients;   /* [classes, M], Wᵀ; NULL: not solved since rows were added */
};

/* Directions uniform in ±1/√width, as PyTorch initialises a linear layer. */
status regression_draw(struct regression *regression, size_t hidden, uint64_t seed, struct error *error);
void regression_free(struct regression *regression);

/* features [n, width], of any norm; labels are numbers among all classes so far, `classes` of them with the new
 * ones. */
status regression_add(struct regression *regression, const float *features, const int32_t *labels, size_t n,
                      size_t classes, struct error *error);
status regression_solve(struct regression *regression, struct error *error);
/* scores [n, classes] */
status regression_scores(const struct regression *regression, const float *features, size_t n, double *scores,
                         struct error *error);

/* For a method's keep, without the directions. */
status regression_keep(struct regression *regression, const struct serializer *serializer, struct error *error);

/* Peak bytes, bytes between tasks and floating-point operations, for given numbers of rows, classes and tasks. */
struct regression_cost {
    double most, kept, operations;
};
struct regression_cost regression_cost(enum regression_form form, size_t width, size_t hidden, size_t rows,
                                       size_t classes, size_t tasks);

#endif

/* A linear map from frozen features to classes, in closed form and extended class by class. With features x, Φ of all rows so far,
 * one-hot labels Y of all classes so far:
 *
 *     primal   Φ(x) = relu(x · randomᵀ), random [M, width] fixed                     W = (ΦᵀΦ + ridge · I)⁻¹ ΦᵀY
 *     dual     Φ(x)_i = exp(−gamma ‖x − x_i‖²), x_i all rows so far                   W = (Φ + ridge · I)⁻¹ Y
 *     means    Φ(x) = x                                                              W = ΦᵀY, each column divided by its norm
 *     scores(x) = Φ(x) W
 *
 *     struct regression r = {.form = REGRESSION_PRIMAL, .width = d, .ridge = 0.1, .pool = pool};
 *     regression_draw(&r, hidden, seed);                                             // primal alone
 *     regression_add(&r, features, labels, n, classes);                              // the rows of a task
 *     TRY(regression_solve(&r, error));
 *     regression_scores(&r, features, n, scores);
 *     regression_free(&r);
 *
 * primal and dual with unit x: RAIL (Xu et al., NeurIPS 2024, arXiv 2406.18868), theorems 1 and 2. primal with x as it is, random
 * directions that are normal, and a ridge from `validated`: RanPAC (McDonnell et al., NeurIPS 2023, arXiv 2307.02251). means: the
 * prototypes of SimpleCIL (Zhou et al., IJCV 2024, arXiv 2303.07338); x is as it is in the sums and a unit vector in the scores,
 * which are cosines. The three are one family: without the inverse, primal scores by prototypes of Φ.
 *
 * All in double precision on the host. Between two tasks the primal form keeps ΦᵀΦ (4 M² bytes, whatever the number of rows),
 * the dual one every row; solving takes a second matrix of that kind. A pool
 * that obeys a stop (core/threads.h) makes solving fail and leaves sums and scores incomplete.
 */
#pragma once

#include "core/linear.h"
#include "harness/train/method.h"

enum regression_form { REGRESSION_PRIMAL, REGRESSION_DUAL, REGRESSION_MEANS };

struct regression {
    enum regression_form form;
    size_t width;
    double ridge, gamma;
    bool validated; /* primal: as in RanPAC (above), the ridge by regression_learn_validated */
    double fusion,
        others; /* the own scores' share in the sum with CLIP's; the own score of a class that is not learned */
    struct threads *pool;
    size_t classes;         /* so far */
    size_t basis;           /* M: random directions, rows so far, or the width */
    double *bases;          /* [M, width]: random, or x_i; means: NULL */
    struct symmetric *gram; /* primal: ΦᵀΦ */
    double *products;       /* primal, means: [classes, M], (ΦᵀY)ᵀ */
    int32_t *labels;        /* dual: [M] */
    double *coefficients;   /* [classes, M], Wᵀ; NULL: not solved since rows were added */
};

/* Directions uniform in ±1/√width, as PyTorch initialises a linear layer; if validated, N(0, 1). */
void regression_draw(struct regression *regression, size_t hidden, uint64_t seed);
void regression_free(struct regression *regression);

/* features [n, width], of any norm; labels are numbers among all classes so far, `classes` of them with the new
 * ones. */
void regression_add(struct regression *regression, const float *features, const int32_t *labels, size_t n,
                    size_t classes);
status regression_solve(struct regression *regression, struct error *error);
/* Adds the rows [n] of a task, in random order, of classes from `first` on, and solves with the ridge that RanPAC's public code
 * chooses (optimise_ridge_parameter): of 10⁻⁸, 10⁻⁷, … 10⁸ the first with the least squared error on the last fifth of them, of a
 * regression on the others. Ridges too small for double precision are passed over, also for the next larger one that all rows so
 * far can be solved with. The search takes 17 factors of a matrix as large as there are rows or, beyond half of M rows, M. */
status regression_learn_validated(struct regression *regression, const float *features, const int32_t *labels, size_t n,
                                  size_t first, size_t classes, struct error *error);
/* scores [n, classes] */
void regression_scores(const struct regression *regression, const float *features, size_t n, double *scores);

/* Peak bytes, bytes between tasks and floating-point operations of a regression with form, width, basis (but of the dual form) and
 * validated, for given numbers of rows, classes and tasks. */
struct regression_cost {
    double most, kept, operations;
};
struct regression_cost regression_cost(const struct regression *regression, size_t rows, size_t classes, size_t tasks);

/* Columns are the classes first, first + 1, … of all; features [n, width]. On entry scores [n, columns] are those of
 * CLIP's texts. With p = softmax(scores) they become, where the best class of p is learned (adapted [n], unless NULL,
 * receives whether it is), (1 − fusion) p + fusion · own, and p elsewhere. An image that CLIP assigns to a class not
 * learned therefore keeps CLIP's answer. */
void regression_fuse(const struct regression *regression, size_t first, const float *features, size_t n, size_t classes,
                     float *scores, bool *adapted);

/* For methods whose state is a regression. open: with form, ridge and the form's other fields set; hidden: random
 * directions of the primal form. Refuses sizes that do not fit into the machine's memory. */
status regression_open(struct method_run *run, size_t hidden, struct error *error);
void regression_hook_close(struct method_run *run);
status regression_hook_end_task(struct method_run *run, const struct task *task, struct error *error);
status regression_hook_scores(struct method_run *run, const struct task *task, const float *features, size_t n,
                              size_t classes, float *scores, struct error *error);
void regression_hook_cost(const struct method_run *run, struct method_cost *cost);
/* Keeps everything but the directions. */
status regression_hook_keep(struct method_run *run, const struct serializer *serializer, struct error *error);

#define REGRESSION_HOOKS                                                                                               \
    .state_size = sizeof(struct regression), .close = regression_hook_close, .end_task = regression_hook_end_task,     \
    .scores = regression_hook_scores, .cost = regression_hook_cost, .keep = regression_hook_keep

/* Rank-one experts beside a linear layer, which route themselves (MoRAM: Lu et al., ICML 2026, arXiv 2506.21035, Equations 4
 * to 7): expert i has a key k_i and a value v_i, and an input x gets
 *
 *     p_i = k_i · x,   n = p / ‖p‖,   w = softmax(n / temperature) over the top_k largest n, 0 elsewhere
 *     y += Σ_i w_i p_i v_i
 *
 * In evaluation, w_i = 0 where n_i is below the threshold, without normalising again. Several layers may share keys and
 * values; every expert takes part, those of the task at hand alone are trained.
 *
 *     struct rank_one layer = {.keys = keys, .values = values, .experts = 32, .first = 16, .in = d, .out = d,
 *                              .top_k = 16, .temperature = 0.01f, .threshold = 0.2f};
 *     TRY(rank_one_forward(&layer, backend, &step_arena, x, training, y, error));
 *     TRY(rank_one_backward(&layer, backend, &step_arena, x, dy, dx, error));
 *
 * Nothing is kept between the two: the backward pass computes p and w again, which takes one narrow product.
 */
#ifndef MTIL_MODELS_RANK_ONE_H
#define MTIL_MODELS_RANK_ONE_H

#include "models/parameters.h"

struct rank_one {
    struct weight keys, values; /* [experts, in], [experts, out] */
    size_t experts, first;      /* so far; those from first on are trained, where there are gradients */
    size_t in, out;
    size_t top_k;
    float temperature, threshold; /* threshold 0: none */
};

/* y [rows, out] += …, x [rows, in] */
status rank_one_forward(const struct rank_one *layer, struct backend *backend, struct arena *arena, struct matrix x,
                        bool training, struct matrix y, struct error *error);
/* dx (no data: not wanted), and the gradients of keys and values from `first` on, += … */
status rank_one_backward(const struct rank_one *layer, struct backend *backend, struct arena *arena, struct matrix x,
                         struct matrix dy, struct matrix dx, struct error *error);

#endif

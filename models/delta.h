/* A low-rank update of a layer's weight, kept apart from it (LoRA: Hu et al., ICLR 2022):
 *
 *     y[first … first + out) += scale · gate(x Aᵀ) B          A [rows, in], B [rows, out], which is the paper's Bᵀ
 *
 * Without a gate this is the weight W + scale · Bᵀ A. Some of the last rows may be trained while the others stay as they are.
 */
#pragma once

#include "models/backend.h"

struct delta;

/* What happens between the halves, for experts of rank one that choose themselves, or directions with a magnitude. p, q and their
 * gradients are f32 [N, rows]. */
struct delta_gate {
    const char *name; /* in files */
    /* Sets q from p = x Aᵀ. */
    status (*forward)(const struct delta *delta, struct backend *backend, struct arena *arena, bool training,
                      struct matrix p, struct matrix q, struct error *error);
    /* Sets dp from dq, as in training, and adds the gradients of what the gate has itself. */
    status (*backward)(const struct delta *delta, struct backend *backend, struct arena *arena, struct matrix p,
                       struct matrix dq, struct matrix dp, struct error *error);
};

struct delta {
    float *a, *b;
    float *da, *db;                /* gradients of the last `trained` rows; NULL: this half is not trained */
    size_t rows, trained;          /* rows 0: none is in use */
    size_t first, out;             /* rows of the layer's weight, columns of its output */
    float scale;                   /* not 0 */
    bool trains;                   /* halves or gate: a gradient is wanted */
    const struct delta_gate *gate; /* NULL: none */
    void *state;                   /* the gate's */
};

/* The term of the layer's product that is the delta's, of x [N, in], in memory of the arena. */
status delta_forward(const struct delta *delta, struct backend *backend, struct arena *arena, bool training,
                     struct matrix x, struct gemm_term *term, struct error *error);

/* Adds to the halves' gradients; the term is that of the product which is dx [N, in]. dy is that of all outputs. */
status delta_backward(const struct delta *delta, struct backend *backend, struct arena *arena, struct matrix x,
                      struct matrix dy, size_t in, struct gemm_term *term, struct error *error);

/* The operations of models/backend.h as plain loops in double precision; only tests use them.
 *
 *     reference_product(expected, matrix_rows(a, m, k), false, matrix_rows(b, k, n), false);
 *
 * Matrices hold floats on the host; results are doubles, contiguous, and set unless a comment says "+=".
 */
#pragma once

#include "core/rng.h"
#include "models/backend.h"

double reference_at(struct matrix matrix, size_t row, size_t column);

double reference_activation(enum activation activation, double x);
double reference_slope(enum activation activation, double x); /* its derivative */

/* out [m, n] = op(a) op(b) */
void reference_product(double *out, struct matrix a, bool transpose_a, struct matrix b, bool transpose_b);

/* y [rows, columns]; statistics [rows, 2] mean and 1/deviation */
void reference_layer_norm(double *y, double *statistics, struct matrix x, const float *gain, const float *bias);
/* all += */
void reference_layer_norm_backward(double *dx, double *dgain, double *dbias, struct matrix x, struct matrix dy,
                                   const float *gain);

/* With qkv as floats and rows on the host; out and dqkv are set. */
void reference_attention(double *out, const struct attention_operands *o);
void reference_attention_backward(double *dqkv, const struct attention_operands *o, const float *dout);

/* Attention over prefixes, with everything on the host (qkv, weights, values, router, rows as floats and numbers): out and
 * dqkv, dvalues += … */
void reference_prefix(double *out, const struct prefix_operands *o);
void reference_prefix_backward(double *dqkv, double *dvalues, const struct prefix_operands *o, const float *dout);

/* The K largest, best first, ties to the lowest index, and their softmax. */
void reference_choose(int32_t *chosen, double *gates, const double *z, size_t experts, size_t top_k);

/* Slots by expert, then by sample, from chosen [samples, top_k]; slot, sample, choice and offsets of the dispatch are set. An
 * expert keeps at most `limit` choices (0: all). */
void reference_sort(struct dispatch *dispatch, size_t limit);

/* Experts of a dispatch's choices that have a slot; everything on the host. */
struct reference_experts {
    struct expert_stack_operands stack;
    const float *weights; /* [B, K] */
    const float *x, *dy;  /* [B, L, d] */
    const int32_t *frozen;
};
/* y += … */
void reference_experts(double *y, const struct reference_experts *o);
/* dgates [B, K], dx and dparts += … */
void reference_experts_backward(double *dgates, double *dx, double *const dparts[4], const struct reference_experts *o);

/* What dropout multiplies the value of an index by: 0, or 1 / (1 − p). */
double reference_dropout(const struct rng *rng, uint64_t index, double probability);

/* p [n] = softmax(z) */
void reference_softmax(double *p, const double *z, size_t n);

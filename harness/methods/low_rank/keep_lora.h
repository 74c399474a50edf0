/* The arithmetic of KeepLoRA (keep_lora.c) for one matrix. U: a subspace of its inputs (services/layer_pass.h). */
#pragma once

#include "harness/train/services/layer_pass.h"

/* Starts A and B from the gradient [out, in] of the weight. With G = gradientᵀ − U Uᵀ gradientᵀ = Q diag(s) Vᵀ, a
 * [rank, in] gets the first `rank` columns of Q and b [rank, out] those rows of diag(s) Vᵀ, zeros where s is
 * rounding. */
status keep_lora_start(const struct subspace *space, const double *gradient, size_t out, size_t in, size_t rank,
                       float *a, float *b, struct error *error);

/* products [n, n] = F Fᵀ becomes a matrix F' with the same left singular vectors and values, by which U is extended. */
status keep_lora_inputs(double *products, size_t n, struct error *error);

/* The arithmetic of MINGLE (mingle.c) for one matrix, on the host. */
#pragma once

#include "harness/train/services/layer_pass.h"

struct gate_constraint {
    double relaxation, memory; /* γ and β */
};

/* The gradient [n] of a gate's w, with u_k the vectors of the subspace: interference [rank] h_k ← β h_k + (1 − β) |g · u_k| / ‖g‖, then
 * g ← g − Σ_k exp(−γ h_k) (g · u_k) u_k. */
void mingle_constrain(const struct subspace *space, const struct gate_constraint *constraint, double *interference,
                      double *gradient);

/* The subspace grows by what of the first `count` left singular vectors of matrix [n, n] is outside it, one after the other. */
status mingle_extend(struct subspace *space, const double *matrix, size_t count, struct error *error);

/* change [out, in] loses U Uᵀ change V Vᵀ, U and V the first singular vectors of the earlier changes' sum [out, in], which is
 * overwritten: as many as the exponential of the entropy of s / Σ s, rounded down. */
status mingle_separate(double *change, double *merged, size_t out, size_t in, struct error *error);

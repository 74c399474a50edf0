/* A growing subspace of a layer's inputs that later tasks leave alone (GPM: Saha et al., ICLR 2021; in InfLoRA, Liang & Li, CVPR
 * 2024, and KeepLoRA, ICLR 2026): orthonormal columns U, kept as rows.
 *
 *     TRY(subspace_extend(&space, matrix, n, columns, 0.98, error));   // until U covers 98% of the energy of matrix [n, columns]
 *     subspace_remove(&space, matrix, columns);                        // matrix − U Uᵀ matrix
 */
#pragma once

#include "harness/train/serializer.h"

struct subspace {
    size_t n;      /* of a vector */
    int32_t rank;  /* vectors */
    double *basis; /* [rank, n], on the host */
};

void subspace_free(struct subspace *space); /* zeros are allowed */

void subspace_remove(const struct subspace *space, double *matrix, size_t columns);

/* Adds left singular vectors of what is left of matrix [n, columns], in their order, until the share of Σ s² that is covered is no
 * longer below `share`; an empty subspace takes those before which the running share is below it, at least one, as GPM's
 * code does. */
status subspace_extend(struct subspace *space, const double *matrix, size_t n, size_t columns, double share,
                       struct error *error);

/* For a method's keep. */
status subspace_keep(struct subspace *space, size_t n, const char *name, const struct serializer *serializer,
                     struct error *error);

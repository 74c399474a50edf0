#include "harness/train/services/subspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"

void subspace_free(struct subspace *space)
{
    free(space->basis);
    *space = (struct subspace){0};
}

/* For each vector u: matrix −= u (uᵀ matrix), which for orthonormal vectors is their projection. */
void subspace_remove(const struct subspace *space, double *matrix, size_t columns)
{
    double *row = xmalloc(array_size(columns, sizeof *row));
    for (int32_t i = 0; i < space->rank; i++) {
        const double *u = space->basis + (size_t)i * space->n;
        memset(row, 0, columns * sizeof *row);
        for (size_t r = 0; r < space->n; r++)
            for (size_t c = 0; c < columns; c++)
                row[c] += u[r] * matrix[r * columns + c];
        for (size_t r = 0; r < space->n; r++)
            for (size_t c = 0; c < columns; c++)
                matrix[r * columns + c] -= u[r] * row[c];
    }
    free(row);
}

static double energy(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i] * values[i];
    return sum;
}

static size_t vectors_wanted(const struct subspace *space, const double *s, size_t k, double covered, double total,
                             double share)
{
    size_t count = 0;
    bool first = space->rank == 0;
    while (count < k && space->n > (size_t)space->rank + count &&
           (covered + (first ? s[count] * s[count] : 0)) / total < share) {
        covered += s[count] * s[count];
        count++;
    }
    return first && count == 0 ? 1 : count;
}

status subspace_extend(struct subspace *space, const double *matrix, size_t n, size_t columns, double share,
                       struct error *error)
{
    size_t k = n < columns ? n : columns, values = array_size(n, columns);
    double *rest = xmalloc(values * sizeof *rest);
    struct svd f;
    space->n = n;
    memcpy(rest, matrix, values * sizeof *rest);
    subspace_remove(space, rest, columns);
    double total = energy(matrix, values), covered = total - energy(rest, values);
    status result = svd_create(&f, rest, n, columns, error);
    size_t count = result == OK && total > 0 ? vectors_wanted(space, f.s, k, covered, total, share) : 0;
    space->basis = xrealloc(space->basis, array_size((size_t)space->rank + count + 1, n * sizeof *space->basis));
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < n; r++)
            space->basis[((size_t)space->rank + i) * n + r] = f.u[r * k + i];
    space->rank += (int32_t)count;
    free(rest);
    svd_free(&f);
    return result;
}

status subspace_keep(struct subspace *space, size_t n, const char *name, const struct serializer *serializer,
                     struct error *error)
{
    char rank[96];
    snprintf(rank, sizeof rank, "%s.rank", name);
    TRY(serializer_host(serializer, rank, SAFETENSOR_I32, 1, &space->rank, error));
    space->n = n;
    if (!serializer->saving)
        space->basis = xrealloc(space->basis, array_size((size_t)space->rank + 1, n * sizeof *space->basis));
    return space->rank > 0
               ? serializer_host(serializer, name, SAFETENSOR_F64, (size_t)space->rank * n, space->basis, error)
               : OK;
}

#include "harness/train/services/subspace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "core/linear.h"
#include "core/svd.h"

static double *matrix(size_t rows, size_t columns)
{
    return xmalloc(array_size(array_size(rows, columns), sizeof(double)) + 1);
}

/* out [rows, columns] = a bᵀ */
static void multiply(const struct subspace *u, size_t rows, size_t columns, size_t inner, const double *a,
                     const double *b, double *out)
{
    linear_multiply(u->pool, &(struct linear_product){
                                 .rows = rows, .columns = columns, .inner = inner, .a = a, .b = b, .out = out});
}

static double *widened(const float *values, size_t n)
{
    double *wide = matrix(n, 1);
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    return wide;
}

void subspace_free(struct subspace *subspace)
{
    free(subspace->basis);
    subspace->basis = NULL;
    subspace->rank = 0;
}

void subspace_projector(const struct subspace *u, double *projector)
{
    size_t d = u->width;
    if (u->rank == 0) {
        memset(projector, 0, d * d * sizeof *projector);
        return;
    }
    double *columns = matrix(d, u->rank);
    for (size_t r = 0; r < u->rank; r++)
        for (size_t i = 0; i < d; i++)
            columns[i * u->rank + r] = u->basis[r * d + i];
    multiply(u, d, d, u->rank, columns, columns, projector);
    free(columns);
}

/* I − U Uᵀ, which the caller frees */
static double *remainder_of(const struct subspace *u)
{
    size_t d = u->width;
    double *rest = matrix(d, d);
    subspace_projector(u, rest);
    for (size_t i = 0; i < d * d; i++)
        rest[i] = (i % (d + 1) == 0 ? 1 : 0) - rest[i];
    return rest;
}

/* The next vector of U: column r of vectors [width, columns]. */
static void add_vector(struct subspace *u, const double *vectors, size_t columns, size_t r)
{
    double *row = u->basis + u->rank++ * u->width;
    for (size_t i = 0; i < u->width; i++)
        row[i] = vectors[i * columns + r];
}

static status check(const double *s, const char *what, struct error *error)
{
    return isfinite(s[0])
               ? OK
               : error_set(error, ERROR_FORMAT,
                           "%s: no singular values: a value is not finite; lower training.learning_rate", what);
}

status subspace_start(struct subspace *u, const float *weight, size_t inputs, double share, struct error *error)
{
    size_t d = u->width, k = d < inputs ? d : inputs, r = 0;
    double *a = widened(weight, d * inputs), *vectors = matrix(d, k), *s = matrix(k, 1), *right = matrix(k, inputs),
           total = 0, running = 0;
    svd(d, inputs, a, vectors, s, right);
    status result = check(s, "weight", error);
    u->basis = xrealloc(u->basis, array_size(d * d, sizeof *u->basis));
    u->rank = 0;
    for (size_t i = 0; i < k; i++)
        total += s[i] * s[i];
    for (; result == OK && r < k; r++) {
        running += s[r] * s[r];
        if (!(running / total < share))
            break;
    }
    for (size_t i = 0; result == OK && i < (r > 0 ? r : 1); i++)
        add_vector(u, vectors, k, i);
    free(a);
    free(vectors);
    free(s);
    free(right);
    return result;
}

status subspace_low_rank(const struct subspace *u, const float *gradient, size_t out, size_t rank, float *a, float *b,
                         struct error *error)
{
    size_t d = u->width, k = out < d ? out : d;
    double *rest = remainder_of(u), *g = widened(gradient, out * d), *left = matrix(out, d), *s = matrix(k, 1),
           *vt = matrix(k, d), *vectors = matrix(out, k);
    multiply(u, out, d, d, g, rest, left); /* the residual, transposed like the gradient */
    svd(out, d, left, vectors, s, vt);
    status result = check(s, "gradient", error);
    for (size_t i = 0; result == OK && i < rank * d; i++)
        a[i] = (float)vt[i];
    for (size_t i = 0; result == OK && i < out * rank; i++)
        b[i] = (float)(vectors[i / rank * k + i % rank] * s[i % rank]);
    free(rest);
    free(g);
    free(left);
    free(s);
    free(vt);
    free(vectors);
    return result;
}

void subspace_products(const struct subspace *u, const float *features, size_t n, double *products)
{
    size_t d = u->width;
    double *f = matrix(d, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++)
            f[j * n + i] = (double)features[i * d + j];
    multiply(u, d, d, n, f, f, products);
    free(f);
}

static double trace(const double *products, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += products[i * (d + 1)];
    return sum;
}

status subspace_extend(struct subspace *u, const double *products, double share, struct error *error)
{
    size_t d = u->width;
    double *rest = remainder_of(u), *half = matrix(d, d), *residual = matrix(d, d), *vectors = matrix(d, d),
           *s = matrix(d, 1), *vt = matrix(d, d), total = trace(products, d);
    multiply(u, d, d, d, rest, products, half); /* products are symmetric */
    multiply(u, d, d, d, rest, half, residual);
    svd(d, d, residual, vectors, s, vt); /* s: squares of the singular values of R */
    status result = check(s, "inputs of a layer", error);
    double covered = total - trace(residual, d);
    u->basis = xrealloc(u->basis, array_size(d * d, sizeof *u->basis));
    for (size_t r = 0; result == OK && u->rank < d && covered / total < share; r++) {
        covered += s[r];
        add_vector(u, vectors, d, r);
    }
    free(rest);
    free(half);
    free(residual);
    free(vectors);
    free(s);
    free(vt);
    return result;
}

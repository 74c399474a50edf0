#include "harness/train/services/regression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rng.h"

enum { ROWS = 256 }; /* rows at a time */

static status no_memory(const char *what, size_t n, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "regression: no memory for %zu %s", n, what);
}

static double *take(size_t rows, size_t columns)
{
    return malloc(array_size(array_size(rows, columns), sizeof(double)));
}

/* --- Bases --- */

static void rectify(const void *context, double *values, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] > 0 ? values[i] : 0;
}

/* The kernel from the cosine of two unit vectors: ‖x − y‖² = 2 − 2 x·y. */
static void gaussian(const void *context, double *values, size_t count)
{
    const struct regression *r = context;
    for (size_t i = 0; i < count; i++)
        values[i] = exp(-2 * r->gamma * fmax(1 - values[i], 0));
}

static linear_map map_of(const struct regression *r)
{
    return r->form == REGRESSION_PRIMAL ? rectify : gaussian;
}

status regression_draw(struct regression *r, size_t hidden, uint64_t seed, struct error *error)
{
    struct rng rng = rng_make(seed, RNG_DIRECTIONS, 0, 0);
    double bound = 1 / sqrt((double)r->width);
    r->bases = take(hidden, r->width);
    if (r->bases == NULL)
        return no_memory("random directions", hidden, error);
    r->basis = hidden;
    for (size_t i = 0; i < hidden * r->width; i++)
        r->bases[i] = bound * (2 * (double)rng_uniform(&rng, i) - 1);
    return OK;
}

static void normalise(const float *features, size_t n, size_t width, double *rows)
{
    for (size_t i = 0; i < n; i++) {
        double square = 0;
        for (size_t k = 0; k < width; k++)
            square += (double)features[i * width + k] * (double)features[i * width + k];
        for (size_t k = 0; k < width; k++)
            rows[i * width + k] = square > 0 ? (double)features[i * width + k] / sqrt(square) : 0;
    }
}

/* A chunk of up to ROWS rows: x [n, width], Φ [n, M]. */
struct expansion {
    double *x, *phi;
};

static status expansion_create(struct expansion *e, const struct regression *r, struct error *error)
{
    *e = (struct expansion){.x = take(ROWS, r->width), .phi = take(ROWS, r->basis)};
    if (e->x != NULL && e->phi != NULL)
        return OK;
    free(e->x);
    free(e->phi);
    return no_memory("expanded features", (size_t)ROWS, error);
}

static void expand(struct expansion *e, const struct regression *r, const float *features, size_t n)
{
    normalise(features, n, r->width, e->x);
    linear_multiply(r->pool, &(struct linear_product){.rows = n,
                                                      .columns = r->basis,
                                                      .inner = r->width,
                                                      .a = e->x,
                                                      .b = r->bases,
                                                      .out = e->phi,
                                                      .map = map_of(r),
                                                      .context = r});
}

/* --- Learning --- */

static status more_classes(struct regression *r, size_t classes, struct error *error)
{
    if (r->form == REGRESSION_DUAL || classes <= r->classes) {
        r->classes = classes > r->classes ? classes : r->classes;
        return OK;
    }
    double *products = realloc(r->products, array_size(array_size(classes, r->basis), sizeof *products));
    if (products == NULL)
        return no_memory("classes", classes, error);
    memset(products + r->classes * r->basis, 0, (classes - r->classes) * r->basis * sizeof *products);
    r->products = products;
    r->classes = classes;
    return OK;
}

static status add_primal(struct regression *r, const float *features, const int32_t *labels, size_t n,
                         struct error *error)
{
    struct expansion e;
    if (r->gram == NULL)
        TRY(symmetric_create(&r->gram, r->basis, error));
    TRY(expansion_create(&e, r, error));
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        expand(&e, r, features + first * r->width, count);
        symmetric_add(r->gram, r->pool, e.phi, count);
        for (size_t i = 0; i < count; i++) {
            double *sum = r->products + (size_t)labels[first + i] * r->basis;
            for (size_t h = 0; h < r->basis; h++)
                sum[h] += e.phi[i * r->basis + h];
        }
    }
    free(e.x);
    free(e.phi);
    return OK;
}

static status more_rows(struct regression *r, size_t n, struct error *error)
{
    double *rows = realloc(r->bases, array_size(array_size(r->basis + n, r->width), sizeof *rows));
    if (rows == NULL)
        return no_memory("rows", r->basis + n, error);
    r->bases = rows;
    int32_t *labels = realloc(r->labels, array_size(r->basis + n, sizeof *labels));
    if (labels == NULL)
        return no_memory("labels", r->basis + n, error);
    r->labels = labels;
    return OK;
}

static status add_dual(struct regression *r, const float *features, const int32_t *labels, size_t n,
                       struct error *error)
{
    TRY(more_rows(r, n, error));
    normalise(features, n, r->width, r->bases + r->basis * r->width);
    memcpy(r->labels + r->basis, labels, n * sizeof *labels);
    r->basis += n;
    return OK;
}

status regression_add(struct regression *r, const float *features, const int32_t *labels, size_t n, size_t classes,
                      struct error *error)
{
    free(r->coefficients);
    r->coefficients = NULL;
    TRY(more_classes(r, classes, error));
    return (r->form == REGRESSION_PRIMAL ? add_primal : add_dual)(r, features, labels, n, error);
}

/* The matrix to invert; the right-hand sides are in coefficients. */
static void set_equations(const struct regression *r, struct symmetric *matrix)
{
    if (r->form == REGRESSION_PRIMAL) {
        memcpy(matrix->values, r->gram->values, symmetric_values(r->basis) * sizeof *matrix->values);
        memcpy(r->coefficients, r->products, r->classes * r->basis * sizeof *r->coefficients);
    } else {
        symmetric_products(matrix, r->pool, r->bases, r->width, gaussian, r);
        memset(r->coefficients, 0, r->classes * r->basis * sizeof *r->coefficients);
        for (size_t i = 0; i < r->basis; i++)
            r->coefficients[(size_t)r->labels[i] * r->basis + i] = 1;
    }
    symmetric_shift(matrix, r->ridge);
}

status regression_solve(struct regression *r, struct error *error)
{
    struct symmetric *matrix;
    free(r->coefficients);
    r->coefficients = take(r->classes, r->basis);
    if (r->coefficients == NULL)
        return no_memory("classes' coefficients", r->classes, error);
    TRY(symmetric_create(&matrix, r->basis, error));
    set_equations(r, matrix);
    status result = symmetric_factor(matrix, r->pool, error);
    if (result == OK)
        symmetric_solve(matrix, r->pool, r->coefficients, r->classes);
    symmetric_destroy(matrix);
    return result;
}

status regression_scores(const struct regression *r, const float *features, size_t n, double *scores,
                         struct error *error)
{
    struct expansion e;
    TRY(expansion_create(&e, r, error));
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        expand(&e, r, features + first * r->width, count);
        linear_multiply(r->pool, &(struct linear_product){.rows = count,
                                                          .columns = r->classes,
                                                          .inner = r->basis,
                                                          .a = e.phi,
                                                          .b = r->coefficients,
                                                          .out = scores + first * r->classes});
    }
    free(e.x);
    free(e.phi);
    return OK;
}

void regression_free(struct regression *r)
{
    symmetric_destroy(r->gram);
    free(r->products);
    free(r->bases);
    free(r->labels);
    free(r->coefficients);
    *r = (struct regression){.form = r->form, .width = r->width, .ridge = r->ridge, .gamma = r->gamma, .pool = r->pool};
}

/* --- State --- */

static status keep_primal(struct regression *r, const struct serializer *serializer, size_t classes,
                          struct error *error)
{
    if (!serializer->saving && r->gram == NULL)
        TRY(symmetric_create(&r->gram, r->basis, error));
    TRY(more_classes(r, classes, error));
    TRY(serializer_host(serializer, "regression.gram", SAFETENSOR_F64, symmetric_values(r->basis), r->gram->values,
                        error));
    return serializer_host(serializer, "regression.products", SAFETENSOR_F64, classes * r->basis, r->products, error);
}

static status keep_dual(struct regression *r, const struct serializer *serializer, size_t classes, struct error *error)
{
    int64_t rows = (int64_t)r->basis;
    TRY(serializer_host(serializer, "regression.rows", SAFETENSOR_I64, 1, &rows, error));
    if (!serializer->saving) {
        r->basis = 0;
        TRY(more_rows(r, (size_t)rows, error));
        r->basis = (size_t)rows;
        r->classes = classes;
    }
    TRY(serializer_host(serializer, "regression.features", SAFETENSOR_F64, r->basis * r->width, r->bases, error));
    return serializer_host(serializer, "regression.labels", SAFETENSOR_I32, r->basis, r->labels, error);
}

status regression_keep(struct regression *r, const struct serializer *serializer, struct error *error)
{
    int32_t classes = (int32_t)r->classes;
    TRY(serializer_host(serializer, "regression.classes", SAFETENSOR_I32, 1, &classes, error));
    if (classes == 0)
        return OK;
    return (r->form == REGRESSION_PRIMAL ? keep_primal : keep_dual)(r, serializer, (size_t)classes, error);
}

struct regression_cost regression_cost(enum regression_form form, size_t width, size_t hidden, size_t rows,
                                       size_t classes, size_t tasks)
{
    bool primal = form == REGRESSION_PRIMAL;
    double basis = (double)(primal ? hidden : rows), n = (double)rows, c = (double)classes, d = (double)width,
           matrix = 8 * (double)symmetric_values((size_t)basis), pairs = basis * basis,
           /* the dual basis grows from task to task: a third of its squares and a quarter of its cubes */
        squares = (double)tasks * pairs * (primal ? 1 : 1.0 / 3),
           cubes = (double)tasks * pairs * basis * (primal ? 1 : 0.25),
           kept = primal ? matrix + 8 * c * basis : (8 * d + 4) * n;
    return (struct regression_cost){.kept = kept,
                                    .most = kept + matrix + 8 * basis * (c + ROWS) + (primal ? 8 * basis * d : 0),
                                    .operations = cubes / 3 + 2 * squares * c +
                                                  (primal ? n * (pairs + 2 * basis * d) : squares * d)};
}

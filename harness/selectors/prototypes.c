#include "harness/selectors/prototypes.h"
#include "core/alloc.h"
#include "core/scope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- State --- */

void prototypes_open(struct prototypes *p, const struct selector *selector, bool whitens)
{
    *p = (struct prototypes){.width = selector->model->clip->dimensions.embed,
                             .tasks = selector->tasks,
                             .counts = xcalloc(selector->tasks, sizeof *p->counts),
                             .points = xcalloc(selector->tasks, sizeof *p->points),
                             .whitens = whitens,
                             .scale = 1};
    if (whitens) {
        p->whitening = xcalloc(p->width * p->width, sizeof *p->whitening);
        p->mean = xcalloc(p->width, sizeof *p->mean);
    }
}

void prototypes_close(struct prototypes *p)
{
    for (size_t k = 0; p->points != NULL && k < p->tasks; k++)
        free(p->points[k]);
    free(p->points);
    free(p->counts);
    free(p->whitening);
    free(p->mean);
    *p = (struct prototypes){0};
}

void prototypes_take(struct prototypes *p, size_t k, size_t count)
{
    free(p->points[k]);
    p->counts[k] = 0;
    p->points[k] = xmalloc(array_size(count + 1, p->width * sizeof **p->points));
    p->counts[k] = count;
}

void prototypes_normalise(const float *rows, size_t n, size_t width, float *out)
{
    for (size_t i = 0; i < n; i++) {
        double squares = 0;
        for (size_t j = 0; j < width; j++)
            squares += (double)rows[i * width + j] * (double)rows[i * width + j];
        double norm = sqrt(squares);
        for (size_t j = 0; j < width; j++)
            out[i * width + j] = (float)(norm > 0 ? (double)rows[i * width + j] / norm : 0);
    }
}

/* --- Distances --- */

static double square(const float *row, size_t width)
{
    double total = 0;
    for (size_t j = 0; j < width; j++)
        total += (double)row[j] * (double)row[j];
    return total;
}

/* ‖x − p‖² = ‖x‖² + ‖p‖² − 2 x · p, which rounding can bring below 0. */
static void nearest(const struct prototypes *p, size_t k, const float *rows, size_t n, const float *products,
                    float *errors)
{
    for (size_t i = 0; i < n; i++) {
        double least = INFINITY, own = square(rows + i * p->width, p->width);
        for (size_t c = 0; c < p->counts[k]; c++) {
            double distance =
                own + square(p->points[k] + c * p->width, p->width) - 2 * (double)products[i * p->counts[k] + c];
            least = distance < least ? distance : least;
        }
        errors[i] = (float)(p->scale * (least > 0 ? least : 0));
    }
}

/* rows [n, width] on the sphere, whitened if that is wanted; other: room of the same size. */
static status place(const struct prototypes *p, struct model *model, const float *features, size_t n, float *rows,
                    float *other, struct error *error)
{
    prototypes_normalise(features, n, p->width, p->whitens ? other : rows);
    if (!p->whitens)
        return OK;
    for (size_t i = 0; i < n * p->width; i++)
        other[i] -= p->mean[i % p->width];
    return model_products(model, other, n, p->whitening, p->width, p->width, rows, error);
}

status prototypes_errors(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                         struct error *error)
{
    enum { ROWS = 1024 };
    const struct prototypes *p = selector->state;
    OWNED float *rows = xmalloc(array_size(ROWS, p->width * sizeof *rows)),
                *other = xmalloc(array_size(ROWS, p->width * sizeof *other)),
                *products = xmalloc(array_size(ROWS, (p->counts[k] + 1) * sizeof *products));
    for (size_t first = 0; first < images->n; first += ROWS) {
        size_t n = images->n - first < ROWS ? images->n - first : ROWS;
        TRY(place(p, selector->model, images->features + first * p->width, n, rows, other, error));
        TRY(model_products(selector->model, rows, n, p->points[k], p->counts[k], p->width, products, error));
        nearest(p, k, rows, n, products, errors + first);
    }
    return OK;
}

/* --- Files --- */

struct kept_rows prototypes_rows(const struct prototypes *p)
{
    return (struct kept_rows){.name = "prototypes", .width = p->width, .counts = p->counts, .rows = p->points};
}

/* Memory for the rows of task k in a file, `expected` of them; 0: as many as there are, at least one. */
static status take_rows(const struct kept_rows *kept, size_t k, const char *name, size_t expected,
                        const struct safetensors *file, struct error *error)
{
    const float *values;
    const struct safetensor *found = safetensors_find(file, name);
    size_t own = found != NULL && found->rank == 2 ? found->shape[0] : 1, count = expected > 0 ? expected : own;
    if (count == 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected at least one prototype, found none",
                         safetensors_path(file), name);
    TRY(selector_file_array(file, name, 2, (size_t[]){count, kept->width}, &values, error));
    free(kept->rows[k]);
    kept->counts[k] = count;
    kept->rows[k] = xmalloc(array_size(count, kept->width * sizeof *values));
    return OK;
}

status prototypes_file_rows(const struct kept_rows *kept, const struct selector_arrays *arrays, size_t trained,
                            size_t expected, struct error *error)
{
    for (size_t k = 0; k < trained; k++) {
        char name[64];
        snprintf(name, sizeof name, "selector.%zu.%s", k, kept->name);
        if (arrays->file != NULL)
            TRY(take_rows(kept, k, name, expected, arrays->file, error));
        TRY(selector_array(arrays, name, 2, (size_t[]){kept->counts[k], kept->width}, kept->rows[k], error));
    }
    return OK;
}

status prototypes_file(const struct selector *selector, const struct selector_arrays *arrays, struct error *error)
{
    const struct prototypes *p = selector->state;
    const struct kept_rows rows = prototypes_rows(p);
    TRY(prototypes_file_rows(&rows, arrays, selector->trained, 0, error));
    if (!p->whitens)
        return OK;
    TRY(selector_array(arrays, "selector.mean", 1, &p->width, p->mean, error));
    return selector_array(arrays, "selector.whitening", 2, (size_t[]){p->width, p->width}, p->whitening, error);
}

status prototypes_keep_rows(const struct kept_rows *kept, const struct serializer *p, size_t trained,
                            struct error *error)
{
    for (size_t k = 0; k < trained; k++) {
        char name[64];
        uint64_t count = kept->counts[k];
        snprintf(name, sizeof name, "selector.%zu.%s.count", k, kept->name);
        TRY(serializer_host(p, name, SAFETENSOR_U64, 1, &count, error));
        if (!p->saving) {
            free(kept->rows[k]);
            kept->counts[k] = count;
            kept->rows[k] = malloc(array_size(count + 1, kept->width * sizeof **kept->rows));
            if (kept->rows[k] == NULL)
                return error_set(error, ERROR_MEMORY, "selector: no memory for %zu rows", kept->counts[k]);
        }
        snprintf(name, sizeof name, "selector.%zu.%s", k, kept->name);
        TRY(serializer_host(p, name, SAFETENSOR_F32, count * kept->width, kept->rows[k], error));
    }
    return OK;
}

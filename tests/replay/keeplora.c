/* fixtures/rivals/keeplora: the subspace that must not change, and the low-rank start of each task, task by task. */
#include <stdlib.h>

#include "core/alloc.h"
#include "harness/methods/keep_lora.h"
#include "tests/replay/replay.h"

#define PRODUCTS 1e-6
#define PROJECTORS 2e-4

struct keeplora {
    struct replay *r;
    struct subspace u;
    size_t rank;
};

static const struct safetensor *of_shape(const struct keeplora *k, const struct safetensor *tensor, size_t rows,
                                         size_t columns)
{
    if (tensor->rank != 2 || tensor->shape[0] != rows || tensor->shape[1] != columns)
        must(error_set(&error, ERROR_FORMAT, "%s: %s: expected [%zu, %zu]", k->r->folder, tensor->name, rows, columns));
    return tensor;
}

/* got [d, d] */
static void compare(const struct keeplora *k, const char *quantity, const double *got, double tolerance,
                    const struct safetensor *expected)
{
    replay_doubles(k->r, quantity, got, of_shape(k, expected, k->u.n, k->u.n), tolerance);
}

/* after: 0 for the weight, 1 + t for task t */
static void compare_subspace(const struct keeplora *k, size_t after, const struct safetensor *expected)
{
    size_t rank = recorded_at(json_object_get(k->r->config, "ranks"), after);
    const struct subspace *u = &k->u;
    double *projector = xcalloc(u->n * u->n, sizeof *projector);
    report_exact(&k->r->report, "ranks of U", (size_t)u->rank == rank, "%s: found %d, expected %zu", expected->name,
                 u->rank, rank);
    for (size_t b = 0; b < (size_t)u->rank; b++)
        for (size_t i = 0; i < u->n * u->n; i++)
            projector[i] += u->basis[b * u->n + i / u->n] * u->basis[b * u->n + i % u->n];
    compare(k, "projector of U", projector, PROJECTORS, expected);
    free(projector);
}

/* n floats as doubles, which the caller frees */
static double *widened(const float *values, size_t n)
{
    double *wide = xmalloc(n * sizeof *wide);
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    return wide;
}

/* gradient [d, d]: of one matrix */
static void replay_start(const struct keeplora *k, size_t task, char matrix, const float *gradient)
{
    size_t d = k->u.n;
    float *a = xmalloc(k->rank * d * sizeof *a), *b = xmalloc(k->rank * d * sizeof *b);
    double *product = xcalloc(d * d, sizeof *product), *projector = xcalloc(d * d, sizeof *projector),
           *wide = widened(gradient, d * d);
    must(keep_lora_start(&k->u, wide, d, d, k->rank, a, b, &error));
    for (size_t n = 0; n < k->rank; n++)
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++) {
                product[i * d + j] += (double)a[n * d + i] * (double)b[n * d + j];
                projector[i * d + j] += (double)a[n * d + i] * (double)a[n * d + j];
            }
    compare(k, "A B at the start", product, PRODUCTS, recorded(k->r->data, "task%zu.start.%c.product", task, matrix));
    compare(k, "A of the start", projector, PROJECTORS,
            recorded(k->r->data, "task%zu.start.%c.projector", task, matrix));
    free(a);
    free(b);
    free(product);
    free(projector);
    free(wide);
}

static void replay_starts(const struct keeplora *k, size_t task)
{
    size_t d = k->u.n;
    const float *in = recorded_floats(k->r->data, 3 * d * d, "task%zu.gradient.in_proj", task);
    for (size_t part = 0; part < 3; part++)
        replay_start(k, task, "qkv"[part], in + part * d * d);
    replay_start(k, task, 'o', recorded_floats(k->r->data, d * d, "task%zu.gradient.out_proj", task));
}

static void replay_extension(struct keeplora *k, size_t task)
{
    const struct safetensor *features = recorded(k->r->data, "task%zu.features", task);
    size_t d = k->u.n, n = features->shape[1];
    const float *f = of_shape(k, features, d, n)->data;
    double *products = xcalloc(d * d, sizeof *products);
    for (size_t i = 0; i < d * d; i++)
        for (size_t s = 0; s < n; s++)
            products[i] += (double)f[i / d * n + s] * (double)f[i % d * n + s];
    must(keep_lora_inputs(products, d, &error));
    must(subspace_extend(&k->u, products, d, d, recorded_number(k->r->config, "feature_share"), &error));
    free(products);
    compare_subspace(k, task + 1, recorded(k->r->data, "task%zu.projector", task));
}

void replay_keeplora(struct replay *r)
{
    const struct safetensor *weight = recorded(r->data, "weight");
    struct keeplora k = {.r = r, .u.n = weight->shape[0], .rank = recorded_size(r->config, "rank")};
    if (k.rank > k.u.n)
        must(error_set(&error, ERROR_FORMAT, "%s: rank %zu of %zu", r->folder, k.rank, k.u.n));
    double *wide = widened(weight->data, safetensor_elements(weight));
    must(subspace_extend(&k.u, wide, k.u.n, weight->shape[1], recorded_number(r->config, "weight_share"), &error));
    free(wide);
    compare_subspace(&k, 0, recorded(r->data, "projector.weight"));
    for (size_t t = 0; t < recorded_size(r->config, "tasks"); t++) {
        replay_starts(&k, t);
        replay_extension(&k, t);
    }
    subspace_free(&k.u);
}

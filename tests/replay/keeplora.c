/* fixtures/rivals/keeplora: the subspace that must not change, and the low-rank start of each task, task by task. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "harness/methods/keep_lora.h"
#include "tests/replay/replay_rivals.h"

#define PRODUCTS 1e-6
#define PROJECTORS 2e-4

struct recorded_keeplora {
    struct rival_fixture *f;
    struct subspace u;
    size_t rank;
    double feature_share;
};

/* got [d, d] in double precision */
static void compare(const struct recorded_keeplora *r, const char *quantity, const double *got, double tolerance,
                    const char *name)
{
    const struct safetensor *expected = rival_tensor(r->f, 2, "%s", name);
    if (safetensor_elements(expected) != r->u.n * r->u.n)
        must(error_set(&error, ERROR_FORMAT, "%s: %s: expected [%zu, %zu]", r->f->folder, name, r->u.n, r->u.n));
    for (size_t i = 0; i < safetensor_elements(expected); i++)
        report_value(r->f->report, quantity, got[i], (double)((const float *)expected->data)[i], tolerance);
}

/* after: 0 for the weight, 1 + t for task t */
static void compare_subspace(const struct recorded_keeplora *r, size_t after, const char *name)
{
    const json_t *recorded = json_array_get(json_object_get(r->f->config, "ranks"), after);
    const struct subspace *u = &r->u;
    double *projector = xcalloc(u->n * u->n, sizeof *projector);
    report_exact(r->f->report, "ranks of U", u->rank == (int32_t)json_integer_value(recorded),
                 "%s: found %d, expected %d", name, u->rank, (int)json_integer_value(recorded));
    for (size_t k = 0; k < (size_t)u->rank; k++)
        for (size_t i = 0; i < u->n * u->n; i++)
            projector[i] += u->basis[k * u->n + i / u->n] * u->basis[k * u->n + i % u->n];
    compare(r, "projector of U", projector, PROJECTORS, name);
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
static void replay_start(const struct recorded_keeplora *r, size_t task, char matrix, const float *gradient)
{
    size_t d = r->u.n;
    char name[64];
    float *a = xmalloc(r->rank * d * sizeof *a), *b = xmalloc(r->rank * d * sizeof *b);
    double *product = xcalloc(d * d, sizeof *product), *projector = xcalloc(d * d, sizeof *projector),
           *wide = widened(gradient, d * d);
    must(keep_lora_start(&r->u, wide, d, d, r->rank, a, b, &error));
    for (size_t k = 0; k < r->rank; k++)
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++) {
                product[i * d + j] += (double)a[k * d + i] * (double)b[k * d + j];
                projector[i * d + j] += (double)a[k * d + i] * (double)a[k * d + j];
            }
    snprintf(name, sizeof name, "task%zu.start.%c.product", task, matrix);
    compare(r, "A B at the start", product, PRODUCTS, name);
    snprintf(name, sizeof name, "task%zu.start.%c.projector", task, matrix);
    compare(r, "A of the start", projector, PROJECTORS, name);
    free(a);
    free(b);
    free(product);
    free(projector);
    free(wide);
}

static void replay_starts(const struct recorded_keeplora *r, size_t task)
{
    const struct safetensor *in, *out;
    size_t d = r->u.n;
    in = rival_tensor(r->f, 2, "task%zu.gradient.in_proj", task);
    out = rival_tensor(r->f, 2, "task%zu.gradient.out_proj", task);
    if (safetensor_elements(in) != 3 * d * d || safetensor_elements(out) != d * d || r->rank > d)
        must(error_set(&error, ERROR_FORMAT, "%s: task %zu: expected gradients of [%zu, %zu] and [%zu, %zu]",
                       r->f->folder, task, 3 * d, d, d, d));
    for (size_t part = 0; part < 3; part++)
        replay_start(r, task, "qkv"[part], (const float *)in -> data + part * d * d);
    replay_start(r, task, 'o', out->data);
}

static void replay_extension(struct recorded_keeplora *r, size_t task)
{
    const struct safetensor *recorded;
    char name[64];
    recorded = rival_tensor(r->f, 2, "task%zu.features", task);
    size_t d = r->u.n, n = recorded->shape[1];
    const float *f = recorded->data;
    if (recorded->shape[0] != d)
        must(error_set(&error, ERROR_FORMAT, "%s: task%zu.features: expected %zu rows, found %zu", r->f->folder, task,
                       d, recorded->shape[0]));
    double *products = xcalloc(d * d, sizeof *products);
    for (size_t i = 0; i < d * d; i++)
        for (size_t k = 0; k < n; k++)
            products[i] += (double)f[i / d * n + k] * (double)f[i % d * n + k];
    must(keep_lora_inputs(products, d, &error));
    must(subspace_extend(&r->u, products, d, d, r->feature_share, &error));
    free(products);
    snprintf(name, sizeof name, "task%zu.projector", task);
    compare_subspace(r, task + 1, name);
}

static void replay_tasks(struct recorded_keeplora *r)
{
    const struct safetensor *weight;
    size_t tasks;
    double weight_share;
    tasks = rival_size(r->f, "tasks");
    r->rank = rival_size(r->f, "rank");
    weight_share = rival_number(r->f, "weight_share");
    r->feature_share = rival_number(r->f, "feature_share");
    weight = rival_tensor(r->f, 2, "weight");
    r->u.n = weight->shape[0];
    double *wide = widened(weight->data, safetensor_elements(weight));
    must(subspace_extend(&r->u, wide, r->u.n, weight->shape[1], weight_share, &error));
    free(wide);
    compare_subspace(r, 0, "projector.weight");
    for (size_t t = 0; t < tasks; t++) {
        replay_starts(r, t);
        replay_extension(r, t);
    }
}

void replay_keeplora(struct rival_fixture *fixture)
{
    struct recorded_keeplora r = {.f = fixture};
    replay_tasks(&r);
    subspace_free(&r.u);
}

/* fixtures/rivals/keeplora: the subspace that must not change, and the low-rank start of each task, task by task. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/train/services/subspace.h"
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
static status compare(const struct recorded_keeplora *r, const char *quantity, const double *got, double tolerance,
                      const char *name, struct error *error)
{
    const struct safetensor *expected;
    TRY(rival_tensor(r->f, 2, &expected, error, "%s", name));
    for (size_t i = 0; i < safetensor_elements(expected); i++)
        report_value(r->f->report, quantity, got[i], (double)((const float *)expected->data)[i], tolerance);
    return OK;
}

/* after: 0 for the weight, 1 + t for task t */
static status compare_subspace(const struct recorded_keeplora *r, size_t after, const char *name, struct error *error)
{
    const json_t *rank = json_array_get(json_object_get(r->f->config, "ranks"), after);
    double *projector = xmalloc(r->u.width * r->u.width * sizeof *projector);
    report_exact(r->f->report, "ranks of U", r->u.rank == (size_t)json_integer_value(rank),
                 "%s: found %zu, expected %d", name, r->u.rank, (int)json_integer_value(rank));
    subspace_projector(&r->u, projector);
    status result = compare(r, "projector of U", projector, PROJECTORS, name, error);
    free(projector);
    return result;
}

/* gradient [d, d]: of one matrix */
static status replay_start(const struct recorded_keeplora *r, size_t task, char matrix, const float *gradient,
                           struct error *error)
{
    size_t d = r->u.width;
    char name[64];
    float *a = xmalloc(r->rank * d * sizeof *a), *b = xmalloc(d * r->rank * sizeof *b);
    double *product = xcalloc(d * d, sizeof *product), *projector = xcalloc(d * d, sizeof *projector);
    status result = subspace_low_rank(&r->u, gradient, d, r->rank, a, b, error);
    for (size_t k = 0; result == OK && k < r->rank; k++)
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++) {
                product[i * d + j] += (double)a[k * d + i] * (double)b[j * r->rank + k];
                projector[i * d + j] += (double)a[k * d + i] * (double)a[k * d + j];
            }
    snprintf(name, sizeof name, "task%zu.start.%c.product", task, matrix);
    NEXT(result, compare(r, "A B at the start", product, PRODUCTS, name, error));
    snprintf(name, sizeof name, "task%zu.start.%c.projector", task, matrix);
    NEXT(result, compare(r, "A Aᵀ", projector, PROJECTORS, name, error));
    free(a);
    free(b);
    free(product);
    free(projector);
    return result;
}

static status replay_starts(const struct recorded_keeplora *r, size_t task, struct error *error)
{
    const struct safetensor *in, *out;
    size_t d = r->u.width;
    TRY(rival_tensor(r->f, 2, &in, error, "task%zu.gradient.in_proj", task));
    TRY(rival_tensor(r->f, 2, &out, error, "task%zu.gradient.out_proj", task));
    if (safetensor_elements(in) != 3 * d * d || safetensor_elements(out) != d * d || r->rank > d)
        return error_set(error, ERROR_FORMAT, "%s: task %zu: expected gradients of [%zu, %zu] and [%zu, %zu]",
                         r->f->folder, task, 3 * d, d, d, d);
    for (size_t part = 0; part < 3; part++)
        TRY(replay_start(r, task, "qkv"[part], (const float *)in -> data + part * d * d, error));
    return replay_start(r, task, 'o', out->data, error);
}

static status replay_extension(struct recorded_keeplora *r, size_t task, struct error *error)
{
    const struct safetensor *recorded;
    char name[64];
    TRY(rival_tensor(r->f, 2, &recorded, error, "task%zu.features", task));
    size_t d = r->u.width, n = recorded->shape[1];
    if (recorded->shape[0] != d)
        return error_set(error, ERROR_FORMAT, "%s: task%zu.features: expected %zu rows, found %zu", r->f->folder, task,
                         d, recorded->shape[0]);
    float *features = xmalloc(n * d * sizeof *features);
    double *products = xmalloc(d * d * sizeof *products);
    for (size_t i = 0; i < n * d; i++)
        features[i] = ((const float *)recorded->data)[i % d * n + i / d];
    subspace_products(&r->u, features, n, products);
    status result = subspace_extend(&r->u, products, r->feature_share, error);
    free(features);
    free(products);
    TRY(result);
    snprintf(name, sizeof name, "task%zu.projector", task);
    return compare_subspace(r, task + 1, name, error);
}

static status replay_tasks(struct recorded_keeplora *r, struct error *error)
{
    const struct safetensor *weight;
    size_t tasks;
    double weight_share;
    TRY(rival_size(r->f, "tasks", &tasks, error));
    TRY(rival_size(r->f, "rank", &r->rank, error));
    TRY(rival_number(r->f, "weight_share", &weight_share, error));
    TRY(rival_number(r->f, "feature_share", &r->feature_share, error));
    TRY(rival_tensor(r->f, 2, &weight, error, "weight"));
    r->u.width = weight->shape[0];
    TRY(subspace_start(&r->u, weight->data, weight->shape[1], weight_share, error));
    TRY(compare_subspace(r, 0, "projector.weight", error));
    for (size_t t = 0; t < tasks; t++) {
        TRY(replay_starts(r, t, error));
        TRY(replay_extension(r, t, error));
    }
    return OK;
}

status replay_keeplora(struct rival_fixture *fixture, struct error *error)
{
    struct recorded_keeplora r = {.f = fixture};
    TRY(threads_create(&r.u.pool, 2, error));
    status result = replay_tasks(&r, error);
    subspace_free(&r.u);
    threads_destroy(r.u.pool);
    return result;
}

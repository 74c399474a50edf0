/* fixtures/rivals/keeplora: the subspace that must not change, and the low-rank start of each task, task by task. */
#include "harness/methods/low_rank/keep_lora.h"
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

/* got = Σ left rightᵀ [d, d] of so many rows [d] */
static void compare_sum(const struct keeplora *k, const char *quantity, const double *left, const double *right,
                        size_t rows, double tolerance, const struct safetensor *expected)
{
    size_t d = k->u.n;
    double *got = replay_take(k->r, d * d, sizeof *got);
    for (size_t n = 0; n < rows; n++)
        for (size_t i = 0; i < d * d; i++)
            got[i] += left[n * d + i / d] * right[n * d + i % d];
    replay_doubles(k->r, quantity, got, of_shape(k, expected, d, d), tolerance);
}

/* after: 0 for the weight, 1 + t for task t */
static void compare_subspace(const struct keeplora *k, size_t after, const struct safetensor *expected)
{
    size_t rank = recorded_at(json_object_get(k->r->config, "ranks"), after);
    const struct subspace *u = &k->u;
    report_exact(&k->r->report, "ranks of U", (size_t)u->rank == rank, "%s: found %d, expected %zu", expected->name,
                 u->rank, rank);
    compare_sum(k, "projector of U", u->basis, u->basis, (size_t)u->rank, PROJECTORS, expected);
}

/* gradient [d, d]: of one matrix */
static void replay_start(const struct keeplora *k, size_t task, char matrix, const float *gradient)
{
    struct replay *r = k->r;
    size_t d = k->u.n, n = k->rank * d;
    float *a = replay_take(r, n, sizeof *a), *b = replay_take(r, n, sizeof *b);
    must(keep_lora_start(&k->u, replay_widened(r, gradient, d * d), d, d, k->rank, a, b, &error));
    const double *left = replay_widened(r, a, n), *right = replay_widened(r, b, n);
    compare_sum(k, "A B at the start", left, right, k->rank, PRODUCTS,
                recorded(r->data, "task%zu.start.%c.product", task, matrix));
    compare_sum(k, "A of the start", left, left, k->rank, PROJECTORS,
                recorded(r->data, "task%zu.start.%c.projector", task, matrix));
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
    double *products = replay_take(k->r, d * d, sizeof *products);
    for (size_t i = 0; i < d * d; i++)
        for (size_t s = 0; s < n; s++)
            products[i] += (double)f[i / d * n + s] * (double)f[i % d * n + s];
    must(keep_lora_inputs(products, d, &error));
    must(subspace_extend(&k->u, products, d, d, recorded_number(k->r->config, "feature_share"), &error));
    compare_subspace(k, task + 1, recorded(k->r->data, "task%zu.projector", task));
}

void replay_keeplora(struct replay *r)
{
    const struct safetensor *weight = recorded(r->data, "weight");
    struct keeplora k = {.r = r, .u.n = weight->shape[0], .rank = recorded_size(r->config, "rank")};
    if (k.rank > k.u.n)
        must(error_set(&error, ERROR_FORMAT, "%s: rank %zu of %zu", r->folder, k.rank, k.u.n));
    must(subspace_extend(&k.u, replay_widened(r, weight->data, safetensor_elements(weight)), k.u.n, weight->shape[1],
                         recorded_number(r->config, "weight_share"), &error));
    compare_subspace(&k, 0, recorded(r->data, "projector.weight"));
    for (size_t t = 0; t < recorded_size(r->config, "tasks"); t++) {
        replay_starts(&k, t);
        replay_extension(&k, t);
    }
    subspace_free(&k.u);
}

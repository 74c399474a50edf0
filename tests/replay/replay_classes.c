/* classes.safetensors, as check_classes.py writes it: ran_pac and simple_cil task by task, training of lada's vectors, clusters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/train/services/label_memory.h"
#include "harness/train/services/regression.h"
#include "tests/replay/replay.h"

enum { MOST = 64 }; /* clusters */

/* Relative to the largest magnitude of the tensor. */
static void compare(struct replay *r, const char *quantity, const double *got, const struct safetensor *expected,
                    const char *tolerance)
{
    replay_doubles(r, quantity, got, expected, recorded_tolerance(r, tolerance) * recorded_largest(expected));
}

static void replay_task(struct replay *r, struct regression *g, size_t task)
{
    const struct safetensor *x = recorded(r->data, "train.%zu", task), *test = recorded(r->data, "test");
    const int32_t *labels = recorded_integers(r->data, "labels.%zu", task);
    size_t first = g->classes, more = recorded_at(json_object_get(r->config, "classes"), task);
    if (!g->validated)
        regression_add(g, x->data, labels, x->shape[0], first + more);
    must(g->validated ? regression_learn_validated(g, x->data, labels, x->shape[0], first, first + more, &error)
                      : regression_solve(g, &error));
    double *scores = replay_take(r, test->shape[0] * g->classes, sizeof *scores);
    regression_scores(g, test->data, test->shape[0], scores);
    if (g->validated) {
        double ridge = json_number_value(json_array_get(json_object_get(r->config, "ridges"), task));
        report_exact(&r->report, "ridge", fabs(g->ridge / ridge - 1) < 1e-9, "task %zu: %g, expected %g", task,
                     g->ridge, ridge);
        compare(r, "ran_pac weights", g->coefficients, recorded(r->data, "weights.%zu", task), "weights");
        compare(r, "ran_pac scores", scores, recorded(r->data, "scores.%zu", task), "scores");
    } else
        compare(r, "simple_cil scores", scores, recorded(r->data, "cosines.%zu", task), "cosines");
}

static void replay_form(struct replay *r, enum regression_form form, struct threads *pool)
{
    const struct safetensor *random = recorded(r->data, "random");
    size_t width = random->shape[1], hidden = random->shape[0];
    struct regression g = {.form = form, .width = width, .basis = width, .pool = pool};
    if (form == REGRESSION_PRIMAL) {
        g.validated = true;
        regression_draw(&g, hidden, 0);
        for (size_t i = 0; i < hidden * width; i++)
            g.bases[i] = recorded_value(random, i);
    }
    for (size_t t = 0; t < json_array_size(json_object_get(r->config, "classes")); t++)
        replay_task(r, &g, t);
    regression_free(&g);
}

/* --- lada --- */

static void replay_training(struct replay *r, struct threads *pool)
{
    const struct safetensor *x = recorded(r->data, "lada.x"), *texts = recorded(r->data, "lada.texts"),
                            *start = recorded(r->data, "lada.start"), *gradient = recorded(r->data, "lada.gradient"),
                            *losses = recorded(r->data, "lada.losses");
    const double *weights = recorded(r->data, "lada.weights")->data;
    const int32_t *labels = recorded_integers(r->data, "lada.labels");
    size_t steps = x->shape[0], n = x->shape[1], width = x->shape[2], classes = texts->shape[0],
           count = start->shape[0], first = count - gradient->shape[0];
    struct label_memory m = {.width = width,
                             .classes = classes,
                             .weight = recorded_number(r->config, "memory_weight"),
                             .sharpness = recorded_number(r->config, "sharpness"),
                             .pool = pool,
                             .vectors = {.count = count,
                                         .values = xmalloc(count * width * sizeof(double)),
                                         .owners = xmalloc(count * sizeof(int32_t))}};
    struct label_batch batch = {.n = n,
                                .x = replay_take(r, n * width, sizeof(double)),
                                .labels = replay_take(r, n, sizeof(int32_t)),
                                .weights = replay_take(r, n, sizeof(double)),
                                .scores = replay_take(r, n * classes, sizeof(double)),
                                .work = replay_take(r, n * (2 * count + width), sizeof(double))};
    struct one_cycle cycle = {
        .steps = steps, .peak = recorded_number(r->config, "peak"), .decay = recorded_number(r->config, "decay")};
    double *slope = replay_take(r, (count - first) * width, sizeof *slope),
           *moments = replay_take(r, 2 * (count - first) * width, sizeof *moments);
    memcpy(m.vectors.values, start->data, count * width * sizeof(double));
    memcpy(m.vectors.owners, recorded_integers(r->data, "lada.owners"), count * sizeof(int32_t));
    for (size_t step = 0; step < steps; step++) {
        memcpy(batch.x, (const double *)x->data + step * n * width, n * width * sizeof(double));
        memcpy(batch.labels, labels + step * n, n * sizeof(int32_t));
        memcpy(batch.weights, weights + step * n, n * sizeof(double));
        for (size_t i = 0; i < n; i++)
            linear_unit(batch.x + i * width, width);
        linear_multiply(
            pool,
            &(struct linear_product){
                .rows = n, .columns = classes, .inner = width, .a = batch.x, .b = texts->data, .out = batch.scores});
        report_value(&r->report, "lada loss", label_memory_loss(&m, &batch, first, slope), recorded_value(losses, step),
                     recorded_tolerance(r, "lada"));
        if (step == 0)
            compare(r, "lada gradient", slope, gradient, "lada");
        label_memory_step(&m, first, &cycle, step, slope, moments);
    }
    compare(r, "lada vectors", m.vectors.values, recorded(r->data, "lada.end"), "lada");
    label_memory_free(&m);
}

/* --- clusters, in the order of their first coordinates --- */

static size_t place_of(const double *means, size_t count, size_t width, size_t cluster)
{
    size_t place = 0;
    for (size_t c = 0; c < count; c++)
        place += means[c * width] < means[cluster * width];
    return place;
}

static void compare_sorted(struct replay *r, const char *quantity, const double *means, size_t width,
                           const struct safetensor *expected)
{
    size_t count = expected->shape[0];
    double *sorted = replay_take(r, count * width, sizeof *sorted);
    for (size_t c = 0; c < count; c++)
        memcpy(sorted + place_of(means, count, width, c) * width, means + c * width, width * sizeof *means);
    compare(r, quantity, sorted, expected, "clusters");
}

static void replay_clusters(struct replay *r)
{
    const struct safetensor *rows = recorded(r->data, "clusters.rows"), *units = recorded(r->data, "clusters.units"),
                            *centres = recorded(r->data, "clusters.centres");
    size_t n = rows->shape[0], width = rows->shape[1], count = centres->shape[0];
    double *means = replay_take(r, count * width, sizeof *means), variances[MOST], weights[MOST];
    struct gaussian gaussians[MOST];
    clusters_means(units->data, n, width, count, rng_make(1, RNG_TEST, 0, 0), means);
    compare_sorted(r, "k-means", means, width, centres);
    clusters_gaussians(rows->data, n, width, count, rng_make(1, RNG_TEST, 0, 0), gaussians, means);
    compare_sorted(r, "Gaussians' means", means, width, recorded(r->data, "clusters.means"));
    for (size_t c = 0; c < count; c++) {
        size_t place = place_of(means, count, width, c);
        variances[place] = gaussians[c].variance;
        weights[place] = gaussians[c].weight;
    }
    compare(r, "Gaussians' variances", variances, recorded(r->data, "clusters.variances"), "clusters");
    compare(r, "Gaussians' weights", weights, recorded(r->data, "clusters.weights"), "clusters");
}

void replay_classes(struct replay *r)
{
    struct threads *pool;
    must(threads_create(&pool, 2, &error));
    replay_form(r, REGRESSION_PRIMAL, pool);
    replay_form(r, REGRESSION_MEANS, pool);
    replay_training(r, pool);
    replay_clusters(r);
    threads_destroy(pool);
}

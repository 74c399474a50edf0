/* classes.safetensors, as check_classes.py writes it: ran_pac and simple_cil task by task, training of lada's vectors, clusters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/train/services/label_memory.h"
#include "harness/train/services/regression.h"
#include "models/files/safetensors.h"
#include "tests/replay/replay_methods.h"

enum { MOST = 64 }; /* clusters */

struct recorded_classes {
    struct method_fixture *f;
    struct safetensors *file;
    struct threads *pool;
};

/* Relative to the largest magnitude of the tensor. */
static void compare(struct recorded_classes *r, const char *quantity, const double *got,
                    const struct safetensor *expected, const char *tolerance)
{
    size_t n = safetensor_elements(expected);
    double largest = 0;
    const double *values = expected->data;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(values[i]));
    for (size_t i = 0; i < n; i++)
        report_value(r->f->report, quantity, got[i] / largest, values[i] / largest,
                     recorded_number(r->f->tolerances, tolerance));
}

static void replay_task(struct recorded_classes *r, struct regression *g, size_t task)
{
    const struct safetensor *x = recorded(r->file, "train.%zu", task), *labels = recorded(r->file, "labels.%zu", task),
                            *test = recorded(r->file, "test");
    size_t first = g->classes,
           more = (size_t)json_integer_value(json_array_get(json_object_get(r->f->config, "classes"), task));
    must(regression_add(g, x->data, labels->data, x->shape[0], first + more, &error));
    must(g->validated ? regression_solve_validated(g, x->data, labels->data, x->shape[0], first, &error)
                      : regression_solve(g, &error));
    double *scores = xmalloc(test->shape[0] * g->classes * sizeof *scores);
    must(regression_scores(g, test->data, test->shape[0], scores, &error));
    if (g->validated) {
        double ridge = json_number_value(json_array_get(json_object_get(r->f->config, "ridges"), task));
        report_exact(r->f->report, "ridge", fabs(g->ridge / ridge - 1) < 1e-9, "task %zu: %g, expected %g", task,
                     g->ridge, ridge);
        compare(r, "ran_pac weights", g->coefficients, recorded(r->file, "weights.%zu", task), "weights");
        compare(r, "ran_pac scores", scores, recorded(r->file, "scores.%zu", task), "scores");
    } else
        compare(r, "simple_cil scores", scores, recorded(r->file, "cosines.%zu", task), "cosines");
    free(scores);
}

static void replay_form(struct recorded_classes *r, enum regression_form form)
{
    const struct safetensor *random = recorded(r->file, "random");
    size_t width = random->shape[1], hidden = random->shape[0];
    struct regression g = {.form = form, .width = width, .basis = width, .pool = r->pool};
    if (form == REGRESSION_PRIMAL) {
        g.validated = true;
        must(regression_draw(&g, hidden, 0, &error));
        for (size_t i = 0; i < hidden * width; i++)
            g.bases[i] = (double)((const float *)random->data)[i];
    }
    for (size_t t = 0; t < json_array_size(json_object_get(r->f->config, "classes")); t++)
        replay_task(r, &g, t);
    regression_free(&g);
}

/* --- lada --- */

static void replay_training(struct recorded_classes *r)
{
    const struct safetensor *x = recorded(r->file, "lada.x"), *texts = recorded(r->file, "lada.texts"),
                            *start = recorded(r->file, "lada.start"), *gradient = recorded(r->file, "lada.gradient");
    const double *losses = recorded(r->file, "lada.losses")->data, *weights = recorded(r->file, "lada.weights")->data;
    const int32_t *labels = recorded(r->file, "lada.labels")->data;
    size_t steps = x->shape[0], n = x->shape[1], width = x->shape[2], classes = texts->shape[0],
           count = start->shape[0], first = count - gradient->shape[0];
    struct label_memory m = {.width = width,
                             .classes = classes,
                             .weight = recorded_number(r->f->config, "memory_weight"),
                             .sharpness = recorded_number(r->f->config, "sharpness"),
                             .pool = r->pool,
                             .vectors = {.count = count,
                                         .values = xmalloc(count * width * sizeof(double)),
                                         .owners = xmalloc(count * sizeof(int32_t))}};
    struct label_batch batch = {.n = n,
                                .x = xmalloc(n * width * sizeof(double)),
                                .labels = xmalloc(n * sizeof(int32_t)),
                                .weights = xmalloc(n * sizeof(double)),
                                .scores = xmalloc(n * classes * sizeof(double)),
                                .work = xmalloc(n * (2 * count + width) * sizeof(double))};
    double *slope = xmalloc((count - first) * width * sizeof *slope),
           *moments = xcalloc(2 * (count - first) * width, sizeof *moments);
    memcpy(m.vectors.values, start->data, count * width * sizeof(double));
    memcpy(m.vectors.owners, recorded(r->file, "lada.owners")->data, count * sizeof(int32_t));
    for (size_t step = 0; step < steps; step++) {
        memcpy(batch.x, (const double *)x->data + step * n * width, n * width * sizeof(double));
        memcpy(batch.labels, labels + step * n, n * sizeof(int32_t));
        memcpy(batch.weights, weights + step * n, n * sizeof(double));
        for (size_t i = 0; i < n; i++)
            linear_unit(batch.x + i * width, width);
        linear_multiply(
            r->pool,
            &(struct linear_product){
                .rows = n, .columns = classes, .inner = width, .a = batch.x, .b = texts->data, .out = batch.scores});
        report_value(r->f->report, "lada loss", label_memory_loss(&m, &batch, first, slope), losses[step],
                     recorded_number(r->f->tolerances, "lada"));
        if (step == 0)
            compare(r, "lada gradient", slope, gradient, "lada");
        label_memory_step(&m, first,
                          &(struct one_cycle){.steps = steps,
                                              .peak = recorded_number(r->f->config, "peak"),
                                              .decay = recorded_number(r->f->config, "decay")},
                          step, slope, moments);
    }
    compare(r, "lada vectors", m.vectors.values, recorded(r->file, "lada.end"), "lada");
    label_memory_free(&m);
    free(batch.x);
    free(batch.labels);
    free(batch.weights);
    free(batch.scores);
    free(batch.work);
    free(slope);
    free(moments);
}

/* --- clusters, in the order of their first coordinates --- */

static size_t place_of(const double *means, size_t count, size_t width, size_t cluster)
{
    size_t place = 0;
    for (size_t c = 0; c < count; c++)
        place += means[c * width] < means[cluster * width];
    return place;
}

static void replay_clusters(struct recorded_classes *r)
{
    const struct safetensor *rows = recorded(r->file, "clusters.rows"), *units = recorded(r->file, "clusters.units"),
                            *expected = recorded(r->file, "clusters.centres");
    size_t n = rows->shape[0], width = rows->shape[1], count = expected->shape[0];
    double *means = xmalloc(count * width * sizeof *means), *sorted = xmalloc(count * width * sizeof *sorted),
           variances[MOST], weights[MOST];
    struct gaussian gaussians[MOST];
    clusters_means(units->data, n, width, count, rng_make(1, RNG_TEST, 0, 0), means);
    for (size_t c = 0; c < count; c++)
        memcpy(sorted + place_of(means, count, width, c) * width, means + c * width, width * sizeof *means);
    compare(r, "k-means", sorted, expected, "clusters");
    clusters_gaussians(rows->data, n, width, count, rng_make(1, RNG_TEST, 0, 0), gaussians, means);
    for (size_t c = 0; c < count; c++) {
        size_t place = place_of(means, count, width, c);
        memcpy(sorted + place * width, means + c * width, width * sizeof *means);
        variances[place] = gaussians[c].variance;
        weights[place] = gaussians[c].weight;
    }
    compare(r, "Gaussians' means", sorted, recorded(r->file, "clusters.means"), "clusters");
    compare(r, "Gaussians' variances", variances, recorded(r->file, "clusters.variances"), "clusters");
    compare(r, "Gaussians' weights", weights, recorded(r->file, "clusters.weights"), "clusters");
    free(means);
    free(sorted);
}

void replay_classes(struct method_fixture *fixture)
{
    struct recorded_classes r = {.f = fixture, .file = recorded_open(fixture->folder, "classes.safetensors")};
    must(threads_create(&r.pool, 2, &error));
    replay_form(&r, REGRESSION_PRIMAL);
    replay_form(&r, REGRESSION_MEANS);
    replay_training(&r);
    replay_clusters(&r);
    threads_destroy(r.pool);
    safetensors_close(r.file);
}

/* fixtures/methods/rail: both forms of RAIL, task by task on recorded features, with the code that its methods run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/heads/class_features.h"
#include "harness/train/services/regression.h"
#include "models/files/safetensors.h"
#include "tests/replay/replay_methods.h"

static const char *const forms[] = {[REGRESSION_PRIMAL] = "primal", [REGRESSION_DUAL] = "dual"};

struct recorded_rail {
    struct method_fixture *f;
    struct safetensors *data, *expect;
    struct threads *pool;
    size_t dims, hidden, test, all; /* all: classes */
    float *logits;                  /* [test, all] of zero-shot CLIP */
};

/* got in double precision; relative: to the largest magnitude of the tensor. */
static void compare(struct recorded_rail *r, const char *quantity, const double *got, const struct safetensor *expected,
                    const char *tolerance, bool relative)
{
    size_t n = safetensor_elements(expected);
    double largest = relative ? 0 : 1;
    const float *values = expected->data;
    for (size_t i = 0; relative && i < n; i++)
        largest = fmax(largest, fabs((double)values[i]));
    for (size_t i = 0; i < n; i++)
        report_value(r->f->report, quantity, got[i] / largest, (double)values[i] / largest,
                     recorded_number(r->f->tolerances, tolerance));
}

/* expected [M, classes], got [classes, M] */
static void compare_weights(struct recorded_rail *r, const struct regression *g, const char *form,
                            const struct safetensor *expected)
{
    char quantity[32], tolerance[32];
    double *turned = xmalloc(g->classes * g->basis * sizeof *turned);
    for (size_t c = 0; c < g->classes; c++)
        for (size_t m = 0; m < g->basis; m++)
            turned[m * g->classes + c] = g->coefficients[c * g->basis + m];
    snprintf(quantity, sizeof quantity, "%s weights", form);
    snprintf(tolerance, sizeof tolerance, "%s_weights_rel", form);
    compare(r, quantity, turned, expected, tolerance, true);
    free(turned);
}

/* R = (ΦᵀΦ + ridge I)⁻¹, which the method does not need: its columns are solutions for the unit vectors. */
static void compare_memory(struct recorded_rail *r, const struct regression *g, const struct safetensor *expected)
{
    struct symmetric *matrix;
    double *inverse = xcalloc(g->basis * g->basis, sizeof *inverse);
    must(symmetric_create(&matrix, g->basis, &error));
    memcpy(matrix->values, g->gram->values, symmetric_values(g->basis) * sizeof *matrix->values);
    symmetric_shift(matrix, g->ridge);
    for (size_t i = 0; i < g->basis; i++)
        inverse[i * g->basis + i] = 1;
    must(symmetric_factor(matrix, r->pool, &error));
    symmetric_solve(matrix, r->pool, inverse, g->basis);
    compare(r, "primal memory", inverse, expected, "memory", false);
    symmetric_destroy(matrix);
    free(inverse);
}

static size_t best_of(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t c = 1; c < n; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

static void compare_fused(struct recorded_rail *r, const struct regression *g, const char *form, size_t task)
{
    const struct safetensor *fused, *labels, *adapted, *test = recorded(r->data, "test");
    char quantity[32], tolerance[32];
    fused = recorded(r->expect, "fused.%s.%zu", form, task);
    labels = recorded(r->expect, "labels.%s.%zu", form, task);
    adapted = recorded(r->expect, "adapted.%zu", task);
    float *scores = xmalloc(r->test * r->all * sizeof *scores);
    bool *is = xmalloc(r->test);
    memcpy(scores, r->logits, r->test * r->all * sizeof *scores);
    struct regression fused_by = *g;
    fused_by.fusion = recorded_number(r->f->config, "fusion");
    must(regression_fuse(&fused_by, 0, test->data, r->test, r->all, scores, is, &error));
    snprintf(quantity, sizeof quantity, "%s fused", form);
    snprintf(tolerance, sizeof tolerance, "scores_%s", form);
    report_values(r->f->report, quantity, scores, fused->data, r->test * r->all,
                  recorded_number(r->f->tolerances, tolerance));
    for (size_t i = 0; i < r->test; i++) {
        report_exact(r->f->report, "labels",
                     best_of(scores + i * r->all, r->all) == (size_t)((const int32_t *)labels->data)[i],
                     "%s, task %zu, image %zu", form, task, i);
        report_exact(r->f->report, "adapted", is[i] == (((const int32_t *)adapted->data)[i] != 0),
                     "%s, task %zu, image %zu", form, task, i);
    }
    free(scores);
    free(is);
}

static void compare_scores(struct recorded_rail *r, const struct regression *g, const char *form, size_t task)
{
    const struct safetensor *expected, *test = recorded(r->data, "test");
    char quantity[32], tolerance[32];
    expected = recorded(r->expect, "scores.%s.%zu", form, task);
    double *scores = xmalloc(r->test * g->classes * sizeof *scores);
    must(regression_scores(g, test->data, r->test, scores, &error));
    snprintf(quantity, sizeof quantity, "%s scores", form);
    snprintf(tolerance, sizeof tolerance, "scores_%s", form);
    compare(r, quantity, scores, expected, tolerance, false);
    free(scores);
}

static void add_task(struct recorded_rail *r, struct regression *g, size_t task)
{
    const struct safetensor *features, *labels;
    size_t first = g->classes;
    features = recorded(r->data, "train.%zu", task);
    labels = recorded(r->data, "train_labels.%zu", task);
    size_t n = features->shape[0];
    int32_t *shared = xmalloc(n * sizeof *shared);
    for (size_t i = 0; i < n; i++)
        shared[i] = (int32_t)first + ((const int32_t *)labels->data)[i];
    size_t more = (size_t)json_integer_value(json_array_get(json_object_get(r->f->config, "classes"), task));
    must(regression_add(g, features->data, shared, n, first + more, &error));
    free(shared);
    must(regression_solve(g, &error));
}

static void replay_task(struct recorded_rail *r, struct regression *g, size_t task)
{
    const char *form = forms[g->form];
    const struct safetensor *weights, *memory;
    add_task(r, g, task);
    weights = recorded(r->expect, g->form == REGRESSION_PRIMAL ? "primal.W.%zu" : "dual.alpha.%zu", task);
    compare_weights(r, g, form, weights);
    if (g->form == REGRESSION_PRIMAL) {
        memory = recorded(r->expect, "primal.R.%zu", task);
        compare_memory(r, g, memory);
    }
    compare_scores(r, g, form, task);
    compare_fused(r, g, form, task);
}

static void replay_form(struct recorded_rail *r, enum regression_form form)
{
    const json_t *config = r->f->config;
    bool primal = form == REGRESSION_PRIMAL;
    struct regression g = {.form = form,
                           .width = r->dims,
                           .ridge = recorded_number(config, primal ? "ridge" : "dual_ridge"),
                           .gamma = recorded_number(config, "gamma"),
                           .pool = r->pool};
    if (primal) {
        const float *drawn = recorded(r->data, "random")->data;
        must(regression_draw(&g, r->hidden, 0, &error));
        for (size_t i = 0; i < r->hidden * g.width; i++)
            g.bases[i] = (double)drawn[i];
    }
    for (size_t t = 0; t < json_array_size(json_object_get(config, "classes")); t++)
        replay_task(r, &g, t);
    regression_free(&g);
}

/* Probabilities of zero-shot CLIP: what fusion leaves where nothing was learned. */
static void replay_zero_shot(struct recorded_rail *r)
{
    const struct safetensor *expected = recorded(r->expect, "zero_shot"), *test = recorded(r->data, "test");
    const struct regression nothing = {.width = r->dims, .pool = r->pool, .fusion = 0.8};
    float *p = xmalloc(r->test * r->all * sizeof *p);
    memcpy(p, r->logits, r->test * r->all * sizeof *p);
    must(regression_fuse(&nothing, 0, test->data, r->test, r->all, p, NULL, &error));
    report_values(r->f->report, "zero_shot", p, expected->data, r->test * r->all,
                  recorded_number(r->f->tolerances, "zero_shot"));
    free(p);
}

/* eval_logit_scale · x · textᵀ, as evaluation computes it. */
static void make_logits(struct recorded_rail *r)
{
    const struct safetensor *test = recorded(r->data, "test"), *text = recorded(r->data, "text");
    const float *images = test->data, *texts = text->data;
    r->logits = xmalloc(r->test * r->all * sizeof *r->logits);
    report_exact(r->f->report, "evaluation scale",
                 recorded_number(r->f->config, "eval_logit_scale") == (double)EVALUATION_SCALE, "%f",
                 (double)EVALUATION_SCALE);
    for (size_t i = 0; i < r->test; i++) {
        double square = 0;
        for (size_t k = 0; k < r->dims; k++)
            square += (double)images[i * r->dims + k] * (double)images[i * r->dims + k];
        for (size_t c = 0; c < r->all; c++) {
            double sum = 0;
            for (size_t k = 0; k < r->dims; k++)
                sum += (double)images[i * r->dims + k] * (double)texts[c * r->dims + k];
            r->logits[i * r->all + c] = (float)((double)EVALUATION_SCALE * sum / sqrt(square));
        }
    }
}

static void open_files(struct recorded_rail *r)
{
    r->data = recorded_open(r->f->folder, "data.safetensors");
    r->expect = recorded_open(r->f->folder, "expect.safetensors");
    const struct safetensor *test = recorded(r->data, "test"), *text = recorded(r->data, "text"),
                            *random = recorded(r->data, "random");
    r->test = test->shape[0];
    r->dims = test->shape[1];
    r->all = text->shape[0];
    r->hidden = random->shape[0];
}

void replay_rail(struct method_fixture *fixture)
{
    struct recorded_rail r = {.f = fixture};
    open_files(&r);
    must(threads_create(&r.pool, 2, &error));
    make_logits(&r);
    replay_zero_shot(&r);
    replay_form(&r, REGRESSION_PRIMAL);
    replay_form(&r, REGRESSION_DUAL);
    threads_destroy(r.pool);
    free(r.logits);
    safetensors_close(r.data);
    safetensors_close(r.expect);
}

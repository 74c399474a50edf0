/* fixtures/methods/rail: both forms of RAIL, task by task on recorded features, with the code that its methods run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static status find(const struct safetensors *file, const char *part, const char *form, size_t task,
                   const struct safetensor **tensor, struct error *error)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s.%zu", part, form != NULL ? "." : "", form != NULL ? form : "", task);
    *tensor = safetensors_find(file, name);
    return *tensor != NULL ? OK
                           : error_set(error, ERROR_FORMAT, "%s: expected a tensor %s", safetensors_path(file), name);
}

/* got in double precision; relative: to the largest magnitude of the tensor. */
static void compare(struct recorded_rail *r, const char *quantity, const double *got, const struct safetensor *expected,
                    const char *tolerance, bool relative)
{
    size_t n = 1;
    double largest = relative ? 0 : 1;
    const float *values = expected->data;
    for (int i = 0; i < (int)expected->rank; i++)
        n *= expected->shape[i];
    for (size_t i = 0; relative && i < n; i++)
        largest = fmax(largest, fabs((double)values[i]));
    for (size_t i = 0; i < n; i++)
        report_value(r->f->report, quantity, got[i] / largest, (double)values[i] / largest,
                     number(r->f->tolerances, tolerance));
}

/* expected [M, classes], got [classes, M] */
static status compare_weights(struct recorded_rail *r, const struct regression *g, const char *form,
                              const struct safetensor *expected, struct error *error)
{
    char quantity[32], tolerance[32];
    double *turned = malloc(g->classes * g->basis * sizeof *turned);
    if (turned == NULL)
        return error_set(error, ERROR_MEMORY, "no memory");
    for (size_t c = 0; c < g->classes; c++)
        for (size_t m = 0; m < g->basis; m++)
            turned[m * g->classes + c] = g->coefficients[c * g->basis + m];
    snprintf(quantity, sizeof quantity, "%s weights", form);
    snprintf(tolerance, sizeof tolerance, "%s_weights_rel", form);
    compare(r, quantity, turned, expected, tolerance, true);
    free(turned);
    return OK;
}

/* R = (ΦᵀΦ + ridge I)⁻¹, which the method does not need: its columns are solutions for the unit vectors. */
static status compare_memory(struct recorded_rail *r, const struct regression *g, const struct safetensor *expected,
                             struct error *error)
{
    struct symmetric *matrix;
    double *inverse = calloc(g->basis * g->basis, sizeof *inverse);
    if (inverse == NULL)
        return error_set(error, ERROR_MEMORY, "no memory");
    TRY(symmetric_create(&matrix, g->basis, error));
    memcpy(matrix->values, g->gram->values, symmetric_values(g->basis) * sizeof *matrix->values);
    symmetric_shift(matrix, g->ridge);
    for (size_t i = 0; i < g->basis; i++)
        inverse[i * g->basis + i] = 1;
    status result = symmetric_factor(matrix, r->pool, error);
    if (result == OK) {
        symmetric_solve(matrix, r->pool, inverse, g->basis);
        compare(r, "primal memory", inverse, expected, "memory", false);
    }
    symmetric_destroy(matrix);
    free(inverse);
    return result;
}

static size_t best_of(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t c = 1; c < n; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

static status compare_fused(struct recorded_rail *r, const struct regression *g, const char *form, size_t task,
                            struct error *error)
{
    const struct safetensor *fused, *labels, *adapted, *test = safetensors_find(r->data, "test");
    char quantity[32], tolerance[32];
    TRY(find(r->expect, "fused", form, task, &fused, error));
    TRY(find(r->expect, "labels", form, task, &labels, error));
    TRY(find(r->expect, "adapted", NULL, task, &adapted, error));
    float *scores = malloc(r->test * r->all * sizeof *scores);
    bool *is = malloc(r->test);
    if (scores == NULL || is == NULL)
        return error_set(error, ERROR_MEMORY, "no memory");
    memcpy(scores, r->logits, r->test * r->all * sizeof *scores);
    struct regression fused_by = *g;
    fused_by.fusion = number(r->f->config, "fusion");
    status result = regression_fuse(&fused_by, 0, test->data, r->test, r->all, scores, is, error);
    snprintf(quantity, sizeof quantity, "%s fused", form);
    snprintf(tolerance, sizeof tolerance, "scores_%s", form);
    if (result == OK)
        report_values(r->f->report, quantity, scores, fused->data, r->test * r->all,
                      number(r->f->tolerances, tolerance));
    for (size_t i = 0; result == OK && i < r->test; i++) {
        report_exact(r->f->report, "labels",
                     best_of(scores + i * r->all, r->all) == (size_t)((const int32_t *)labels->data)[i],
                     "%s, task %zu, image %zu", form, task, i);
        report_exact(r->f->report, "adapted", is[i] == (((const int32_t *)adapted->data)[i] != 0),
                     "%s, task %zu, image %zu", form, task, i);
    }
    free(scores);
    free(is);
    return result;
}

static status compare_scores(struct recorded_rail *r, const struct regression *g, const char *form, size_t task,
                             struct error *error)
{
    const struct safetensor *expected, *test = safetensors_find(r->data, "test");
    char quantity[32], tolerance[32];
    TRY(find(r->expect, "scores", form, task, &expected, error));
    double *scores = malloc(r->test * g->classes * sizeof *scores);
    if (scores == NULL)
        return error_set(error, ERROR_MEMORY, "no memory");
    status result = regression_scores(g, test->data, r->test, scores, error);
    snprintf(quantity, sizeof quantity, "%s scores", form);
    snprintf(tolerance, sizeof tolerance, "scores_%s", form);
    if (result == OK)
        compare(r, quantity, scores, expected, tolerance, false);
    free(scores);
    return result;
}

static status add_task(struct recorded_rail *r, struct regression *g, size_t task, struct error *error)
{
    const struct safetensor *features, *labels;
    size_t first = g->classes;
    TRY(find(r->data, "train", NULL, task, &features, error));
    TRY(find(r->data, "train_labels", NULL, task, &labels, error));
    size_t n = features->shape[0];
    int32_t *shared = malloc(n * sizeof *shared);
    if (shared == NULL)
        return error_set(error, ERROR_MEMORY, "no memory");
    for (size_t i = 0; i < n; i++)
        shared[i] = (int32_t)first + ((const int32_t *)labels->data)[i];
    size_t more = (size_t)json_integer_value(json_array_get(json_object_get(r->f->config, "classes"), task));
    status result = regression_add(g, features->data, shared, n, first + more, error);
    free(shared);
    return result == OK ? regression_solve(g, error) : result;
}

static status replay_task(struct recorded_rail *r, struct regression *g, size_t task, struct error *error)
{
    const char *form = forms[g->form];
    const struct safetensor *weights, *memory;
    TRY(add_task(r, g, task, error));
    TRY(find(r->expect, g->form == REGRESSION_PRIMAL ? "primal.W" : "dual.alpha", NULL, task, &weights, error));
    TRY(compare_weights(r, g, form, weights, error));
    if (g->form == REGRESSION_PRIMAL) {
        TRY(find(r->expect, "primal.R", NULL, task, &memory, error));
        TRY(compare_memory(r, g, memory, error));
    }
    TRY(compare_scores(r, g, form, task, error));
    return compare_fused(r, g, form, task, error);
}

static status replay_form(struct recorded_rail *r, enum regression_form form, struct error *error)
{
    const json_t *config = r->f->config;
    bool primal = form == REGRESSION_PRIMAL;
    struct regression g = {.form = form,
                           .width = r->dims,
                           .ridge = number(config, primal ? "ridge" : "dual_ridge"),
                           .gamma = number(config, "gamma"),
                           .pool = r->pool};
    status result = OK;
    if (primal) {
        const float *recorded = safetensors_find(r->data, "random")->data;
        result = regression_draw(&g, r->hidden, 0, error);
        for (size_t i = 0; result == OK && i < r->hidden * g.width; i++)
            g.bases[i] = (double)recorded[i];
    }
    for (size_t t = 0; result == OK && t < json_array_size(json_object_get(config, "classes")); t++)
        result = replay_task(r, &g, t, error);
    regression_free(&g);
    return result;
}

/* Probabilities of zero-shot CLIP: what fusion leaves where nothing was learned. */
static status replay_zero_shot(struct recorded_rail *r, struct error *error)
{
    const struct safetensor *expected = safetensors_find(r->expect, "zero_shot"),
                            *test = safetensors_find(r->data, "test");
    const struct regression nothing = {.width = r->dims, .pool = r->pool, .fusion = 0.8};
    float *p = malloc(r->test * r->all * sizeof *p);
    if (p == NULL)
        return error_set(error, ERROR_MEMORY, "no memory");
    memcpy(p, r->logits, r->test * r->all * sizeof *p);
    status result = regression_fuse(&nothing, 0, test->data, r->test, r->all, p, NULL, error);
    if (result == OK)
        report_values(r->f->report, "zero_shot", p, expected->data, r->test * r->all,
                      number(r->f->tolerances, "zero_shot"));
    free(p);
    return result;
}

/* eval_logit_scale · x · textᵀ, as evaluation computes it. */
static status make_logits(struct recorded_rail *r, struct error *error)
{
    const struct safetensor *test = safetensors_find(r->data, "test"), *text = safetensors_find(r->data, "text");
    const float *images = test->data, *texts = text->data;
    r->logits = malloc(r->test * r->all * sizeof *r->logits);
    if (r->logits == NULL)
        return error_set(error, ERROR_MEMORY, "no memory");
    report_exact(r->f->report, "evaluation scale", number(r->f->config, "eval_logit_scale") == (double)EVALUATION_SCALE,
                 "%f", (double)EVALUATION_SCALE);
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
    return OK;
}

static status open_files(struct recorded_rail *r, struct error *error)
{
    char *data = path_format("%s/data.safetensors", r->f->folder),
         *expect = path_format("%s/expect.safetensors", r->f->folder);
    status result = data != NULL && expect != NULL ? OK : error_set(error, ERROR_MEMORY, "no memory");
    NEXT(result, safetensors_open(&r->data, data, error));
    NEXT(result, safetensors_open(&r->expect, expect, error));
    free(data);
    free(expect);
    TRY(result);
    const struct safetensor *test = safetensors_find(r->data, "test"), *text = safetensors_find(r->data, "text"),
                            *random = safetensors_find(r->data, "random");
    if (test == NULL || text == NULL || random == NULL || safetensors_find(r->expect, "zero_shot") == NULL)
        return error_set(error, ERROR_FORMAT, "%s: expected test, text, random and zero_shot", r->f->folder);
    r->test = test->shape[0];
    r->dims = test->shape[1];
    r->all = text->shape[0];
    r->hidden = random->shape[0];
    return OK;
}

status replay_rail(struct method_fixture *fixture, struct error *error)
{
    struct recorded_rail r = {.f = fixture};
    status result = open_files(&r, error);
    NEXT(result, threads_create(&r.pool, 2, error));
    NEXT(result, make_logits(&r, error));
    NEXT(result, replay_zero_shot(&r, error));
    NEXT(result, replay_form(&r, REGRESSION_PRIMAL, error));
    NEXT(result, replay_form(&r, REGRESSION_DUAL, error));
    threads_destroy(r.pool);
    free(r.logits);
    safetensors_close(r.data);
    safetensors_close(r.expect);
    return result;
}

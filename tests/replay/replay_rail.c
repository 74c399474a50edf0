/* fixtures/methods/rail: both forms of RAIL, task by task on recorded features, with the code that its methods run. */
#include <math.h>
#include <string.h>

#include "harness/model/class_features.h"
#include "harness/train/services/regression.h"
#include "tests/replay/replay.h"

static const char *const forms[] = {[REGRESSION_PRIMAL] = "primal", [REGRESSION_DUAL] = "dual"};

struct rail {
    struct replay *r;
    struct safetensors *expect;
    struct threads *pool;
    const struct safetensor *test; /* [N, D] */
    size_t all;                    /* classes */
    float *logits;                 /* [N, all] of zero-shot CLIP */
};

/* expected [M, classes], got [classes, M]; relative to the largest magnitude of the tensor */
static void compare_weights(struct rail *rail, const struct regression *g, const struct safetensor *expected)
{
    double *turned = replay_take(rail->r, g->classes * g->basis, sizeof *turned);
    for (size_t i = 0; i < g->classes * g->basis; i++)
        turned[i % g->basis * g->classes + i / g->basis] = g->coefficients[i];
    double tolerance = recorded_tolerance(rail->r, replay_text(rail->r, "%s_weights_rel", forms[g->form]));
    replay_doubles(rail->r, replay_text(rail->r, "%s weights", forms[g->form]), turned, expected,
                   tolerance * recorded_largest(expected));
}

/* R = (ΦᵀΦ + ridge I)⁻¹, which the method does not need: its columns are solutions for the unit vectors. */
static void compare_memory(struct rail *rail, const struct regression *g, const struct safetensor *expected)
{
    double *inverse = replay_take(rail->r, g->basis * g->basis, sizeof *inverse);
    struct symmetric *matrix = symmetric_create(g->basis);
    memcpy(matrix->values, g->gram->values, symmetric_values(g->basis) * sizeof *matrix->values);
    symmetric_shift(matrix, g->ridge);
    for (size_t i = 0; i < g->basis; i++)
        inverse[i * g->basis + i] = 1;
    must(symmetric_factor(matrix, rail->pool, &error));
    symmetric_solve(matrix, rail->pool, inverse, g->basis);
    replay_doubles(rail->r, "primal memory", inverse, expected, recorded_tolerance(rail->r, "memory"));
    symmetric_destroy(matrix);
}

static size_t best_of(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t c = 1; c < n; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

static double tolerance_of_scores(const struct rail *rail, const char *form)
{
    return recorded_tolerance(rail->r, replay_text(rail->r, "scores_%s", form));
}

static void compare_fused(struct rail *rail, const struct regression *g, const char *form, size_t task)
{
    const int32_t *labels = recorded_integers(rail->expect, "labels.%s.%zu", form, task),
                  *adapted = recorded_integers(rail->expect, "adapted.%zu", task);
    size_t n = rail->test->shape[0];
    float *scores = replay_take(rail->r, n * rail->all, sizeof *scores);
    bool *is = replay_take(rail->r, n, sizeof *is);
    memcpy(scores, rail->logits, n * rail->all * sizeof *scores);
    struct regression fused_by = *g;
    fused_by.fusion = recorded_number(rail->r->config, "fusion");
    regression_fuse(&fused_by, 0, rail->test->data, n, rail->all, scores, is);
    replay_floats(rail->r, replay_text(rail->r, "%s fused", form), scores,
                  recorded(rail->expect, "fused.%s.%zu", form, task), tolerance_of_scores(rail, form));
    for (size_t i = 0; i < n; i++) {
        report_exact(&rail->r->report, "labels", best_of(scores + i * rail->all, rail->all) == (size_t)labels[i],
                     "%s, task %zu, image %zu", form, task, i);
        report_exact(&rail->r->report, "adapted", is[i] == (adapted[i] != 0), "%s, task %zu, image %zu", form, task, i);
    }
}

static void compare_scores(struct rail *rail, const struct regression *g, const char *form, size_t task)
{
    double *scores = replay_take(rail->r, rail->test->shape[0] * g->classes, sizeof *scores);
    regression_scores(g, rail->test->data, rail->test->shape[0], scores);
    replay_doubles(rail->r, replay_text(rail->r, "%s scores", form), scores,
                   recorded(rail->expect, "scores.%s.%zu", form, task), tolerance_of_scores(rail, form));
}

static void add_task(struct rail *rail, struct regression *g, size_t task)
{
    const struct safetensor *features = recorded(rail->r->data, "train.%zu", task);
    const int32_t *labels = recorded_integers(rail->r->data, "train_labels.%zu", task);
    size_t first = g->classes, more = recorded_at(json_object_get(rail->r->config, "classes"), task);
    int32_t *shared = replay_take(rail->r, features->shape[0], sizeof *shared);
    for (size_t i = 0; i < features->shape[0]; i++)
        shared[i] = (int32_t)first + labels[i];
    regression_add(g, features->data, shared, features->shape[0], first + more);
    must(regression_solve(g, &error));
}

static void replay_form(struct rail *rail, enum regression_form form)
{
    const json_t *config = rail->r->config;
    bool primal = form == REGRESSION_PRIMAL;
    struct regression g = {.form = form,
                           .width = rail->test->shape[1],
                           .ridge = recorded_number(config, primal ? "ridge" : "dual_ridge"),
                           .gamma = recorded_number(config, "gamma"),
                           .pool = rail->pool};
    if (primal) {
        const struct safetensor *random = recorded(rail->r->data, "random");
        regression_draw(&g, random->shape[0], 0);
        for (size_t i = 0; i < safetensor_elements(random); i++)
            g.bases[i] = recorded_value(random, i);
    }
    for (size_t t = 0; t < json_array_size(json_object_get(config, "classes")); t++) {
        add_task(rail, &g, t);
        compare_weights(rail, &g, recorded(rail->expect, primal ? "primal.W.%zu" : "dual.alpha.%zu", t));
        if (primal)
            compare_memory(rail, &g, recorded(rail->expect, "primal.R.%zu", t));
        compare_scores(rail, &g, forms[form], t);
        compare_fused(rail, &g, forms[form], t);
    }
    regression_free(&g);
}

/* Probabilities of zero-shot CLIP: what fusion leaves where nothing was learned. */
static void replay_zero_shot(struct rail *rail)
{
    const struct regression nothing = {.width = rail->test->shape[1], .pool = rail->pool, .fusion = 0.8};
    size_t n = rail->test->shape[0];
    float *p = replay_take(rail->r, n * rail->all, sizeof *p);
    memcpy(p, rail->logits, n * rail->all * sizeof *p);
    regression_fuse(&nothing, 0, rail->test->data, n, rail->all, p, NULL);
    replay_floats(rail->r, "zero_shot", p, recorded(rail->expect, "zero_shot"),
                  recorded_tolerance(rail->r, "zero_shot"));
}

/* eval_logit_scale · x · textᵀ, as evaluation computes it. */
static void make_logits(struct rail *rail, const struct safetensor *texts)
{
    size_t width = rail->test->shape[1];
    report_exact(&rail->r->report, "evaluation scale",
                 recorded_number(rail->r->config, "eval_logit_scale") == (double)EVALUATION_SCALE, "%f",
                 (double)EVALUATION_SCALE);
    for (size_t i = 0; i < rail->test->shape[0] * rail->all; i++) {
        double square = 0, sum = 0;
        for (size_t k = 0; k < width; k++) {
            double x = recorded_value(rail->test, i / rail->all * width + k);
            square += x * x;
            sum += x * recorded_value(texts, i % rail->all * width + k);
        }
        rail->logits[i] = (float)((double)EVALUATION_SCALE * sum / sqrt(square));
    }
}

void replay_rail(struct replay *r)
{
    const struct safetensor *texts = recorded(r->data, "text");
    struct rail rail = {.r = r,
                        .expect = recorded_open(r, "expect.safetensors"),
                        .test = recorded(r->data, "test"),
                        .all = texts->shape[0]};
    rail.logits = replay_take(r, rail.test->shape[0] * rail.all, sizeof *rail.logits);
    must(threads_create(&rail.pool, 2, &error));
    make_logits(&rail, texts);
    replay_zero_shot(&rail);
    replay_form(&rail, REGRESSION_PRIMAL);
    replay_form(&rail, REGRESSION_DUAL);
    threads_destroy(rail.pool);
    safetensors_close(rail.expect);
}

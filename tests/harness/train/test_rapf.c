/* RAPF: a plain form of its steps against recorded numbers of the public code (record_rapf.py), and the method against that form on the
 * images of a run. Stops are in test_every_method.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "harness/methods/methods.h"
#include "harness/model/class_features.h"
#include "harness/train/image_pass.h"
#include "harness/train/services/gaussians.h"
#include "harness/train/services/host_step.h"
#include "harness/train/services/projection.h"
#include "tests/harness/train/outcome.h"
#include "tests/models/files/tensor_set.h"
#include "tests/recorded.h"

enum { WIDEST = 128, MOST_CLASSES = 9, MOST_ROWS = 900, EPOCHS = 15 };

/* What learns task by task. */
struct plain {
    bool recorded; /* nothing is shuffled, and normal numbers are those of recording.py; else both are the method's */
    size_t images, drawn, draws;
    double near, margin, fusion, rate;
    struct gaussian_rule rule;
    struct projection layer;
    struct projection_texts texts;
    float *gaussians[MOST_CLASSES]; /* of the classes before the task */
    struct projection_batch batch;
    double *gradient, *moments, *start;
    double losses[EPOCHS * 8];
    size_t steps; /* of the task */
};

static uint64_t drawn;

static float *draw(size_t n, double scale)
{
    float *values = small_run_keep(malloc(n * sizeof *values));
    for (size_t i = 0; i < n; i++, drawn++)
        values[i] = recorded_draw(drawn, scale);
    return values;
}

static double *room(size_t n)
{
    return small_run_keep(calloc(n, sizeof(double)));
}

static void make(struct plain *p, size_t width)
{
    static int32_t labels[2][MOST_ROWS];
    assert_true(width <= WIDEST);
    p->rule = (struct gaussian_rule){.width = width, .ridge = 1e-4, .unbiased = true, .widened = p->rule.widened};
    p->layer = (struct projection){.width = width, .inputs = width, .weights = room(width * width)};
    p->texts = (struct projection_texts){.rows = room(MOST_CLASSES * width), .columns = room(MOST_CLASSES * width)};
    p->batch = (struct projection_batch){.x = room(MOST_ROWS * width),
                                         .labels = labels[0],
                                         .others = labels[1],
                                         .work = room(MOST_ROWS * (4 * width + MOST_CLASSES + 1))};
    p->gradient = room(width * width);
    p->moments = room(2 * width * width);
    p->start = room(width * width);
}

static void add_text(struct plain *p, const float *text)
{
    double square = 0;
    for (size_t k = 0; k < p->rule.width; k++)
        square += pow((double)text[k], 2);
    for (size_t k = 0; k < p->rule.width; k++)
        p->texts.rows[p->texts.classes * p->rule.width + k] = 100 * (double)text[k] / sqrt(square);
    p->texts.classes++;
}

static void add_draws(struct plain *p, size_t class, size_t other, size_t count, const struct rng *rng)
{
    struct projection_batch *b = &p->batch;
    for (; count > 0; count--, b->n++) {
        assert_true(b->n < MOST_ROWS);
        double *x = b->x + b->n * p->rule.width;
        for (size_t k = 0; k < p->rule.width; k++)
            x[k] = p->recorded ? (double)recorded_draw(drawn++, sqrt(12))
                               : (double)rng_normal(rng, b->n * p->rule.width + k);
        gaussian_draw(p->gaussians[class], p->rule.width, x);
        b->labels[b->n] = (int32_t) class;
        b->others[b->n] = (int32_t)other;
    }
}

/* Rows x [n, width] of the classes first … first + classes − 1, their texts behind the earlier ones. */
static void step(struct plain *p, size_t task, size_t epoch, size_t place, const float *x, const int32_t *labels,
                 size_t n, size_t first)
{
    size_t width = p->rule.width;
    uint32_t order[MOST_ROWS], turns[MOST_CLASSES], number = (uint32_t)task;
    struct rng rngs[] = {rng_make(1, RNG_ORDER, number, (uint32_t)epoch),
                         rng_make(1, RNG_ORDER, number, (uint32_t)(EPOCHS + epoch)),
                         rng_make(1, RNG_SAMPLES, number, (uint32_t)p->steps)};
    rng_permutation(&rngs[0], n, order);
    rng_permutation(&rngs[1], first, turns);
    for (uint32_t i = 0; p->recorded && i < n; i++)
        order[i] = i;
    for (uint32_t c = 0; p->recorded && c < first; c++)
        turns[c] = c;
    p->batch.n = 0;
    for (size_t i = place * p->images; i < n && i < (place + 1) * p->images; i++, p->batch.n++) {
        for (size_t k = 0; k < width; k++)
            p->batch.x[p->batch.n * width + k] = (double)x[order[i] * width + k];
        p->batch.labels[p->batch.n] = labels[order[i]];
    }
    for (size_t j = 0; first > 0 && j < p->drawn; j++)
        add_draws(p, turns[(place * p->drawn + j) % first], 0, p->draws, &rngs[2]);
    p->batch.labelled = p->batch.n;
    for (size_t old = 0; old < first; old++)
        for (size_t new = first; new < p->texts.classes; new ++) {
            double square = 0;
            for (size_t k = 0; k < width; k++)
                square += pow((p->texts.rows[old * width + k] - p->texts.rows[new *width + k]) / 100, 2);
            if (sqrt(square) < p->near)
                add_draws(p, old, new, 2 * p->draws, &rngs[2]);
        }
    p->losses[p->steps] = projection_loss(&p->layer, &p->texts, &p->batch, p->margin, p->gradient);
    host_adam(p->layer.weights, width * width, p->gradient, p->moments,
              &(struct host_adam){.rate = p->rate * (epoch < 4    ? 1
                                                     : epoch < 10 ? 0.1
                                                                  : 0.01),
                                  .beta1 = 0.9},
              p->steps++);
}

static void learn_plainly(struct plain *p, size_t task, const float *x, const int32_t *labels, size_t n, size_t first)
{
    size_t width = p->rule.width, classes = p->texts.classes;
    memcpy(p->start, p->layer.weights, width * width * sizeof *p->start);
    memset(p->moments, 0, 2 * width * width * sizeof *p->moments);
    for (size_t i = 0; i < classes * width; i++)
        p->texts.columns[i % width * classes + i / width] = p->texts.rows[i];
    p->steps = 0;
    for (size_t epoch = 0; epoch < EPOCHS; epoch++)
        for (size_t place = 0; place * p->images < n; place++)
            step(p, task, epoch, place, x, labels, n, first);
    for (size_t c = first; c < classes; c++) {
        float *rows = small_run_keep(malloc(n * width * sizeof *rows));
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            if ((size_t)labels[i] == c)
                memcpy(rows + count++ * width, x + i * width, width * sizeof *rows);
        p->gaussians[c] = small_run_keep(malloc(gaussian_values(width) * sizeof(float)));
        must(gaussian_fit(p->gaussians[c], &p->rule, rows, count, NULL, &error));
    }
}

/* --- The public code --- */

/* The record is in f32, and the public code rounds the texts of a margin to f32. */
static void expect_near(const char *what, const double *found, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(found[i] - (double)expected[i]) <= 2e-6 * (1 + fabs((double)expected[i]))))
            fail_msg("%s, value %zu: expected %.8f, found %.8f", what, i, (double)expected[i], found[i]);
}

TEST(the_steps_are_the_public_codes)
{
    enum { PUBLIC_WIDTH = 5, SQUARE = PUBLIC_WIDTH * PUBLIC_WIDTH, PER_CLASS = 10, CLASSES = 6, TESTS = 7, STEPS = 45 };
    struct small_run run;
    small_run_open(&run, 1, WORDS(NULL));
    struct safetensors *file = open_file(FIXTURES "/rapf.safetensors");
    drawn = 0;
    float *x = draw(CLASSES * PER_CLASS * PUBLIC_WIDTH, 2), *centres = draw(CLASSES * PUBLIC_WIDTH, 2),
          *texts = draw(CLASSES * PUBLIC_WIDTH, 1), *tests = draw(TESTS * PUBLIC_WIDTH, 2), *start = draw(SQUARE, 1);
    int32_t labels[CLASSES * PER_CLASS];
    for (size_t i = 0; i < CLASSES * PER_CLASS * PUBLIC_WIDTH; i++)
        x[i] += centres[i / (PER_CLASS * PUBLIC_WIDTH) * PUBLIC_WIDTH + i % PUBLIC_WIDTH];
    for (int32_t i = 0; i < CLASSES * PER_CLASS; i++)
        labels[i] = i / PER_CLASS;
    for (size_t variant = 0; variant < 2; variant++) {
        struct plain p = {.recorded = true,
                          .images = 8,
                          .drawn = 2,
                          .draws = 5,
                          .near = variant == 0 ? 0.7 : 1.3,
                          .margin = 0.1,
                          .fusion = 0.6,
                          .rate = 1e-3,
                          .rule = {.widened = variant == 1}};
        const char *name = variant == 0 ? "plain" : "widened";
        const float *losses = small_run_recorded(file, small_run_format("%s.losses", name)),
                    *layers = small_run_recorded(file, small_run_format("%s.layers", name)),
                    *scores = small_run_recorded(file, small_run_format("%s.scores", name));
        double rows[TESTS * PUBLIC_WIDTH], units[TESTS * PUBLIC_WIDTH], found[TESTS * CLASSES];
        make(&p, PUBLIC_WIDTH);
        for (size_t i = 0; i < SQUARE; i++)
            p.layer.weights[i] = (double)start[i];
        for (size_t t = 0; t < 3; t++) {
            size_t first = 2 * t;
            add_text(&p, texts + first * PUBLIC_WIDTH);
            add_text(&p, texts + (first + 1) * PUBLIC_WIDTH);
            learn_plainly(&p, t, x + first * PER_CLASS * PUBLIC_WIDTH, labels + first * PER_CLASS, 2 * PER_CLASS,
                          first);
            assert_int_equal(p.steps, STEPS);
            expect_near("loss", p.losses, losses + t * STEPS, STEPS);
            expect_near("layer", p.layer.weights, layers + 2 * t * SQUARE, SQUARE);
            if (t > 0)
                must(projection_fuse(&p.layer, p.start, p.fusion, &error));
            expect_near("fused layer", p.layer.weights, layers + (2 * t + 1) * SQUARE, SQUARE);
        }
        for (size_t i = 0; i < TESTS * PUBLIC_WIDTH; i++)
            rows[i] = (double)tests[i];
        projection_scores(&p.layer, &p.texts, rows, TESTS, units, found);
        expect_near("score", found, scores, TESTS * CLASSES);
    }
    safetensors_close(file);
    small_run_close(&run);
}

/* --- The method --- */

#define RAPF                                                                                                           \
    "method.name=rapf", "method.images=5", "method.classes=3", "method.draws=4", "method.rate=0.01", "method.near=2",  \
        "method.margin=0.3", "method.fusion=0.2", "evaluation.label_space=seen"

/* Three tasks of 2, 3 and 4 classes: the scores of every training image, of all classes so far. */
static void expect_plain(struct small_run *run, bool widened)
{
    struct data *data = &run->experiment->data;
    struct method_run *method = &run->experiment->method;
    struct model *model = &run->experiment->model;
    struct plain p = {.images = 5,
                      .drawn = 3,
                      .draws = 4,
                      .near = 2,
                      .margin = 0.3,
                      .fusion = 0.2,
                      .rate = 0.01,
                      .rule = {.widened = widened}};
    size_t width = model->clip->dimensions.embed;
    struct rng rng = rng_make(1, RNG_DIRECTIONS, 0, 0);
    make(&p, width);
    for (size_t i = 0; i < width * width; i++)
        p.layer.weights[i] = (2 * (double)rng_uniform(&rng, i) - 1) / sqrt((double)width);
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        const struct task *task = &data->tasks[t];
        struct frozen_rows rows;
        float *texts;
        must(frozen_rows_read(&rows, method, task, &error));
        must(class_features_host(model, task, &texts, &error));
        for (size_t c = rows.first; c < rows.classes; c++)
            add_text(&p, texts + (c - rows.first) * width);
        learn_plainly(&p, t, rows.features, rows.labels, rows.n, rows.first);
        if (t > 0)
            must(projection_fuse(&p.layer, p.start, p.fusion, &error));
        learn(run, t);
        double *x = room(rows.n * width), *units = room(rows.n * width), *expected = room(rows.n * rows.classes);
        float *scores = small_run_keep(calloc(rows.n * rows.classes, sizeof *scores));
        for (size_t i = 0; i < rows.n * width; i++)
            x[i] = (double)rows.features[i];
        projection_scores(&p.layer, &p.texts, x, rows.n, units, expected);
        must(model->settings.method->scores(method, task, rows.features, rows.n, rows.classes, scores, &error));
        for (size_t i = 0; i < rows.n * rows.classes; i++)
            if (!(fabs(expected[i] - (double)scores[i]) < 1e-4)) /* scores are floats of at most 100 */
                fail_msg("task %zu, score %zu: expected %.6f, found %.6f", t, i, expected[i], (double)scores[i]);
        frozen_rows_free(&rows);
        free(texts);
    }
}

RUN_TEST(the_method_takes_these_steps, RAPF, NULL)
{
    expect_plain(run, false);
    small_run_reopen(run, 1, WORDS(RAPF, "method.widen=yes"));
    expect_plain(run, true);
}

/* --- Corners --- */

/* A feature of zeros has no direction: its gradient is 0, not NaN. An image of its own is what draws are near. */
RUN_TEST(corners_are_finite, NULL)
{
    const struct gaussian_rule rule = {.width = 3, .ridge = 1e-4, .unbiased = true, .widened = true};
    const float image[3] = {1, -2, 3};
    float gaussian[9];
    double draws[3] = {1, -1, 1}, work[13 + 2], gradient[9], weights[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1},
           texts[6] = {100, 0, 0, 0, 100, 0}, columns[6] = {100, 0, 0, 100, 0, 0}, zeros[3] = {0};
    int32_t label = 1;
    struct projection layer = {.width = 3, .inputs = 3, .weights = weights};
    struct projection_batch batch = {.n = 1, .labelled = 1, .x = zeros, .labels = &label, .work = work};
    assert_int_equal(gaussian_values(3), 9);
    must(gaussian_fit(gaussian, &rule, image, 1, NULL, &error));
    gaussian_draw(gaussian, 3, draws);
    for (size_t k = 0; k < 3; k++)
        assert_true(fabs(draws[k] - (double)image[k]) < 0.03);
    double loss = projection_loss(&layer, &(struct projection_texts){2, texts, columns}, &batch, 0, gradient);
    assert_true(fabs(loss - log(2)) < 1e-12);
    for (size_t k = 0; k < 9; k++)
        assert_true(gradient[k] == 0);
    memcpy(work, weights, sizeof weights);
    must(projection_fuse(&layer, work, 0.5, &error));
    for (size_t k = 0; k < 9; k++)
        assert_true(fabs(weights[k] - (k % 4 == 0)) < 1e-12);
    work[0] = NAN;
    must_refuse(projection_fuse(&layer, work, 0.5, &error), ERROR_FORMAT, "finite");
}

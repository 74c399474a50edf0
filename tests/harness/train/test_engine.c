/* ENGINE: a plain form of its steps against recorded numbers of the public code (record_engine.py), and the method against that form on
 * the images of a run. Stops are in test_every_method.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "datasets/readers/reader.h"
#include "harness/methods/methods.h"
#include "harness/model/class_features.h"
#include "harness/train/image_pass.h"
#include "harness/train/services/alignment.h"
#include "harness/train/services/host_step.h"
#include "tests/harness/train/outcome.h"
#include "tests/models/files/tensor_set.h"
#include "tests/recorded.h"

enum { MOST_CLASSES = 9, MOST_ROWS = 64, SIDES = 2 };

/* What learns task by task. Features of images and of their views, and texts [prompts] of every class, are those of all tasks. */
struct plain {
    bool recorded; /* nothing is shuffled, and noise is that of recording.py; else all is the method's */
    size_t width, images, epochs, prompts, classes;
    double rate, decay, noise, statistics;
    const float
        *pairs; /* [all, all, width] of the features of descriptions, which are ranked, too; NULL: there are none */
    size_t all;
    struct alignment_rule rule;
    const float *x, *views, *texts;
    const int32_t *labels;
    double centres[MOST_CLASSES * 128];
    struct projection layers[SIDES];
    struct discriminant analysis;
    struct alignment_batch batch;
    double *gradients[SIDES], losses[MOST_ROWS];
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

static void make(struct plain *p)
{
    size_t layer = p->width * (p->width + 1);
    assert_true(p->width <= 128);
    for (size_t k = 0; k < SIDES; k++) {
        p->layers[k] = (struct projection){.width = p->width, .inputs = p->width + 1, .weights = room(layer)};
        p->batch.x[k] = room(MOST_ROWS * (p->width + 1));
        p->gradients[k] = room(layer);
    }
    p->batch.views = room(MOST_ROWS * p->width);
    p->batch.references = room(MOST_ROWS * p->width);
    p->batch.work = room(alignment_work(MOST_ROWS, p->width));
    p->analysis.width = p->width;
}

static void put(double *out, const float *row, size_t width, bool unit)
{
    double square = 0;
    for (size_t k = 0; k < width; k++)
        square += pow((double)row[k], 2);
    for (size_t k = 0; k < width; k++)
        out[k] = (double)row[k] / (unit ? sqrt(square) : 1);
    if (!unit)
        out[width] = 1;
}

static void put_text(struct plain *p, size_t class, const struct rng *rng)
{
    size_t i = p->batch.n, other = p->recorded      ? 1
                                   : p->prompts > 1 ? 1 + rng_below(rng, i, (uint32_t)(p->prompts - 1))
                                                    : 0;
    const float *texts = p->texts + class * p->prompts * p->width, *reference = texts + other * p->width;
    if (p->pairs != NULL)
        reference = p->pairs + (class * p->all + rng_below(rng, i, (uint32_t)p->all)) * p->width;
    put(p->batch.x[1] + i * (p->width + 1), texts, p->width, false);
    put(p->batch.references + i * p->width, reference, p->width, true);
    p->batch.n++;
}

static void fill(struct plain *p, size_t task, size_t epoch, size_t place, size_t from, size_t n, size_t before)
{
    struct alignment_batch *b = &p->batch;
    uint32_t order[MOST_ROWS], number = (uint32_t)task, at = (uint32_t)p->steps;
    struct rng rngs[] = {rng_make(1, RNG_ORDER, number, (uint32_t)epoch), rng_make(1, RNG_SENTENCES, number, at),
                         rng_make(1, RNG_SAMPLES, number, at)};
    rng_permutation(&rngs[0], n, order);
    b->n = 0;
    for (size_t i = place * p->images; i < n && i < (place + 1) * p->images; i++) {
        size_t image = from + (p->recorded ? i : order[i]);
        put(b->x[0] + b->n * (p->width + 1), p->x + image * p->width, p->width, false);
        put(b->views + b->n * p->width, p->views + image * p->width, p->width, true);
        put_text(p, (size_t)p->labels[image], &rngs[1]);
    }
    b->images = b->n;
    for (size_t c = 0; c < before; c++) {
        double *row = b->x[0] + b->n * (p->width + 1);
        for (size_t k = 0; k < p->width; k++)
            row[k] = p->centres[c * p->width + k] + p->noise * (p->recorded
                                                                    ? (double)recorded_draw(drawn++, sqrt(12))
                                                                    : (double)rng_normal(&rngs[2], c * p->width + k));
        row[p->width] = 1;
        put_text(p, c, &rngs[1]);
    }
}

/* Images from … from + n − 1 are of the next classes, start [2][width, width + 1] the task's layers. */
static void learn_plainly(struct plain *p, size_t task, size_t from, size_t n, size_t classes, double *const start[])
{
    size_t layer = p->width * (p->width + 1), before = p->classes;
    double *velocity[SIDES] = {room(layer), room(layer)}, *past[SIDES], *units = room(n * p->width),
           counts[MOST_CLASSES];
    p->steps = 0;
    for (size_t k = 0; k < SIDES; k++) {
        past[k] = room(layer);
        memcpy(past[k], p->layers[k].weights, layer * sizeof(double));
    }
    for (size_t epoch = 0; epoch < p->epochs; epoch++)
        for (size_t place = 0; place * p->images < n; place++, p->steps++) {
            for (size_t k = 0; k < SIDES; k++)
                for (size_t i = 0; i < layer; i++)
                    p->layers[k].weights[i] = past[k][i] + start[k][i];
            fill(p, task, epoch, place, from, n, before);
            p->losses[p->steps] = alignment_loss(p->layers, &p->batch, &p->rule, p->gradients);
            for (size_t k = 0; k < SIDES; k++)
                host_sgd(start[k], layer, p->gradients[k], velocity[k],
                         p->rate / 2 * (1 + cos(M_PI * (double)epoch / (double)p->epochs)), 0.9, p->decay);
        }
    for (size_t k = 0; k < SIDES; k++)
        for (size_t i = 0; i < layer; i++)
            p->layers[k].weights[i] = past[k][i] + start[k][i];
    memset(counts, 0, sizeof counts);
    for (size_t i = from; i < from + n; i++) {
        put(units + (i - from) * p->width, p->x + i * p->width, p->width, true);
        counts[p->labels[i]]++;
        for (size_t k = 0; k < p->width; k++)
            p->centres[(size_t)p->labels[i] * p->width + k] += (double)p->x[i * p->width + k];
    }
    for (size_t i = before * p->width; i < (before + classes) * p->width; i++)
        p->centres[i] /= counts[i / p->width];
    must(discriminant_add(&p->analysis, units, p->labels + from, n, classes, NULL, &error));
    p->classes += classes;
}

/* scores [n, classes] of the learned classes; x [n, width] */
static void score(const struct plain *p, const float *x, size_t n, double *scores)
{
    double row[2][129], unit[129], mean[129], cosines[MOST_CLASSES];
    const struct alignment_ranking ranking = {
        .width = p->width, .stride = p->all, .top = 5, .weight = 0.5, .pairs = p->pairs};
    for (size_t i = 0; i < n; i++) {
        put(row[0], x + i * p->width, p->width, false);
        projection_apply(&p->layers[0], row[0], 1, unit, NULL);
        put(row[1], x + i * p->width, p->width, true);
        discriminant_scores(&p->analysis, row[1], 1, NULL, scores + i * p->classes);
        for (size_t c = 0; c < p->classes; c++) {
            cosines[c] = 0;
            memset(mean, 0, sizeof mean);
            for (size_t t = 0; t < p->prompts; t++) {
                put(row[0], p->texts + (c * p->prompts + t) * p->width, p->width, false);
                projection_apply(&p->layers[1], row[0], 1, row[1], NULL);
                for (size_t k = 0; k < p->width; k++)
                    mean[k] += row[1][k];
            }
            linear_unit(mean, p->width);
            for (size_t k = 0; k < p->width; k++)
                cosines[c] += mean[k] * unit[k];
        }
        put(row[1], x + i * p->width, p->width, true);
        if (p->pairs != NULL)
            alignment_rank(&ranking, row[1], cosines, p->classes);
        for (size_t c = 0; c < p->classes; c++)
            scores[i * p->classes + c] = p->statistics * scores[i * p->classes + c] + (1 - p->statistics) * cosines[c];
    }
}

/* --- The public code --- */

/* The public code computes in f64, and the record is in f32. */
static void expect_near(const char *what, const double *found, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(found[i] - (double)expected[i]) <= 2e-7 * (1 + fabs((double)expected[i]))))
            fail_msg("%s, value %zu: expected %.8f, found %.8f", what, i, (double)expected[i], found[i]);
}

TEST(the_steps_are_the_public_codes)
{
    enum { WIDTH = 5, LAYER = WIDTH * (WIDTH + 1), PER_CLASS = 9, CLASSES = 6, TESTS = 7, STEPS = 12, PROMPTS = 3 };
    static struct plain p = {.recorded = true,
                             .width = WIDTH,
                             .images = 7,
                             .epochs = 4,
                             .prompts = PROMPTS,
                             .rate = 0.05,
                             .decay = 0.05,
                             .noise = 0.25,
                             .statistics = 0.8};
    struct small_run run;
    small_run_open(&run, 1, WORDS(NULL));
    struct safetensors *file = open_file(FIXTURES "/engine.safetensors");
    const float *losses = small_run_recorded(file, "losses"), *layers = small_run_recorded(file, "layers"),
                *scores = small_run_recorded(file, "scores");
    drawn = 0;
    float *x = draw(CLASSES * PER_CLASS * WIDTH, 2), *centres = draw(CLASSES * WIDTH, 2);
    int32_t labels[CLASSES * PER_CLASS];
    double found[TESTS * CLASSES], *starts[CLASSES];
    for (size_t i = 0; i < CLASSES * PER_CLASS * WIDTH; i++)
        x[i] += centres[i / (PER_CLASS * WIDTH) * WIDTH + i % WIDTH];
    for (int32_t i = 0; i < CLASSES * PER_CLASS; i++)
        labels[i] = i / PER_CLASS;
    p.rule = (struct alignment_rule){.scale = log(100), .view_weight = 0.5, .reference_weight = 2};
    p.x = x;
    p.labels = labels;
    p.views = draw(CLASSES * PER_CLASS * WIDTH, 2);
    const float *tests = draw(TESTS * WIDTH, 2);
    p.texts = draw(CLASSES * PROMPTS * WIDTH, 2);
    make(&p);
    for (size_t k = 0; k < CLASSES; k++) {
        const float *start = draw(LAYER, 1);
        starts[k] = room(LAYER);
        for (size_t i = 0; i < LAYER; i++)
            starts[k][i] = (double)start[i];
    }
    for (size_t t = 0; t < 3; t++, losses += STEPS, layers += SIDES * LAYER, scores += TESTS * 2 * t) {
        learn_plainly(&p, t, 2 * t * PER_CLASS, 2 * PER_CLASS, 2, starts + 2 * t);
        assert_int_equal(p.steps, STEPS);
        expect_near("loss", p.losses, losses, STEPS);
        for (size_t k = 0; k < SIDES; k++)
            expect_near("layer", p.layers[k].weights, layers + k * LAYER, LAYER);
        score(&p, tests, TESTS, found);
        expect_near("score", found, scores, TESTS * p.classes);
    }
    const float *pairs = draw(CLASSES * CLASSES * WIDTH, 2), *cosines = draw(TESTS * CLASSES, 1);
    const struct alignment_ranking ranking = {
        .width = WIDTH, .stride = CLASSES, .top = 4, .weight = 0.3, .pairs = pairs};
    for (size_t i = 0; i < TESTS; i++) {
        double unit[WIDTH];
        put(unit, tests + i * WIDTH, WIDTH, true);
        for (size_t c = 0; c < CLASSES; c++)
            found[i * CLASSES + c] = (double)cosines[i * CLASSES + c];
        alignment_rank(&ranking, unit, found + i * CLASSES, CLASSES);
    }
    expect_near("ranked", found, small_run_recorded(file, "ranked"), TESTS * CLASSES);
    discriminant_free(&p.analysis);
    safetensors_close(file);
    small_run_close(&run);
}

/* --- The method --- */

#define ENGINE                                                                                                         \
    "method.name=engine", "method.images=5", "method.epochs=3", "method.rate=0.1", "method.noise=0.5",                 \
        "method.view_weight=0.7", "method.text_weight=1.5", "method.statistics=0.4", "evaluation.label_space=seen"

static const char *name_of(const struct small_run *run, size_t class)
{
    const struct task *task = run->experiment->data.tasks;
    for (; class >= dataset_classes(task->dataset); task++)
        class -= dataset_classes(task->dataset);
    return dataset_class_name(task->dataset, class);
}

/* Two descriptions of every pair, but one beside the last class, in a file; returns its path. */
static const char *write_descriptions(const struct small_run *run)
{
    size_t all = run->experiment->data.class_count, names = 4; /* all tasks have the first of these */
    const char *text = "{";
    for (size_t a = all - names; a < all; a++) {
        text = small_run_format("%s%s\"%s\": {", text, a > all - names ? ", " : "", name_of(run, a));
        for (size_t b = all - names; b < all; b++)
            text = small_run_format(b < all - 1 ? "%s%s\"%s\": [\"no %s\", \"%s\"]" : "%s%s\"%s\": [\"no %s\"]", text,
                                    b > all - names ? ", " : "", name_of(run, b), name_of(run, b), name_of(run, a));
        text = small_run_format("%s}", text);
    }
    scratch_write_text(&run->scratch, "described.json", small_run_format("%s}", text));
    return small_run_format("%s/described.json", run->scratch.path);
}

/* The mean features of these. */
static const float *describe(const struct small_run *run)
{
    struct model *model = &run->experiment->model;
    size_t all = run->experiment->data.class_count, width = model->clip->dimensions.embed,
           context = model->clip->dimensions.context, cut;
    float *pairs = small_run_keep(malloc(all * all * width * sizeof *pairs));
    int32_t *tokens = small_run_keep(malloc(2 * context * sizeof *tokens));
    for (size_t i = 0; i < all * all; i++) {
        const char *a = name_of(run, i / all), *b = name_of(run, i % all);
        float values[2 * 128];
        must(
            tokenizer_encode(model->tokenizer, small_run_format("%s with no %s", a, b), tokens, context, &cut, &error));
        must(tokenizer_encode(model->tokenizer, small_run_format("%s with %s", a, a), tokens + context, context, &cut,
                              &error));
        must(text_features_host(model, tokens, 2, values, &error));
        bool one = strcmp(b, name_of(run, all - 1)) == 0;
        for (size_t k = 0; k < width; k++)
            pairs[i * width + k] = one ? values[k] : (values[k] + values[width + k]) / 2;
    }
    return pairs;
}

/* The scores of every training image, of all classes so far. */
static void expect_plain(struct small_run *run, bool described)
{
    static float x[MOST_ROWS * 128], views[MOST_ROWS * 128], texts[MOST_CLASSES * 8 * 128];
    static int32_t labels[MOST_ROWS];
    static struct plain p;
    struct method_run *method = &run->experiment->method;
    struct model *model = &run->experiment->model;
    size_t width = model->clip->dimensions.embed, layer = width * (width + 1), count = 0,
           prompts = dataset_templates(run->experiment->data.tasks[0].dataset);
    p = (struct plain){.width = width,
                       .images = 5,
                       .epochs = 3,
                       .prompts = prompts,
                       .rate = 0.1,
                       .decay = 0.05,
                       .noise = 0.5,
                       .statistics = 0.4,
                       .rule = {.scale = log(100), .view_weight = 0.7, .reference_weight = 1.5},
                       .x = x,
                       .views = views,
                       .texts = texts,
                       .labels = labels,
                       .all = run->experiment->data.class_count,
                       .pairs = described ? describe(run) : NULL};
    assert_true(prompts <= 8);
    make(&p);
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        const struct task *task = &run->experiment->data.tasks[t];
        struct frozen_rows rows;
        double *start[SIDES] = {room(layer), room(layer)};
        must(frozen_rows_read(&rows, method, task, &error));
        must(frozen_rows_mirror(&rows, method, task, &error));
        size_t n = rows.n / 2, classes = rows.classes - rows.first;
        memcpy(x + count * width, rows.features, n * width * sizeof *x);
        memcpy(views + count * width, rows.features + n * width, n * width * sizeof *views);
        memcpy(labels + count, rows.labels, n * sizeof *labels);
        must(text_features_host(model, task->test_prompts, classes * prompts, texts + rows.first * prompts * width,
                                &error));
        for (size_t k = 0; k < SIDES; k++)
            for (size_t i = 0; i < layer; i++) {
                struct rng rng = rng_make(1, RNG_DIRECTIONS, (uint32_t)t, (uint32_t)k);
                start[k][i] = (2 * (double)rng_uniform(&rng, i) - 1) / sqrt((double)width);
            }
        learn_plainly(&p, t, count, n, classes, start);
        learn(run, t);
        double *expected = room(n * rows.classes);
        float *scores = small_run_keep(calloc(n * rows.classes, sizeof *scores));
        score(&p, x + count * width, n, expected);
        must(model->settings.method->scores(method, task, rows.features, n, rows.classes, scores, &error));
        for (size_t i = 0; i < n * rows.classes; i++)
            if (!(fabs(expected[i] - (double)scores[i]) < 1e-6)) /* scores are floats of at most 1 */
                fail_msg("task %zu, score %zu: expected %.7f, found %.7f", t, i, expected[i], (double)scores[i]);
        count += n;
        frozen_rows_free(&rows);
    }
    discriminant_free(&p.analysis);
}

/* A class has its prompt and those of the next two classes. */
static void take_three_prompts(struct small_run *run)
{
    size_t context = run->experiment->model.clip->dimensions.context;
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        struct task *task = &run->experiment->data.tasks[t];
        size_t classes = dataset_classes(task->dataset);
        int32_t *prompts = malloc(3 * classes * context * sizeof *prompts);
        assert_non_null(prompts);
        for (size_t p = 0; p < 3 * classes; p++)
            memcpy(prompts + p * context, task->test_prompts + (p / 3 + p % 3) % classes * context,
                   context * sizeof *prompts);
        free(task->test_prompts);
        task->test_prompts = prompts;
        for (size_t p = 1; p < 3; p++)
            strings_add(&task->dataset->templates, "another {}", 10);
        assert_int_equal(dataset_templates(task->dataset), 3);
    }
}

RUN_TEST(the_method_takes_these_steps, ENGINE, NULL)
{
    expect_plain(run, false);
    small_run_reopen(run, 1, WORDS(ENGINE));
    take_three_prompts(run);
    expect_plain(run, false);
}

RUN_TEST(descriptions_are_other_texts, ENGINE, NULL)
{
    const char *path = write_descriptions(run), *word = small_run_format("method.descriptions=%s", path);
    small_run_reopen(run, 1, WORDS(ENGINE, word));
    expect_plain(run, true);
    small_run_save(run, "whole", 3, 0);
    small_run_reopen(run, 1, WORDS(ENGINE, word));
    learn(run, 0);
    small_run_save(run, "resume", 1, 0);
    small_run_go_on(run, 1, 0, WORDS(ENGINE, word));
    learn(run, 1);
    learn(run, 2);
    small_run_save(run, "parts", 3, 0);
    small_run_expect_same(small_run_format("%s/parts", run->scratch.path), small_run_file(run, "whole"));
    scratch_write_text(&run->scratch, "described.json", "{\"unheard of\": {}}");
    small_run_reopen(run, 1, WORDS(ENGINE, word));
    must_refuse(small_run_train(run, 0, NULL), ERROR_FORMAT, "method.descriptions", "beside classes of this run",
                "data.class_names");
    scratch_write_text(&run->scratch, "described.json", "[1,");
    must_refuse(small_run_try(run, 1, WORDS(ENGINE, word)), ERROR_FORMAT, "method.descriptions", "json:1:3", "JSON");
    scratch_write_text(&run->scratch, "described.json", "[1]");
    must_refuse(small_run_try(run, 1, WORDS(ENGINE, word)), ERROR_FORMAT, "another value");
}

/* One image of every class has no spread within classes. */
RUN_TEST(one_image_of_a_class_is_enough, NULL)
{
    struct discriminant d = {.width = 2};
    const double rows[] = {1, 0, 0, 1};
    const int32_t labels[] = {0, 1};
    double scores[2];
    must(discriminant_add(&d, rows, labels, 2, 2, NULL, &error));
    discriminant_scores(&d, rows, 1, NULL, scores);
    assert_true(isfinite(scores[0]) && scores[0] > scores[1]);
    discriminant_free(&d);
}

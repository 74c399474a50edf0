/* What every kind of selector computes, and that resume files and files of adapters keep it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/resume/checkpoint.h"
#include "harness/selectors/saved_adapters.h"
#include "harness/selectors/selector.h"
#include "harness/train/image_pass.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"
#include "tests/models/alexnet_file.h"

enum { WIDTH = 16, FIT = 60, HELD_OUT = 20, CLASSES = 3 };

/* --- Gaussian --- */

/* Rows around a point per class, with a variance of their own in every direction. */
static void draw_rows(size_t task, float *features, int32_t *labels)
{
    struct rng rng = rng_make(9, RNG_TEST, (uint32_t)task, 0);
    for (size_t i = 0; i < FIT + HELD_OUT; i++) {
        labels[i] = (int32_t)(i % (task + 2));
        for (size_t j = 0; j < WIDTH; j++)
            features[i * WIDTH + j] = (j % 5 == (size_t)labels[i] + task ? 3.0f : 1.0f) +
                                      0.1f * (float)(1 + j) * rng_normal(&rng, i * WIDTH + j);
    }
}

/* What the selector is to know of the tasks so far, worked out here. */
struct expected {
    double images, scatter[WIDTH * WIDTH], means[2][CLASSES][WIDTH];
};

/* The unit vector of a row less a mean. */
static void gap_to(const double *mean, const float *row, double *gap)
{
    for (size_t j = 0; j < WIDTH; j++)
        gap[j] = -mean[j];
    plain_add_unit(gap, row, WIDTH, 1);
}

static void expect_task(struct expected *x, size_t task, const float *features, const int32_t *labels)
{
    double gap[WIDTH];
    size_t counts[CLASSES] = {0};
    for (size_t i = 0; i < FIT; i++)
        counts[labels[i]]++;
    for (size_t i = 0; i < FIT; i++)
        plain_add_unit(x->means[task][labels[i]], features + i * WIDTH, WIDTH, 1 / (double)counts[labels[i]]);
    for (size_t i = 0; i < FIT; i++) {
        gap_to(x->means[task][labels[i]], features + i * WIDTH, gap);
        for (size_t j = 0; j < WIDTH * WIDTH; j++)
            x->scatter[j] += gap[j / WIDTH] * gap[j % WIDTH];
    }
    x->images += FIT;
}

/* gapᵀ covariance⁻¹ gap, and log |covariance| */
static double quadratic(const double *covariance, const double *gap, double *logarithm)
{
    double a[WIDTH * WIDTH], solved[WIDTH], total = 0;
    memcpy(a, covariance, sizeof a);
    memcpy(solved, gap, sizeof solved);
    *logarithm = plain_solve(a, solved, WIDTH, 1);
    for (size_t i = 0; i < WIDTH; i++)
        total += gap[i] * solved[i];
    return total;
}

static double nearest_mean(const struct expected *x, size_t task, double shrinkage, const float *row)
{
    double covariance[WIDTH * WIDTH], gap[WIDTH], trace = 0, least = INFINITY, ignored;
    for (size_t i = 0; i < WIDTH; i++)
        trace += x->scatter[i * (WIDTH + 1)] / x->images;
    for (size_t i = 0; i < WIDTH * WIDTH; i++)
        covariance[i] =
            (1 - shrinkage) * x->scatter[i] / x->images + (i % (WIDTH + 1) == 0 ? shrinkage * trace / WIDTH : 0);
    for (size_t c = 0; c < task + 2; c++) {
        gap_to(x->means[task][c], row, gap);
        least = fmin(least, quadratic(covariance, gap, &ignored));
    }
    return least;
}

/* The selector learns drawn rows of a task, of which the last ones are held out. */
static void fit(struct selector *selector, size_t task, float *features, int32_t *labels)
{
    draw_rows(task, features, labels);
    must(selector_fit(selector, &selector->data->tasks[task],
                      &(struct selector_images){.n = FIT + HELD_OUT, .features = features, .labels = labels}, FIT,
                      &error));
}

/* The errors of n rows under a task, and the largest one expected. */
static double expect_errors(struct selector *selector, size_t task, const float *features, const double *expected,
                            size_t n, double relative, double absolute)
{
    float errors[FIT];
    double largest = 0;
    must(selector_errors(selector, task, &(struct selector_images){.n = n, .features = features}, errors, &error));
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, expected[i]);
        if (!(fabs((double)errors[i] - expected[i]) <= relative * fabs(expected[i]) + absolute))
            fail_msg("task %zu, row %zu: expected %g, found %g", task, i, expected[i], (double)errors[i]);
    }
    return largest;
}

/* Class means of each task, one covariance of all tasks so far: errors and thresholds of the first task are others after
 * the second. */
RUN_TEST(gaussian_is_the_distance_to_the_nearest_class_mean, "selector.kind=gaussian", "selector.shrinkage=0.2",
         "selector.quantile=1", NULL)
{
    struct selector *selector = small_run_selector(run);
    static float features[2][(FIT + HELD_OUT) * WIDTH];
    int32_t labels[FIT + HELD_OUT];
    struct expected x = {0};
    float before = 0;
    for (size_t task = 0; task < 2; task++) {
        fit(selector, task, features[task], labels);
        expect_task(&x, task, features[task], labels);
        for (size_t k = 0; k <= task; k++) {
            const float *held_out = features[k] + (size_t)FIT * WIDTH;
            double expected[HELD_OUT];
            for (size_t i = 0; i < HELD_OUT; i++)
                expected[i] = nearest_mean(&x, k, 0.2, held_out + i * WIDTH);
            double largest = expect_errors(selector, k, held_out, expected, HELD_OUT, 1e-4, 0);
            assert_true(fabs((double)selector->thresholds[k] - largest) < 1e-4 * largest);
        }
        assert_true(task == 0 || (selector_errors_changed(selector, 1) && selector->thresholds[0] != before));
        before = selector->thresholds[0];
    }
}

RUN_TEST(a_covariance_of_too_few_images_is_refused, "selector.kind=gaussian", NULL)
{
    struct selector *selector = small_run_selector(run);
    selector->settings.shrinkage = 0; /* not before: the run's own images are too few as well */
    static float features[(FIT + HELD_OUT) * WIDTH];
    int32_t labels[FIT + HELD_OUT];
    draw_rows(0, features, labels);
    struct selector_images images = {.n = 6, .features = features, .labels = labels};
    must_refuse(selector_fit(selector, &run->experiment->data.tasks[0], &images, 5, &error), ERROR_ARGUMENT, "5 images",
                "16 features", "selector.shrinkage");
}

/* The task's own mean and covariance, unlike those of the task before; no threshold unless it is asked for. */
RUN_TEST(task_gaussian_is_the_density_of_the_task, "selector.kind=task_gaussian", NULL)
{
    struct selector *selector = small_run_selector(run);
    static float features[(FIT + HELD_OUT) * WIDTH];
    int32_t labels[FIT + HELD_OUT];
    static const int32_t one_class[FIT];
    const float *held_out = features + (size_t)FIT * WIDTH;
    for (size_t task = 0; task < 2; task++) {
        struct expected x = {0};
        double gap[WIDTH], expected[HELD_OUT];
        fit(selector, task, features, labels);
        assert_true(selector->thresholds[task] == 1e9f);
        expect_task(&x, task, features, one_class);
        for (size_t j = 0; j < WIDTH * WIDTH; j++)
            x.scatter[j] = x.scatter[j] / (FIT - 1) + (j % (WIDTH + 1) == 0 ? 1e-7 : 0);
        for (size_t i = 0; i < HELD_OUT; i++) { /* −log N of a unit row */
            gap_to(x.means[task][0], held_out + i * WIDTH, gap);
            double distance = quadratic(x.scatter, gap, &expected[i]);
            expected[i] = (WIDTH * log(6.283185307179586) + expected[i] + distance) / 2;
        }
        expect_errors(selector, task, held_out, expected, HELD_OUT, 1e-3, 1e-3);
    }
}

/* --- Text --- */

/* Of the training images, among whose errors the threshold is. */
RUN_TEST(text_is_the_cosine_to_the_nearest_class_name, "selector.kind=text", "selector.quantile=0", NULL)
{
    enum { N = 24 };
    struct run *e = run->experiment;
    const struct task *task = &e->data.tasks[2];
    float means[N * 64], features[N * WIDTH];
    double expected[N];
    size_t classes = dataset_classes(task->dataset), found = 0;
    learn(run, 2); /* adapters are none of its business */
    struct selector *selector = small_run_selector(run);
    must(selector_train(selector, task, NULL, &error));
    must(frozen_features(&e->model, &e->data, task->dataset, SPLIT_TRAIN, NULL, N, means, features, NULL, &error));
    float *text = take_class_features(run, task, -1);
    for (size_t i = 0; i < N; i++) {
        const float *row = features + i * WIDTH;
        expected[i] = 2;
        for (size_t c = 0; c < classes; c++)
            expected[i] =
                fmin(expected[i], 1 - plain_dot(row, text + c * WIDTH, WIDTH) / sqrt(plain_dot(row, row, WIDTH)));
        found += fabs(expected[i] - (double)selector->thresholds[2]) < 1e-5;
    }
    expect_errors(selector, 2, features, expected, N, 0, 1e-5);
    assert_true(found > 0);
}

/* --- Autoencoders --- */

static float *coder_after(struct small_run *run, size_t iterations, const char *batch, const char *shots, size_t *n)
{
    small_run_reopen(run, 1,
                     WORDS(small_run_format("selector.iterations=%zu", iterations), batch, shots, "selector.l2=0"));
    struct selector *selector = small_run_selector(run);
    must(selector_train(selector, &run->experiment->data.tasks[0], NULL, &error));
    *n = selector->coders[0]->parameters->values_count;
    return small_run_group(selector->coders[0]->parameters);
}

/* The last of `steps` steps, as a share of the one before. */
static double last_step(struct small_run *run, size_t steps, const char *batch, const char *shots)
{
    size_t n;
    float *first = coder_after(run, steps - 2, batch, shots, &n),
          *second = coder_after(run, steps - 1, batch, shots, &n), *third = coder_after(run, steps, batch, shots, &n);
    return sqrt(plain_gap(second, third, n) / plain_gap(first, second, n));
}

/* After ten epochs a step is a tenth of the one before, as Adam's steps are of the size of their rate. A batch of all images is an
 * epoch; as in the public code, few images have the epochs of the task's 12, three batches each. */
RUN_TEST(the_rate_falls_every_ten_epochs, NULL)
{
    double all = last_step(run, 11, "selector.batch=1000", "data.shots=0"),
           few = last_step(run, 31, "selector.batch=4", "data.shots=1");
    assert_true(all > 0.05 && all < 0.2 && few > 0.05 && few < 0.2);
    assert_true(last_step(run, 11, "selector.batch=4", "data.shots=1") > 0.5);
}

/* --- Images of no task --- */

/* A folder of pictures; selector.unrelated names it. */
static const char *draw_foreign(const struct small_run *run, unsigned pictures)
{
    for (unsigned i = 0; i < pictures; i++)
        scratch_write_png(&run->scratch, small_run_format("foreign/%u.png", i), 20, 17, 0x070301u * (i + 1));
    return small_run_format("selector.unrelated=%s", small_run_file(run, "foreign"));
}

/* The autoencoder of a folder's images finds them nearer than that of a task does. */
RUN_TEST(a_folder_of_unrelated_images_competes, NULL)
{
    enum { PICTURES = 8 };
    struct dataset *dataset;
    float means[PICTURES * 64], own[PICTURES], other[PICTURES];
    small_run_reopen(run, 1, WORDS(draw_foreign(run, PICTURES)));
    struct selector *selector = small_run_selector(run);
    must(selector_train(selector, &run->experiment->data.tasks[0], NULL, &error));
    assert_true(selector_wants(selector, 0) && selector_wants(selector, SMALL_RUN_TASKS) &&
                !selector_wants(selector, 1));
    must(dataset_of_images(&dataset, small_run_file(run, "foreign"), &error));
    must(frozen_features(&run->experiment->model, &run->experiment->data, dataset, SPLIT_TRAIN, NULL, PICTURES, means,
                         NULL, NULL, &error));
    struct selector_images images = {.n = PICTURES, .means = means};
    must(selector_errors(selector, 0, &images, own, &error));
    must(selector_errors(selector, SMALL_RUN_TASKS, &images, other, &error));
    for (size_t i = 0; i < PICTURES; i++)
        assert_true(other[i] < own[i]);
    dataset_close(dataset);
}

/* --- Files --- */

/* The errors of task 2's test images under tasks 0 and 1, and unrelated ones if there are any, of a selector. */
static void take_errors(struct selector *selector, float errors[3][12])
{
    const struct dataset *dataset = selector->data->tasks[2].dataset;
    static float means[12 * 64], features[12 * WIDTH];
    memset(errors, 0, 3 * sizeof *errors);
    must(
        frozen_features(selector->model, selector->data, dataset, SPLIT_TEST, NULL, 12, means, features, NULL, &error));
    struct selector_images images = {
        .n = 12, .means = means, .features = features, .dataset = dataset, .split = SPLIT_TEST};
    for (size_t k = 0; k < 2; k++)
        must(selector_errors(selector, k, &images, errors[k], &error));
    if (selector->unrelated)
        must(selector_errors(selector, selector->tasks, &images, errors[2], &error));
}

static void expect_same_selector(struct selector *found, const struct selector *expected, float errors[3][12])
{
    float again[3][12];
    assert_ptr_equal(found->kind, expected->kind);
    assert_int_equal(found->trained, 2);
    assert_memory_equal(found->thresholds, expected->thresholds, 2 * sizeof *found->thresholds);
    take_errors(found, again);
    assert_memory_equal(again, errors, sizeof again);
}

static void from_adapters(struct small_run *run, struct selector *selector, float errors[3][12])
{
    struct saved_adapters saved;
    struct selector *opened;
    must(saved_adapters_write(&run->experiment->model, &run->experiment->data, selector, 1,
                              small_run_file(run, "adapters"), &error));
    must(saved_adapters_open(&saved, small_run_file(run, "adapters"), &error));
    assert_string_equal(saved.metadata.selector, selector->kind->name);
    must(selector_open(&opened, &run->experiment->model, &run->experiment->data, saved.file, &saved.metadata, &error));
    expect_same_selector(opened, selector, errors);
    selector_destroy(opened);
    if (selector->kind == &selector_alexnet) { /* whose weights are elsewhere */
        run->experiment->model.settings.selector.alexnet = NULL;
        must_refuse(selector_open(&opened, &run->experiment->model, &run->experiment->data, saved.file, &saved.metadata,
                                  &error),
                    ERROR_ARGUMENT, "AlexNet", "--router");
    }
    saved_adapters_close(&saved);
}

/* After two tasks the state goes on from a resume file with the same bits, and the third task gives what it would have
 * given; and a file of adapters holds what choosing needs. */
static void a_kind_survives(struct small_run *run, const char *const *overrides)
{
    struct checkpoint_place place = {.task = 2, .rows = 77}, found_place;
    bool found;
    float errors[3][12];
    small_run_reopen(run, 1, overrides);
    struct run *e = run->experiment;
    struct selector *whole = small_run_selector(run), *restored = small_run_selector(run);
    for (size_t k = 0; k < 2; k++)
        must(selector_train(whole, &e->data.tasks[k], NULL, &error));
    if (whole->kind == &selector_alexnet)
        assert_true(whole->thresholds[0] == 0.0655f); /* as published */
    take_errors(whole, errors);
    must(checkpoint_save(e, whole, small_run_file(run, "resume"), &place, &error));
    must(checkpoint_load(e, restored, small_run_file(run, "resume"), &found_place, &found, &error));
    expect_same_selector(restored, whole, errors);
    must(selector_train(whole, &e->data.tasks[2], NULL, &error));
    must(selector_train(restored, &e->data.tasks[2], NULL, &error));
    assert_memory_equal(restored->thresholds, whole->thresholds, 3 * sizeof *whole->thresholds);
    must(checkpoint_load(e, restored, small_run_file(run, "resume"), &found_place, &found, &error));
    from_adapters(run, restored, errors);
}

RUN_TEST(every_kind_survives_a_stop_and_is_saved, NULL)
{
    struct alexnet_file file = alexnet_file_draw();
    must(alexnet_file_write(&file, small_run_file(run, "alexnet"), ALEXNET_FILE_TENSORS, &error));
    free(file.values);
    const char *weights = small_run_format("selector.alexnet=%s", small_run_file(run, "alexnet"));
    a_kind_survives(run, WORDS("selector.kind=clip", draw_foreign(run, 5)));
    a_kind_survives(run, WORDS("selector.kind=gaussian"));
    a_kind_survives(run, WORDS("selector.kind=task_gaussian"));
    a_kind_survives(run, WORDS("selector.kind=text"));
    a_kind_survives(
        run, WORDS("selector.kind=alexnet", weights, "selector.iterations=2", "selector.batch=3", "selector.code=2"));
}

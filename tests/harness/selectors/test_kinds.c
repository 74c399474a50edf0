/* What every kind of selector computes, and that resume files and files of adapters keep it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/heads/class_features.h"
#include "harness/run/checkpoint.h"
#include "harness/selectors/saved_adapters.h"
#include "harness/selectors/selectors.h"
#include "harness/train/frozen_features.h"
#include "tests/harness/small_run.h"
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

static void unit_row(const float *row, double *out)
{
    double squares = 0;
    for (size_t j = 0; j < WIDTH; j++)
        squares += (double)row[j] * (double)row[j];
    for (size_t j = 0; j < WIDTH; j++)
        out[j] = (double)row[j] / sqrt(squares);
}

/* What the selector is to know of the tasks so far, worked out here. */
struct expected {
    size_t images;
    double scatter[WIDTH][WIDTH], means[2][CLASSES][WIDTH];
};

static void expect_task(struct expected *x, size_t task, const float *features, const int32_t *labels)
{
    double row[WIDTH];
    size_t counts[CLASSES] = {0};
    for (size_t i = 0; i < FIT; i++) {
        unit_row(features + i * WIDTH, row);
        counts[labels[i]]++;
        for (size_t j = 0; j < WIDTH; j++)
            x->means[task][labels[i]][j] += row[j];
    }
    for (size_t c = 0; c < task + 2; c++)
        for (size_t j = 0; j < WIDTH; j++)
            x->means[task][c][j] /= (double)counts[c];
    for (size_t i = 0; i < FIT; i++) {
        unit_row(features + i * WIDTH, row);
        for (size_t j = 0; j < WIDTH; j++)
            for (size_t l = 0; l < WIDTH; l++)
                x->scatter[j][l] += (row[j] - x->means[task][labels[i]][j]) * (row[l] - x->means[task][labels[i]][l]);
    }
    x->images += FIT;
}

/* gapᵀ covariance⁻¹ gap by elimination without pivots, which leaves the determinant's factors on the diagonal. */
static double quadratic(double covariance[WIDTH][WIDTH], const double *gap, double *log_determinant)
{
    double m[WIDTH][WIDTH + 1], total = 0;
    for (size_t i = 0; i < WIDTH; i++) {
        memcpy(m[i], covariance[i], sizeof covariance[i]);
        m[i][WIDTH] = gap[i];
    }
    *log_determinant = 0;
    for (size_t i = 0; i < WIDTH; i++) {
        *log_determinant += log(m[i][i]);
        for (size_t k = 0; k < WIDTH; k++)
            for (size_t j = WIDTH + 1; k != i && j-- > i;)
                m[k][j] -= m[k][i] / m[i][i] * m[i][j];
    }
    for (size_t i = 0; i < WIDTH; i++)
        total += gap[i] * m[i][WIDTH] / m[i][i];
    return total;
}

static double mahalanobis(const struct expected *x, double shrinkage, const double *gap)
{
    double covariance[WIDTH][WIDTH], trace = 0, ignored;
    for (size_t i = 0; i < WIDTH; i++)
        trace += x->scatter[i][i] / (double)x->images;
    for (size_t i = 0; i < WIDTH; i++)
        for (size_t j = 0; j < WIDTH; j++)
            covariance[i][j] =
                (1 - shrinkage) * x->scatter[i][j] / (double)x->images + (i == j) * shrinkage * trace / WIDTH;
    return quadratic(covariance, gap, &ignored);
}

static double nearest_mean(const struct expected *x, size_t task, double shrinkage, const float *features)
{
    double row[WIDTH], least = INFINITY;
    unit_row(features, row);
    for (size_t c = 0; c < task + 2; c++) {
        double gap[WIDTH];
        for (size_t j = 0; j < WIDTH; j++)
            gap[j] = row[j] - x->means[task][c][j];
        least = fmin(least, mahalanobis(x, shrinkage, gap));
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

/* Class means of each task, one covariance of all tasks so far: errors and thresholds of the first task are others after
 * the second. */
RUN_TEST(gaussian_is_the_distance_to_the_nearest_class_mean, "selector.kind=gaussian", "selector.shrinkage=0.2",
         "selector.quantile=1", NULL)
{
    struct selector *selector = small_run_selector(run);
    static float features[2][(FIT + HELD_OUT) * WIDTH];
    int32_t labels[FIT + HELD_OUT];
    struct expected x = {0};
    float errors[HELD_OUT], before = 0;
    for (size_t task = 0; task < 2; task++) {
        fit(selector, task, features[task], labels);
        expect_task(&x, task, features[task], labels);
        for (size_t k = 0; k <= task; k++) {
            const float *held_out = features[k] + (size_t)FIT * WIDTH;
            double largest = 0;
            must(selector_errors(selector, k, &(struct selector_images){.n = HELD_OUT, .features = held_out}, errors,
                                 &error));
            for (size_t i = 0; i < HELD_OUT; i++) {
                double expected = nearest_mean(&x, k, 0.2, held_out + i * WIDTH);
                largest = fmax(largest, expected);
                if (fabs((double)errors[i] - expected) > 1e-4 * expected)
                    fail_msg("task %zu, row %zu: expected %g, found %g", k, i, expected, (double)errors[i]);
            }
            assert_true(fabs((double)selector->thresholds[k] - largest) < 1e-4 * largest);
        }
        assert_true(task == 0 || (selector_errors_changed(selector, 1) && selector->thresholds[0] != before));
        before = selector->thresholds[0];
    }
}

RUN_TEST(a_covariance_of_too_few_images_is_refused, "selector.kind=gaussian", "selector.shrinkage=0", NULL)
{
    struct selector *selector = small_run_selector(run);
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
    float errors[HELD_OUT];
    for (size_t task = 0; task < 2; task++) {
        double mean[WIDTH] = {0}, covariance[WIDTH][WIDTH] = {{0}}, row[WIDTH];
        fit(selector, task, features, labels);
        assert_true(selector->thresholds[task] == 1e9f);
        for (size_t i = 0; i < FIT; i++) {
            unit_row(features + i * WIDTH, row);
            for (size_t j = 0; j < WIDTH; j++)
                mean[j] += row[j] / FIT;
        }
        for (size_t i = 0; i < FIT; i++) {
            unit_row(features + i * WIDTH, row);
            for (size_t j = 0; j < WIDTH * WIDTH; j++)
                covariance[j / WIDTH][j % WIDTH] +=
                    (row[j / WIDTH] - mean[j / WIDTH]) * (row[j % WIDTH] - mean[j % WIDTH]) / (FIT - 1);
        }
        for (size_t j = 0; j < WIDTH; j++)
            covariance[j][j] += 1e-7;
        const float *held_out = features + (size_t)FIT * WIDTH;
        must(selector_errors(selector, task, &(struct selector_images){.n = HELD_OUT, .features = held_out}, errors,
                             &error));
        for (size_t i = 0; i < HELD_OUT; i++) { /* −log N of a unit row */
            double expected;
            unit_row(held_out + i * WIDTH, row);
            for (size_t j = 0; j < WIDTH; j++)
                row[j] -= mean[j];
            double distance = quadratic(covariance, row, &expected);
            expected = (WIDTH * log(6.283185307179586) + expected + distance) / 2;
            if (fabs((double)errors[i] - expected) > 1e-3 * fabs(expected) + 1e-3)
                fail_msg("task %zu, row %zu: expected %g, found %g", task, i, expected, (double)errors[i]);
        }
    }
}

/* --- Text --- */

/* Adapters that change what the text tower computes, as after training. */
static void move_adapters(struct small_run *run)
{
    struct run *e = run->experiment;
    struct parameters *group = e->model.adapters->towers[TOWER_TEXT].parameters;
    float *values = small_run_keep(malloc(group->values_count * sizeof *values));
    struct rng rng = rng_make(9, RNG_TEST, 77, 0);
    for (size_t i = 0; i < group->values_count; i++)
        values[i] = rng_normal(&rng, i);
    must(e->model.backend->ops->upload(e->model.backend, parameters_write_all(group), values,
                                       group->values_count * sizeof *values, &error));
}

/* Of the training images, among whose errors the threshold is. */
RUN_TEST(text_is_the_cosine_to_the_nearest_class_name, "selector.kind=text", "selector.quantile=0", NULL)
{
    enum { N = 24 };
    struct selector *selector;
    struct run *e = run->experiment;
    const struct task *task = &e->data.tasks[2];
    float means[N * 64], features[N * WIDTH], errors[N];
    size_t classes = dataset_classes(task->dataset), found = 0;
    struct tensor names;
    move_adapters(run); /* which are none of its business */
    selector = small_run_selector(run);
    must(selector_train(selector, task, NULL, &error));
    must(frozen_features(&e->model, &e->data, task->dataset, SPLIT_TRAIN, NULL, N, means, features, NULL, &error));
    must(selector_errors(selector, 2, &(struct selector_images){.n = N, .features = features}, errors, &error));
    must(class_features(&e->model, task, -1, &e->model.task_memory, NULL, &names, &error));
    float *text = small_run_values(run, names.data, classes * WIDTH);
    for (size_t i = 0; i < N; i++) {
        double row[WIDTH], most = -1;
        unit_row(features + i * WIDTH, row);
        for (size_t c = 0; c < classes; c++) {
            double cosine = 0;
            for (size_t j = 0; j < WIDTH; j++)
                cosine += row[j] * (double)text[c * WIDTH + j];
            most = fmax(most, cosine);
        }
        if (fabs((double)errors[i] - (1 - most)) > 1e-5)
            fail_msg("image %zu: expected %g, found %g", i, 1 - most, (double)errors[i]);
        found += fabsf(errors[i] - selector->thresholds[2]) < 1e-6f;
    }
    assert_true(found > 0);
}

/* --- Autoencoders --- */

static float *coder_after(struct small_run *run, size_t iterations, const char *batch, const char *shots, size_t *n)
{
    struct selector *selector;
    small_run_reopen(run, 1,
                     WORDS(small_run_format("selector.iterations=%zu", iterations), batch, shots, "selector.l2=0"));
    selector = small_run_selector(run);
    must(selector_train(selector, &run->experiment->data.tasks[0], NULL, &error));
    *n = selector->coders[0]->parameters->values_count;
    return small_run_group(selector->coders[0]->parameters);
}

static double mean_step(const float *from, const float *to, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += fabs((double)to[i] - (double)from[i]);
    return total / (double)n;
}

/* The last of `steps` steps, as a share of the one before. */
static double last_step(struct small_run *run, size_t steps, const char *batch, const char *shots)
{
    size_t n;
    float *first = coder_after(run, steps - 2, batch, shots, &n),
          *second = coder_after(run, steps - 1, batch, shots, &n), *third = coder_after(run, steps, batch, shots, &n);
    return mean_step(second, third, n) / mean_step(first, second, n);
}

/* A step is an epoch here: the eleventh is a tenth of the tenth, as Adam's steps are of the size of their rate. */
RUN_TEST(the_rate_falls_every_ten_epochs, NULL)
{
    double ratio = last_step(run, 11, "selector.batch=1000", "data.shots=0");
    assert_true(ratio > 0.05 && ratio < 0.2);
}

/* As in the public code, an epoch is one of the task's 12 images, three batches, however few are trained on. */
RUN_TEST(few_images_have_the_epochs_of_all, NULL)
{
    assert_true(last_step(run, 11, "selector.batch=4", "data.shots=1") > 0.5);
    double ratio = last_step(run, 31, "selector.batch=4", "data.shots=1");
    assert_true(ratio > 0.05 && ratio < 0.2);
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
    struct selector *selector;
    struct dataset *dataset;
    float means[PICTURES * 64], own[PICTURES], other[PICTURES];
    small_run_reopen(run, 1, WORDS(draw_foreign(run, PICTURES)));
    selector = small_run_selector(run);
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
    must_refuse(small_run_try(run, 1, WORDS(draw_foreign(run, PICTURES), "selector.kind=gaussian")), ERROR_ARGUMENT,
                "selector.unrelated", "gaussian");
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
    struct selector *whole, *restored;
    struct checkpoint_place place = {2, 0, 77}, found_place;
    bool found;
    float errors[3][12];
    small_run_reopen(run, 1, overrides);
    struct run *e = run->experiment;
    whole = small_run_selector(run);
    for (size_t k = 0; k < 2; k++)
        must(selector_train(whole, &e->data.tasks[k], NULL, &error));
    if (whole->kind == &selector_alexnet)
        assert_true(whole->thresholds[0] == 0.0655f); /* as published */
    take_errors(whole, errors);
    must(checkpoint_save(e, whole, small_run_file(run, "resume"), &place, &error));
    restored = small_run_selector(run);
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
    const char *folder = draw_foreign(run, 5), *weights;
    struct alexnet_file file = alexnet_file_draw();
    must(alexnet_file_write(&file, small_run_file(run, "alexnet"), ALEXNET_FILE_TENSORS, &error));
    free(file.values);
    weights = small_run_format("selector.alexnet=%s", small_run_file(run, "alexnet"));
    a_kind_survives(run, WORDS("selector.kind=clip", folder));
    a_kind_survives(run, WORDS("selector.kind=gaussian"));
    a_kind_survives(run, WORDS("selector.kind=task_gaussian"));
    a_kind_survives(run, WORDS("selector.kind=text"));
    a_kind_survives(
        run, WORDS("selector.kind=alexnet", weights, "selector.iterations=2", "selector.batch=3", "selector.code=2"));
}

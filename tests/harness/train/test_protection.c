/* Methods that protect earlier tasks: what defines each of them, and several GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/methods/guided.h"
#include "harness/train/batches.h"
#include "harness/train/exemplars.h"
#include "harness/train/frozen_features.h"
#include "tests/harness/small_run.h"
#include "tests/harness/train/plain.h"

enum { ITERATIONS = 6 };

static size_t size_of(const struct small_run *run)
{
    return run->experiment->model.clip->parameters->values_count;
}

static float *weights_of(const struct small_run *run)
{
    return small_run_group(run->experiment->model.clip->parameters);
}

/* Losses of training a task, and the weights after its first iteration. */
struct trace {
    struct small_training training;
    float *after_first;
};

static void keep_after_first(struct small_training *training)
{
    if (training->count == 1)
        ((struct trace *)training)->after_first = weights_of(training->run);
}

static void train(struct small_run *run, size_t task, struct small_training *training)
{
    *training = (struct small_training){0};
    must(small_run_train(run, task, training));
}

static void restart_from(struct small_run *run, const char *const *overrides, const float *weights)
{
    small_run_reopen(run, 1, overrides);
    struct parameters *group = run->experiment->model.clip->parameters;
    must(group->backend->ops->upload(group->backend, parameters_write_all(group), weights, size_of(run) * sizeof(float),
                                     &error));
}

/* --- l2 --- */

/* The second task with and without the penalty, from the same weights: the first iteration is the same, since the
 * penalty begins at 0; from there on the loss is larger by it. */
RUN_TEST(l2_pulls_to_the_start_of_the_task, "method.name=l2", "method.l2=20", NULL)
{
    const double strength = 20;
    struct trace held = {.training.look = keep_after_first}, loose = held;
    must(small_run_train(run, 0, NULL));
    float *start = weights_of(run);
    must(small_run_train(run, 1, &held.training));
    float *held_end = weights_of(run);
    restart_from(run, WORDS("method.name=l2", "method.l2=0"), start);
    must(small_run_train(run, 1, &loose.training));
    size_t n = size_of(run);
    assert_memory_equal(held.after_first, loose.after_first, n * sizeof(float));
    assert_true(held.training.loss[0] == loose.training.loss[0]);
    double penalty = strength * plain_gap(held.after_first, start, n),
           found = held.training.loss[1] - loose.training.loss[1];
    assert_true(penalty > 0.01);
    if (!(fabs(found - penalty) <= 1e-5 * (1 + penalty)))
        fail_msg("expected a penalty of %.7f, found %.7f", penalty, found);
    assert_true(plain_gap(held_end, start, n) < 0.9 * plain_gap(weights_of(run), start, n));
}

/* --- ewc --- */

/* What before_update of ewc gets and leaves, every iteration of three tasks. */
struct watched {
    const struct method *real;
    struct small_run *run;
    double *fisher, *squares; /* as the formula has them, of earlier tasks and of this one */
    float *anchor;
    size_t task, counted;
    double largest;
};

static struct watched watched;

static double loss_now(const struct method_run *run)
{
    float loss;
    struct backend *backend = run->model->backend;
    must(backend->ops->download(backend, &loss, run->model->loss, sizeof loss, &error));
    return (double)loss;
}

static void expect_penalty(const struct method_run *run, const float *before, double loss)
{
    enum { LAMBDA = 5000 };
    size_t n = size_of(watched.run);
    float *weights = weights_of(watched.run),
          *gradient = small_run_values(watched.run, run->model->clip->parameters->gradients, n);
    double penalty = 0, wrong = 0, size = 0;
    for (size_t i = 0; watched.task > 0 && i < n; i++) {
        double gap = (double)weights[i] - (double)watched.anchor[i], pull = LAMBDA * watched.fisher[i] * gap;
        penalty += LAMBDA / 2.0 * watched.fisher[i] * gap * gap;
        wrong += pow((double)gradient[i] - (double)before[i] - pull, 2);
        size += pow(pull, 2) + 1e-6 * pow((double)before[i], 2);
    }
    double found = loss_now(run) - loss;
    if (!(fabs(found - penalty) <= 1e-5 * (1 + penalty)) || !(wrong <= 1e-6 * size))
        fail_msg("task %zu: expected a penalty of %.7f, found %.7f; gradients differ by %g of %g", watched.task,
                 penalty, found, sqrt(wrong), sqrt(size));
    watched.largest = fmax(watched.largest, penalty);
}

static status watch(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    size_t n = size_of(watched.run);
    double loss = loss_now(run);
    float *before = small_run_values(watched.run, run->model->clip->parameters->gradients, n);
    status result = watched.real->before_update(run, task, iteration, failure);
    expect_penalty(run, before, loss);
    for (size_t i = 0; iteration > 2 && i < n; i++)
        watched.squares[i] += pow((double)before[i], 2);
    watched.counted += iteration > 2;
    return result;
}

RUN_TEST(ewc_holds_what_earlier_tasks_depend_on, "method.name=ewc", "method.lambda=5000", "method.gamma=0.5",
         "method.fisher_iterations=4", NULL)
{
    struct run *e = run->experiment;
    struct method method = *e->model.settings.method;
    size_t n = size_of(run);
    watched = (struct watched){.real = e->model.settings.method,
                               .run = run,
                               .fisher = small_run_keep(calloc(n, sizeof(double))),
                               .squares = small_run_keep(calloc(n, sizeof(double)))};
    method.before_update = watch;
    e->model.settings.method = &method;
    for (; watched.task < SMALL_RUN_TASKS; watched.task++) {
        struct small_training t;
        train(run, watched.task, &t);
        assert_int_equal(watched.counted, 4);
        for (size_t i = 0; i < n; i++) {
            watched.fisher[i] = 0.5 * watched.fisher[i] + watched.squares[i] / 4;
            watched.squares[i] = 0;
        }
        watched.counted = 0;
        watched.anchor = weights_of(run);
    }
    assert_true(watched.largest > 0.01);
    e->model.settings.method = watched.real;
}

/* --- icarl --- */

enum { CAPACITY = 7, REFERENCES = 5, R = 16 };

#define ICARL "method.name=icarl", "method.exemplars=7", "method.reference_batch=5"

/* What the method keeps, read as a resume file has it. */
static size_t kept(struct small_run *run, int32_t counts[SMALL_RUN_TASKS], int32_t items[SMALL_RUN_TASKS][CAPACITY])
{
    struct run *e = run->experiment;
    struct archive *archive;
    int32_t tasks;
    archive_create(&archive);
    struct serializer serializer = {.archive = archive, .backend = e->model.backend, .saving = true};
    must(e->model.settings.method->keep(&e->method, &serializer, &error));
    must(archive_get(archive, "exemplars.tasks", SAFETENSOR_I32, 1, &tasks, &error));
    must(archive_get(archive, "exemplars.counts", SAFETENSOR_I32, (size_t)tasks, counts, &error));
    for (int32_t t = 0; t < tasks; t++) {
        char name[32];
        snprintf(name, sizeof name, "exemplars.%d", t);
        must(archive_get(archive, name, SAFETENSOR_I32, (size_t)counts[t], items[t], &error));
    }
    archive_close(archive);
    return (size_t)tasks;
}

/* Herded on the model as it is now. */
static void herded(struct small_run *run, size_t task, size_t count, uint32_t *picks)
{
    struct run *e = run->experiment;
    const struct dataset *dataset = e->data.tasks[task].dataset;
    size_t n = dataset_size(dataset, SPLIT_TRAIN), embed = e->model.clip->dimensions.embed;
    float *features = small_run_keep(malloc(n * embed * sizeof *features)),
          *means = small_run_keep(malloc(n * e->model.clip->dimensions.image_width * sizeof *means));
    must(frozen_features(&e->model, &e->data, dataset, SPLIT_TRAIN, NULL, n, means, features, NULL, &error));
    exemplars_herd(features, n, embed, count, picks, NULL);
}

RUN_TEST(icarl_keeps_herded_images, ICARL, NULL)
{
    int32_t counts[SMALL_RUN_TASKS], items[SMALL_RUN_TASKS][CAPACITY];
    uint32_t picks[SMALL_RUN_TASKS][CAPACITY];
    for (size_t task = 0; task < SMALL_RUN_TASKS; task++) {
        struct small_training t;
        size_t share = CAPACITY / (task + 1);
        train(run, task, &t);
        herded(run, task, share, picks[task]);
        assert_int_equal(kept(run, counts, items), task + 1);
        for (size_t i = 0; i <= task; i++) {
            assert_int_equal(counts[i], share);
            assert_memory_equal(items[i], picks[i], share * sizeof **items);
        }
    }
}

static const struct method *real;
static size_t tasks_before, batches_seen;

/* The reference images of an iteration are exemplars in order, beginning again after the last one. */
static status look_at_references(struct method_run *run, const struct task *task, const struct batch *batch,
                                 struct error *failure)
{
    const struct guided *g = run->state;
    const struct model *model = run->model;
    const struct exemplars *exemplars = (const struct exemplars *)(g + 1);
    uint8_t found[REFERENCES][R * R * 3], expected[R * R * 3];
    size_t count = exemplars_count(exemplars);
    assert_int_equal(count, CAPACITY / tasks_before * tasks_before);
    must(model->backend->ops->download(model->backend, found, g->images.batch.data, sizeof found, &error));
    for (size_t i = 0; i < REFERENCES; i++) {
        size_t of;
        uint32_t item;
        struct image image;
        exemplars_at(exemplars, (batches_seen * REFERENCES + i) % count, &of, &item);
        must(dataset_read(run->data->tasks[of].dataset, SPLIT_TRAIN, item, &image, NULL, &error));
        must(image_evaluation_crop(&image, R, expected, &error));
        assert_memory_equal(found[i], expected, sizeof expected);
        image_free(&image);
    }
    batches_seen++;
    return real->loss(run, task, batch, failure);
}

/* The first task is continual_ft's; the others differ from it, because they are distilled. */
RUN_TEST(icarl_refers_to_the_tasks_before, "method.name=continual_ft", NULL)
{
    struct small_training t, plain;
    train(run, 0, &plain);
    float *after_first_task = weights_of(run);
    train(run, 1, &plain);
    small_run_reopen(run, 1, WORDS(ICARL));
    train(run, 0, &t);
    size_t n = size_of(run);
    assert_memory_equal(weights_of(run), after_first_task, n * sizeof(float));
    real = run->experiment->model.settings.method;
    struct method method = *real;
    method.loss = look_at_references;
    method.loss_repeats = false; /* it looks */
    run->experiment->model.settings.method = &method;
    for (tasks_before = 1; tasks_before < SMALL_RUN_TASKS; tasks_before++) {
        batches_seen = 0;
        train(run, tasks_before, &t);
        assert_int_equal(batches_seen, ITERATIONS);
        assert_true(tasks_before > 1 || t.loss[0] > plain.loss[0] + 0.01);
    }
    run->experiment->model.settings.method = real;
}

/* --- replay --- */

#define REPLAY "method.name=replay", "method.exemplars=7", "method.replayed=5"

/* In the first iteration of the second task the loss is continual_ft's and the cross-entropy of exemplars of the first,
 * which has 2 classes and not 3; it is what is left when the second task's own cross-entropy is taken away. */
static status expect_a_term(struct method_run *run, const struct task *task, const struct batch *batch,
                            struct error *failure)
{
    struct model *model = run->model;
    size_t n = size_of(watched.run), bytes = n * sizeof(float);
    struct backend *backend = model->backend;
    float *gradients = model->clip->parameters->gradients, zero = 0;
    struct head_classes own = model->classes, first;
    struct arena_mark mark = arena_mark(run->step_memory);
    must(classification_loss(run, task, batch, failure));
    double alone = loss_now(run);
    must(backend->ops->zero(backend, gradients, bytes, failure));
    must(backend->ops->upload(backend, model->loss, &zero, sizeof zero, failure));
    arena_release(run->step_memory, mark);
    must(real->loss(run, task, batch, failure));
    double term = loss_now(run) - alone;
    assert_ptr_equal(model->classes.texts.tokens, own.texts.tokens);
    if (batches_seen++ > 0)
        return OK;
    /* of the whole images; crops that keep nine tenths of one hardly change its loss */
    const struct dataset *dataset = run->data->tasks[0].dataset;
    int32_t counts[SMALL_RUN_TASKS], items[SMALL_RUN_TASKS][CAPACITY], labels[REFERENCES];
    uint8_t pixels[REFERENCES][R * R * 3];
    assert_int_equal(kept(watched.run, counts, items), 1);
    for (size_t i = 0; i < REFERENCES; i++) {
        struct image image;
        must(dataset_read(dataset, SPLIT_TRAIN, (size_t)items[0][i], &image, &labels[i], failure));
        must(image_evaluation_crop(&image, R, pixels[i], failure));
        image_free(&image);
    }
    struct tensor images, places;
    must(tensor_take(&images, run->step_memory, TENSOR_U8, "images", 4, (size_t[]){REFERENCES, R, R, 3}, failure));
    must(tensor_take(&places, run->step_memory, TENSOR_I32, "labels", 1, (size_t[]){REFERENCES}, failure));
    must(backend->ops->upload(backend, images.data, pixels, sizeof pixels, failure));
    must(backend->ops->upload(backend, places.data, labels, sizeof labels, failure));
    must(model->head->begin_task(model, &run->data->tasks[0], 0, run->step_memory, &first, failure));
    float *before = small_run_values(watched.run, gradients, n);
    double together = loss_now(run);
    model->classes = first;
    must(classification_loss(
        run, &run->data->tasks[0],
        &(struct batch){.images = images, .labels.labels = places.data, .count = REFERENCES, .total = REFERENCES},
        failure));
    model->classes = own;
    double expected = loss_now(run) - together;
    if (!(fabs(term - expected) <= watched.largest))
        fail_msg("the loss of exemplars: expected %.6f, found %.6f", expected, term);
    must(backend->ops->upload(backend, gradients, before, bytes, failure));
    return OK;
}

RUN_TEST(replay_trains_on_the_tasks_before, REPLAY, NULL)
{
    struct small_training t;
    train(run, 0, &t);
    real = run->experiment->model.settings.method;
    watched = (struct watched){.run = run, .largest = 0.05};
    batches_seen = 0;
    struct method method = *real;
    method.loss = expect_a_term;
    run->experiment->model.settings.method = &method;
    train(run, 1, &t);
    assert_int_equal(batches_seen, ITERATIONS);
    run->experiment->model.settings.method = real;
}

/* Images of several tasks in one list: each with its own pixels and label. */
RUN_TEST(listed_images_are_their_own, REPLAY, NULL)
{
    struct dataset *list;
    const struct task *tasks = run->experiment->data.tasks;
    const struct dataset_place places[] = {
        {tasks[2].dataset, 23}, {tasks[0].dataset, 7}, {tasks[1].dataset, 17}, {tasks[2].dataset, 0}};
    must(dataset_of_items(&list, places, 4, &error));
    assert_int_equal(dataset_size(list, SPLIT_TRAIN), 4);
    for (size_t i = 0; i < 4; i++) {
        struct image found, expected;
        int label[2];
        must(dataset_read(list, SPLIT_TRAIN, i, &found, &label[0], &error));
        must(dataset_read(places[i].dataset, SPLIT_TRAIN, places[i].item, &expected, &label[1], &error));
        assert_int_equal(label[0], label[1]);
        assert_int_equal(dataset_label(list, SPLIT_TRAIN, i), label[1]);
        assert_memory_equal(found.pixels, expected.pixels, (size_t)found.width * (size_t)found.height * 3);
        assert_true(i != 0 || label[1] != 0);
        image_free(&found);
        image_free(&expected);
    }
    dataset_close(list);
}

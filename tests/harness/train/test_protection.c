/* Methods that protect earlier tasks: what defines each of them, and several GPUs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/methods/weights/guided.h"
#include "harness/train/batches.h"
#include "harness/train/exemplars.h"
#include "harness/train/image_pass.h"
#include "tests/harness/train/outcome.h"

enum { ITERATIONS = 6 };

static float *weights_of(const struct small_run *run)
{
    return small_run_group(run->experiment->model.clip->parameters);
}

/* --- l2 and ewc --- */

/* Strength · Σ importance (θ − anchor)² and its gradient have to be added, by the hook of the method that is called here. */
static struct {
    const struct method *real;
    struct small_run *run;
    double strength, *importance, *squares; /* squares: of the gradients of this task, after the first two iterations */
    float *anchor;                          /* NULL: nothing is added */
    double largest;
} watched;

static double loss_now(const struct method_run *run)
{
    float loss;
    struct backend *backend = run->model->backend;
    must(backend->ops->download(backend, &loss, run->model->loss, sizeof loss, &error));
    return (double)loss;
}

static void expect_penalty(const struct method_run *run, double loss, const float *before)
{
    const struct parameters *group = run->model->clip->parameters;
    size_t n = group->values_count;
    float *weights = small_run_group(group), *gradient = small_run_values(watched.run, group->gradients, n);
    double penalty = 0, wrong = 0, size = 0;
    for (size_t i = 0; watched.anchor != NULL && i < n; i++) {
        double gap = (double)weights[i] - (double)watched.anchor[i],
               pull = watched.strength * watched.importance[i] * gap;
        penalty += pull * gap;
        wrong += pow((double)gradient[i] - (double)before[i] - 2 * pull, 2);
        size += pow(2 * pull, 2) + 1e-6 * pow((double)before[i], 2);
    }
    double found = loss_now(run) - loss;
    if (!(fabs(found - penalty) <= 1e-5 * (1 + penalty)) || !(wrong <= 1e-6 * size))
        fail_msg("expected a penalty of %.7f, found %.7f; gradients differ by %g of %g", penalty, found, sqrt(wrong),
                 sqrt(size));
    watched.largest = fmax(watched.largest, penalty);
}

/* The cross-entropy alone, and then with the penalty. */
static status watch_loss(struct method_run *run, const struct task *task, const struct batch *batch,
                         struct error *failure)
{
    struct backend *backend = run->model->backend;
    const struct parameters *group = run->model->clip->parameters;
    struct arena_mark mark = arena_mark(run->step_memory);
    TRY(classification_loss(run, task, batch, failure));
    double loss = loss_now(run);
    float *before = small_run_values(watched.run, group->gradients, group->values_count);
    TRY(backend->ops->zero(backend, group->gradients, group->values_count * sizeof *before, failure));
    TRY(backend->ops->zero(backend, run->model->loss, sizeof *before, failure));
    arena_release(run->step_memory, mark);
    TRY(watched.real->loss(run, task, batch, failure));
    expect_penalty(run, loss, before);
    return OK;
}

static status watch_update(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    const struct parameters *group = run->model->clip->parameters;
    float *before = small_run_values(watched.run, group->gradients, group->values_count);
    double loss = loss_now(run);
    TRY(watched.real->before_update(run, task, iteration, failure));
    expect_penalty(run, loss, before);
    for (size_t i = 0; iteration > 2 && i < group->values_count; i++)
        watched.squares[i] += pow((double)before[i], 2);
    return OK;
}

static struct method *start_watching(struct small_run *run, double strength, size_t *n)
{
    *n = run->experiment->model.clip->parameters->values_count;
    memset(&watched, 0, sizeof watched);
    watched.run = run;
    watched.strength = strength;
    watched.importance = small_run_keep(calloc(*n, sizeof(double)));
    watched.squares = small_run_keep(calloc(*n, sizeof(double)));
    return change_method(run, &watched.real);
}

RUN_TEST(l2_pulls_to_the_start_of_the_task, "method.name=l2", "method.l2=20", NULL)
{
    size_t n;
    struct method *method = start_watching(run, 20, &n);
    method->loss = watch_loss;
    method->loss_repeats = false; /* it looks */
    for (size_t i = 0; i < n; i++)
        watched.importance[i] = 1;
    for (size_t task = 0; task < 2; task++) {
        watched.anchor = weights_of(run);
        learn(run, task);
    }
    assert_true(watched.largest > 0.01);
}

RUN_TEST(ewc_holds_what_earlier_tasks_depend_on, "method.name=ewc", "method.lambda=5000", "method.gamma=0.5",
         "method.fisher_iterations=4", NULL)
{
    size_t n;
    start_watching(run, 2500, &n)->before_update = watch_update;
    for (size_t task = 0; task < SMALL_RUN_TASKS; task++) {
        learn(run, task);
        for (size_t i = 0; i < n; i++) {
            watched.importance[i] = 0.5 * watched.importance[i] + watched.squares[i] / 4;
            watched.squares[i] = 0;
        }
        watched.anchor = weights_of(run);
    }
    assert_true(watched.largest > 0.01);
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
    for (int32_t t = 0; t < tasks; t++)
        must(archive_get(archive, small_run_format("exemplars.%d", t), SAFETENSOR_I32, (size_t)counts[t], items[t],
                         &error));
    archive_close(archive);
    return (size_t)tasks;
}

RUN_TEST(icarl_keeps_herded_images, ICARL, NULL)
{
    int32_t counts[SMALL_RUN_TASKS], items[SMALL_RUN_TASKS][CAPACITY];
    uint32_t picks[SMALL_RUN_TASKS][CAPACITY];
    struct run *e = run->experiment;
    for (size_t task = 0; task < SMALL_RUN_TASKS; task++) {
        float means[24 * 64], features[24 * 16]; /* of the model as it is then */
        const struct dataset *dataset = e->data.tasks[task].dataset;
        size_t share = CAPACITY / (task + 1), n = dataset_size(dataset, SPLIT_TRAIN);
        learn(run, task);
        must(frozen_features(&e->model, &e->data, dataset, SPLIT_TRAIN, NULL, n, means, features, NULL, &error));
        exemplars_herd(features, n, 16, share, picks[task], NULL);
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
    learn(run, 0);
    float *after_first_task = weights_of(run);
    double plain = learn(run, 1).loss[0];
    small_run_reopen(run, 1, WORDS(ICARL));
    learn(run, 0);
    assert_memory_equal(weights_of(run), after_first_task,
                        run->experiment->model.clip->parameters->values_count * sizeof(float));
    struct method *method = change_method(run, &real);
    method->loss = look_at_references;
    method->loss_repeats = false; /* it looks */
    for (tasks_before = 1; tasks_before < SMALL_RUN_TASKS; tasks_before++) {
        batches_seen = 0;
        double guided = learn(run, tasks_before).loss[0];
        assert_int_equal(batches_seen, ITERATIONS);
        assert_true(tasks_before > 1 || guided > plain + 0.01);
    }
}

/* --- replay --- */

#define REPLAY "method.name=replay", "method.exemplars=7", "method.replayed=5"

/* What the two losses of an iteration are of; operations have no context of their own, so there is one of these. */
static struct {
    const struct backend_ops *real;
    struct small_run *run;
    struct loader_settings settings; /* of the exemplars of all iterations */
    size_t images, losses;
    uint8_t pixels[REFERENCES * R * R * 3];
    int32_t labels[REFERENCES];
} replayed;

static status expect_exemplars(struct backend *backend, const struct patchify *arguments, struct error *failure)
{
    size_t iteration = replayed.images / 2;
    if (replayed.images++ % 2 == 1 && iteration < ITERATIONS) { /* device memory is the host's */
        read_batch(&replayed.settings, iteration, replayed.pixels, replayed.labels);
        assert_memory_equal(arguments->images->data, replayed.pixels, sizeof replayed.pixels);
    }
    return replayed.real->patchify(backend, arguments, failure);
}

/* Of both the mean; the classes of the second are those of the exemplars' task, each in turn. */
static status expect_labels(struct backend *backend, const struct cross_entropy *arguments, struct error *failure)
{
    const struct run *e = replayed.run->experiment;
    size_t task = replayed.losses % 2 == 0 ? 2 : replayed.losses / 2 % 2;
    assert_true(arguments->weight == 1 && arguments->loss == e->model.loss && arguments->dlogits.data != NULL);
    assert_int_equal(arguments->logits.columns, dataset_classes(e->data.tasks[task].dataset));
    if (replayed.losses++ % 2 == 1)
        assert_memory_equal(arguments->labels, replayed.labels, sizeof replayed.labels);
    return replayed.real->cross_entropy(backend, arguments, failure);
}

/* An image of a list has its own pixels and label. */
static void expect_listed(const struct dataset *list, size_t i, const struct dataset_place *place)
{
    struct image found, expected;
    int label[2];
    must(dataset_read(list, SPLIT_TRAIN, i, &found, &label[0], &error));
    must(dataset_read(place->dataset, SPLIT_TRAIN, place->item, &expected, &label[1], &error));
    assert_true(label[0] == label[1] && dataset_label(list, SPLIT_TRAIN, i) == label[1]);
    assert_memory_equal(found.pixels, expected.pixels, (size_t)found.width * (size_t)found.height * 3);
    image_free(&found);
    image_free(&expected);
}

RUN_TEST(replay_trains_on_the_tasks_before, REPLAY, NULL)
{
    int32_t counts[SMALL_RUN_TASKS], items[SMALL_RUN_TASKS][CAPACITY];
    struct run *e = run->experiment;
    const struct task *task = &e->data.tasks[2];
    struct dataset_place places[ITERATIONS * REFERENCES];
    struct dataset *list;
    learn(run, 0);
    learn(run, 1);
    assert_int_equal(kept(run, counts, items), 2);
    for (size_t i = 0; i < ITERATIONS * REFERENCES; i++) {
        size_t of = i / REFERENCES % 2, next = i / REFERENCES / 2 * REFERENCES + i % REFERENCES;
        places[i] = (struct dataset_place){e->data.tasks[of].dataset, (size_t)items[of][next % (size_t)counts[of]]};
    }
    list = dataset_of_items(places, ITERATIONS * REFERENCES);
    for (size_t i = 0; i < ITERATIONS * REFERENCES; i++)
        expect_listed(list, i, &places[i]);
    replayed.run = run;
    replayed.settings = (struct loader_settings){.dataset = list,
                                                 .split = SPLIT_TRAIN,
                                                 .resolution = R,
                                                 .batch = REFERENCES,
                                                 .augment = true,
                                                 .augmentation = task->settings.augmentation,
                                                 .seed = e->model.seed,
                                                 .task = (uint32_t)task->index};
    struct backend_ops *ops = change_operations(e->model.backend, &replayed.real);
    ops->patchify = expect_exemplars;
    ops->cross_entropy = expect_labels;
    learn(run, 2);
    assert_int_equal(replayed.losses, 2 * ITERATIONS);
    dataset_close(list);
}

#include "tests/harness/train/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/model/class_features.h"
#include "harness/model/model.h"
#include "harness/train/replicas.h"
#include "tests/harness/train/plain.h"

struct small_training learn(struct small_run *run, size_t task)
{
    struct small_training training = {0};
    must(small_run_train(run, task, &training));
    return training;
}

struct outcome outcome_of(const struct model *model, const char *name)
{
    struct outcome o = {.name = name};
    struct trained_group group;
    for (; trained_group_at(model, o.groups, &group); o.groups++) {
        o.n[o.groups] = group.parameters->values_count;
        o.values[o.groups] = small_run_group(group.parameters);
    }
    o.parts = o.groups;
    for (int t = 0; model->adapters != NULL && t < TOWERS; t++, o.parts++) {
        o.n[o.parts] = 2 * adapters_counts(model->adapters, (enum tower)t).n;
        o.values[o.parts] = small_run_keep(malloc((o.n[o.parts] + 1) * sizeof(int32_t)));
        must(adapters_read_counts_and_frozen(model->adapters, (enum tower)t, o.values[o.parts], &error));
    }
    return o;
}

static void expect_parts(const struct outcome *found, const struct outcome *expected, size_t first, size_t end)
{
    assert_true(found->groups == expected->groups && found->parts == expected->parts);
    for (size_t i = first; i < end; i++)
        if (found->n[i] != expected->n[i] || memcmp(found->values[i], expected->values[i], found->n[i] * 4) != 0)
            fail_msg("%s: other %s", found->name, i < found->groups ? "weights" : "choices of experts");
}

void expect_same(const struct outcome *found, const struct outcome *expected)
{
    expect_parts(found, expected, 0, found->parts);
    assert_memory_equal(found->steps.loss, expected->steps.loss, sizeof found->steps.loss);
}

static void expect_close(const struct outcome *found, const struct outcome *expected, double loss, double weights)
{
    for (size_t i = 0; i < found->steps.count; i++)
        if (!(fabs(found->steps.loss[i] - expected->steps.loss[i]) <= loss))
            fail_msg("%s: loss of iteration %zu: expected %.7f, found %.7f", found->name, i + 1,
                     expected->steps.loss[i], found->steps.loss[i]);
    expect_parts(found, expected, found->groups, found->parts);
    assert_int_equal(found->changes, expected->changes);
    for (size_t i = 0; i < found->groups; i++) {
        double squares = plain_gap(found->values[i], expected->values[i], found->n[i]),
               size = plain_dot(expected->values[i], expected->values[i], found->n[i]);
        if (!(sqrt(squares) <= weights * sqrt(size)))
            fail_msg("%s: weights differ by %.3g of their size", found->name, sqrt(squares / size));
    }
}

void expect_same_ranks(const struct small_run *run, size_t gpus)
{
    const struct model *model = &run->experiment->model;
    struct outcome leader = outcome_of(model, "leader");
    for (size_t i = 1; i < gpus && (model->adapters != NULL || model->settings.method->end_task == NULL); i++) {
        struct outcome rank = outcome_of(replicas_at(model->work.replicas, i)->model, "another rank");
        expect_parts(&rank, &leader, 0, leader.groups);
    }
    must(model->backend->ops->bind(model->backend, &error));
}

struct outcome outcome_train(struct small_run *run, const char *const *overrides, size_t gpus, size_t tasks)
{
    const char *words[24] = {small_run_format("run.gpus=%zu", gpus)}, *name = "";
    struct small_training steps = {0};
    for (size_t i = 0; overrides[i] != NULL; i++) {
        words[i + 1] = overrides[i];
        name = small_run_format("%s %s", name, overrides[i]);
    }
    small_run_reopen(run, 1, words);
    for (size_t task = 0; task < tasks; task++)
        steps = learn(run, task);
    struct outcome o = outcome_of(&run->experiment->model, name);
    expect_same_ranks(run, gpus);
    o.steps = steps;
    o.changes = run->experiment->method.changes.count;
    return o;
}

void expect_stop_between(struct small_run *run, const char *const *overrides, size_t iteration)
{
    struct outcome whole = outcome_train(run, overrides, 1, 2), parts;
    struct small_training part = {.stop_at = iteration};
    small_run_reopen(run, 1, overrides);
    must(small_run_train(run, 0, NULL));
    small_run_resume(run, 1, 0, overrides);
    assert_int_equal(small_run_train(run, 1, &part), ERROR_STOPPED);
    small_run_resume(run, 1, iteration, overrides);
    must(small_run_train(run, 1, &part));
    parts = outcome_of(&run->experiment->model, whole.name);
    parts.steps = part;
    expect_same(&parts, &whole);
}

void expect_ranks_unseen(struct small_run *run, const char *const *overrides, size_t gpus, double loss, double weights)
{
    if (small_run_gpus() < gpus)
        return;
    struct outcome alone = outcome_train(run, overrides, 1, 2), together = outcome_train(run, overrides, gpus, 2),
                   again = outcome_train(run, overrides, gpus, 2);
    if (loss > 0)
        expect_close(&together, &alone, loss, weights);
    expect_same(&again, &together);
}

void expect_as_computed(const struct evaluator *evaluator, size_t checkpoint, size_t j)
{
    struct evaluator *fresh;
    const struct test_set *set = &evaluator->sets[j];
    evaluator->model->settings.keep_features = false;
    must(evaluator_create(&fresh, evaluator->model, evaluator->data, evaluator->method, NULL, &error));
    must(evaluator_task(fresh, checkpoint, j, NULL, &error));
    evaluator->model->settings.keep_features = true;
    assert_memory_equal(set->predicted, fresh->sets[j].predicted, set->n * sizeof *set->predicted);
    assert_memory_equal(set->routed.features, fresh->sets[j].routed.features,
                        set->n * set->routed.embed * sizeof(float));
    evaluator_destroy(fresh);
}

struct backend_ops *change_operations(struct backend *backend, const struct backend_ops **before)
{
    struct backend_ops *changed = small_run_keep(malloc(sizeof *changed));
    *before = backend->ops;
    *changed = *backend->ops;
    backend->ops = changed;
    return changed;
}

struct method *change_method(struct small_run *run, const struct method **before)
{
    const struct method **method = &run->experiment->model.settings.method;
    struct method *changed = small_run_keep(malloc(sizeof *changed));
    *before = *method;
    *changed = **method;
    *method = changed;
    return changed;
}

float *take_class_features(struct small_run *run, const struct task *task, int router)
{
    struct model *model = &run->experiment->model;
    struct arena_mark mark = arena_mark(&model->task_memory);
    struct tensor features;
    must(class_features(model, task, router, &model->task_memory, NULL, &features, &error));
    float *values = small_run_values(run, features.data, features.shape[0] * features.shape[1]);
    arena_release(&model->task_memory, mark);
    return values;
}

size_t read_batch(const struct loader_settings *settings, uint64_t step, uint8_t *pixels, int32_t *labels)
{
    struct loader *loader;
    int32_t *read = xcalloc(settings->batch, sizeof *read);
    size_t count;
    must(loader_create(&loader, settings, &error));
    must(loader_read(loader, step, pixels, labels != NULL ? labels : read, NULL, NULL, &count, &error));
    loader_destroy(loader);
    free(read);
    return count;
}

struct batches *take_test_image(struct small_run *run, const struct task *task, size_t i, struct batch *batch)
{
    struct batches *batches;
    struct model *model = &run->experiment->model;
    struct loader_settings one = {.dataset = task->dataset,
                                  .split = SPLIT_TEST,
                                  .items = &(uint32_t){(uint32_t)i},
                                  .item_count = 1,
                                  .resolution = (int)model->clip->dimensions.resolution,
                                  .batch = 1};
    must(batches_open(&batches, model, &run->experiment->data, &one, 0, 1, &error));
    must(batches_take(batches, batch, &error));
    return batches;
}

/* Every method on low-rank deltas: stops and ranks are not seen; and what keep_lora and moram start with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/methods/methods.h"
#include "harness/run/checkpoint.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"
#include "tests/harness/small_run.h"

enum { ALL = 1000, WORDS = 8 };

static status stop_after(void *context, const struct step_report *report, struct error *failure)
{
    size_t *left = context;
    (void)report;
    return --*left > 0 ? OK : error_set(failure, ERROR_STOPPED, "stopped");
}

static status train(struct small_run *run, size_t task, size_t first, size_t count)
{
    struct run *e = run->experiment;
    return train_task(
        &(struct training){
            .run = &e->method, .task = &e->data.tasks[task], .first = first, .after = stop_after, .context = &count},
        &error);
}

/* Weights, in which deltas are merged, and deltas of a model behind one another. */
struct values {
    size_t n;
    float *list;
};

static struct values values_of(const struct model *model)
{
    const struct parameters *groups[2] = {model->clip->parameters, model->deltas->parameters};
    struct values v = {.n = groups[0]->values_count + groups[1]->values_count};
    v.list = malloc(v.n * sizeof *v.list);
    assert_non_null(v.list);
    must(model->backend->ops->bind(model->backend, &error));
    for (size_t i = 0, at = 0; i < 2; at += groups[i++]->values_count)
        must(model->backend->ops->download(model->backend, v.list + at, groups[i]->values,
                                           groups[i]->values_count * sizeof *v.list, &error));
    return v;
}

static void expect_same(const struct model *model, const struct values *expected, const char *what)
{
    struct values found = values_of(model);
    assert_int_equal(found.n, expected->n);
    if (memcmp(found.list, expected->list, found.n * sizeof *found.list) != 0)
        fail_msg("%s: %s: other bits", model->settings.method->name, what);
    free(found.list);
}

static bool trains_deltas(const struct method *method)
{
    struct options *options;
    must(options_create(&options, method->options, &error));
    bool does = method_groups(method, options) & GROUP_DELTAS;
    options_destroy(options);
    return does;
}

static void overrides_for(const char *words[WORDS], char name[48], const struct method *method, const char *gpus)
{
    const char *const all[WORDS] = {name,
                                    "delta.rank=4",
                                    "training.iterations=5",
                                    "training.learning_rate=1e-3",
                                    gpus,
                                    strcmp(method->name, "moram") == 0 ? "method.top_k=3" : NULL};
    snprintf(name, 48, "method.name=%s", method->name);
    memcpy(words, all, sizeof all);
}

/* Two tasks at once, and with a resume file after every iteration of the second. */
static void goes_on(struct small_run *run, const char *const *overrides)
{
    struct checkpoint_place place;
    bool found;
    small_run_reopen(run, 1, overrides);
    must(train(run, 0, 0, ALL));
    must(checkpoint_save(run->experiment, NULL, small_run_file(run, "resume"), &(struct checkpoint_place){1, 0, 0},
                         &error));
    must(train(run, 1, 0, ALL));
    struct values expected = values_of(&run->experiment->model);
    size_t iterations = run->experiment->data.tasks[1].settings.iterations;
    for (size_t i = 0; i < iterations; i++) {
        small_run_reopen(run, 1, overrides);
        must(checkpoint_load(run->experiment, NULL, small_run_file(run, "resume"), &place, &found, &error));
        assert_int_equal(place.iteration, i);
        if (i + 1 < iterations) {
            assert_int_equal(train(run, 1, i, 1), ERROR_STOPPED);
            must(checkpoint_save(run->experiment, NULL, small_run_file(run, "resume"),
                                 &(struct checkpoint_place){1, i + 1, 0}, &error));
        }
    }
    must(train(run, 1, iterations - 1, ALL));
    expect_same(&run->experiment->model, &expected, "with stops");
    bool leads = run->experiment->model.settings.method->end_task != NULL; /* the leader alone ends a task */
    for (size_t m = 1; run->experiment->model.work.replicas != NULL && !leads && m < 2; m++)
        expect_same(replicas_at(run->experiment->model.work.replicas, m)->model, &expected, "on another rank");
    free(expected.list);
}

static void methods_go_on(const char *gpus)
{
    struct small_run run;
    char name[48];
    size_t tried = 0;
    small_run_open(&run, 1, (const char *const[]){"method.name=continual_ft", NULL});
    for (size_t i = 0; method_at(i) != NULL; i++) {
        const char *words[WORDS];
        if (!trains_deltas(method_at(i)))
            continue;
        overrides_for(words, name, method_at(i), gpus);
        goes_on(&run, words);
        tried++;
    }
    assert_true(tried >= 2);
    small_run_close(&run);
}

TEST(stops_are_not_seen)
{
    methods_go_on("run.gpus=1");
}

TEST(ranks_agree)
{
    if (small_run_gpus() < 2)
        skip();
    methods_go_on("run.gpus=2");
}

/* --- The start of a task --- */

/* Features of an image of noise, the caller frees. */
static float *features_of(struct small_run *run)
{
    enum { R = 16 };
    struct model *model = &run->experiment->model;
    struct tensor images, features;
    struct tower_pass *pass = calloc(1, sizeof *pass);
    assert_non_null(pass);
    uint8_t pixels[R * R * 3];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 + i * i % 11);
    arena_reset(&model->step_memory);
    must(tensor_take(&images, &model->step_memory, TENSOR_U8, "noise", 4, (size_t[]){1, R, R, 3}, &error));
    must(model->backend->ops->upload(model->backend, images.data, pixels, sizeof pixels, &error));
    must(clip_encode_images(model->clip, &(struct encoding){.arena = &model->step_memory}, &images, pass, &features,
                            &error));
    free(pass);
    return small_run_values(run, features.data, model->clip->dimensions.embed);
}

/* Nothing is learned at this rate: what is left is what the method does to the weights. */
TEST(starts_change_nothing)
{
    static const char *const names[] = {"method.name=keep_lora", "method.name=moram"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct small_run run;
        small_run_open(&run, 1,
                       (const char *const[]){names[i], "delta.rank=4", "training.learning_rate=1e-30",
                                             "training.iterations=2", NULL});
        size_t n = run.experiment->model.clip->dimensions.embed;
        float *before = features_of(&run), moved = 0;
        must(train(&run, 0, 0, ALL));
        must(train(&run, 1, 0, ALL));
        float *after = features_of(&run);
        struct values v = values_of(&run.experiment->model);
        for (size_t k = run.experiment->model.clip->parameters->values_count; k < v.n; k++)
            moved = fmaxf(moved, fabsf(v.list[k]));
        for (size_t k = 0; k < n; k++)
            if (!(fabsf(after[k] - before[k]) <= 1e-4f * (1 + fabsf(before[k]))))
                fail_msg("%s: feature %zu: %g, was %g", names[i], k, (double)after[k], (double)before[k]);
        assert_true(moved > 0.1f); /* there is a start */
        free(v.list);
        free(before);
        free(after);
        small_run_close(&run);
    }
}

TEST(keep_lora_needs_square_matrices)
{
    struct small_run run;
    small_run_open(&run, 1, (const char *const[]){"method.name=keep_lora", NULL});
    assert_int_equal(
        small_run_try(&run, 1, (const char *const[]){"method.name=keep_lora", "delta.matrices=query,fc", NULL}),
        ERROR_ARGUMENT);
    error_tells((const char *const[]){"delta.matrices", "square", "fc", NULL});
    small_run_close(&run);
}

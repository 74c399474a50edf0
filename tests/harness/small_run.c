#include "tests/harness/small_run.h"
#include "harness/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "harness/evaluate/evaluator.h"
#include "harness/run/resume/checkpoint.h"
#include "harness/scenario/data.h"
#include "tests/models/initialize.h"

static const char suite_text_small[] = "data: {order: [first, second, third], order_name: small}\n"
                                       "adapter: {experts: 5, top_k: 2, bottleneck: 8}\n"
                                       "training: {iterations: 6, batch: 8, learning_rate: 5e-3, warmup: 2}\n"
                                       "merge: {every: 3}\n"
                                       "selector: {code: 8, iterations: 40, batch: 8}\n"
                                       "run: {threads: 2, evaluation_batch: 4}\n"
                                       "tasks:\n"
                                       "  first: {reader: toy, classes: 2, train: 6, test: 3}\n"
                                       "  second: {reader: toy, classes: 3, train: 6, test: 3}\n"
                                       "  third: {reader: toy, classes: 4, train: 6, test: 3}\n";

/* What is to be freed with the run, and destroyed with its experiment. */
static struct {
    void **memory;
    size_t memory_count;
    struct evaluator *evaluators[8];
    struct selector *selectors[8];
    size_t evaluator_count, selector_count;
} owned;

void *small_run_keep(void *memory)
{
    assert_non_null(memory);
    GROW(owned.memory, owned.memory_count);
    return owned.memory[owned.memory_count++] = memory;
}

char *small_run_format(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    assert_true(vasprintf(&text, format, arguments) >= 0);
    va_end(arguments);
    return small_run_keep(text);
}

float *small_run_recorded(const struct safetensors *file, const char *name)
{
    const struct safetensor *found = safetensors_find(file, name);
    assert_non_null(found);
    float *values = small_run_keep(malloc(safetensor_elements(found) * sizeof *values));
    must(safetensor_to_floats(found, values, &error));
    return values;
}

const char *small_run_file(const struct small_run *run, const char *name)
{
    return scratch_file(&run->scratch, name);
}

void small_run_expect_same(const char *path, const char *expected)
{
    struct bytes a, b;
    must(file_read(path, FILE_LIMIT, &a, &error));
    must(file_read(expected, FILE_LIMIT, &b, &error));
    if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0)
        fail_msg("%s differs from %s", path, expected);
    bytes_free(&a);
    bytes_free(&b);
}

size_t small_run_gpus(void)
{
    struct gpus gpus;
    struct backend *backend;
    struct process_group group = {.size = 1};
    if (strcmp(test_backend_name(), "cpu") == 0)
        return 3;
    if (backend_gpus(&gpus, &error) != OK)
        return 0;
    must(backend_open(&backend, &(struct backend_settings){.name = test_backend_name()}, &error));
    bool together = backend->ops->process_group_create(&backend, &group, &error) == OK;
    if (together)
        backend->ops->process_group_destroy(backend, &group);
    else
        fprintf(stderr, "several GPUs are left out: %s\n", error.message);
    backend_close(backend);
    return together ? gpus.count : 1;
}

static void make_model(const struct small_run *run)
{
    static const char merges[] = "#version: 0.2\nr e\ne n</w>\ng re\ngre en</w>\nh o\nho t\nhot o</w>\np hoto</w>\n";
    struct clip_dimensions dimensions = {.embed = 16,
                                         .resolution = 16,
                                         .patch = 8,
                                         .image_width = 64,
                                         .image_hidden = 256,
                                         .image_heads = 1,
                                         .image_blocks = 2,
                                         .context = 24,
                                         .text_width = 64,
                                         .text_hidden = 256,
                                         .text_heads = 1,
                                         .text_blocks = 2};
    struct tokenizer *tokenizer;
    struct backend *backend;
    struct arena arena;
    struct clip *clip;
    must(file_write(small_run_file(run, "vocabulary.txt"), merges, sizeof merges - 1, &error));
    must(tokenizer_open(&tokenizer, small_run_file(run, "vocabulary.txt"), &error));
    dimensions.vocabulary = tokenizer_vocabulary(tokenizer);
    must(backend_open(&backend, &(struct backend_settings){.name = "cpu", .threads = 1}, &error));
    must(backend->ops->arena_create(backend, &arena, (size_t)1 << 30, "test", &error));
    must(clip_create(&clip, backend, &arena, &dimensions, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &error));
    must(clip_initialize(clip, 5, &error));
    must(clip_save(clip, small_run_file(run, "clip.safetensors"), &error));
    clip_destroy(clip);
    backend->ops->arena_destroy(backend, &arena);
    backend_close(backend);
    tokenizer_close(tokenizer);
}

static status try_experiment(struct small_run *run, uint64_t seed, const char *const *overrides)
{
    const char *folder = run->scratch.path,
               *all[32] = {small_run_format("model.weights=%s/clip.safetensors", folder),
                           small_run_format("model.vocabulary=%s/vocabulary.txt", folder),
                           small_run_format("data.root=%s", folder), small_run_format("run.folder=%s/runs", folder),
                           small_run_format("run.backend=%s", test_backend_name())};
    size_t count = 5;
    for (size_t i = 0; overrides != NULL && overrides[i] != NULL; i++)
        all[count++] = overrides[i];
    run->suite = NULL;
    run->experiment = NULL;
    status opened = suite_parse(&run->suite, suite_text_small, sizeof suite_text_small - 1, "small.yaml",
                                settings_sections, all, count, &error);
    NEXT(opened, run_open(&run->experiment, run->suite, seed, NULL, &error));
    if (opened == ERROR_DEVICE) {
        fprintf(stderr, "skipped, %s\n", error.message);
        exit(77);
    }
    return opened;
}

void small_run_open(struct small_run *run, uint64_t seed, const char *const *overrides)
{
    *run = (struct small_run){0};
    scratch_create(&run->scratch);
    make_model(run);
    must(try_experiment(run, seed, overrides));
}

static void close_experiment(struct small_run *run)
{
    while (owned.evaluator_count > 0)
        evaluator_destroy(owned.evaluators[--owned.evaluator_count]);
    while (owned.selector_count > 0)
        selector_destroy(owned.selectors[--owned.selector_count]);
    run_close(run->experiment);
    suite_destroy(run->suite);
}

status small_run_try(struct small_run *run, uint64_t seed, const char *const *overrides)
{
    close_experiment(run);
    return try_experiment(run, seed, overrides);
}

void small_run_reopen(struct small_run *run, uint64_t seed, const char *const *overrides)
{
    must(small_run_try(run, seed, overrides));
}

void small_run_close(struct small_run *run)
{
    close_experiment(run);
    scratch_remove(&run->scratch);
    while (owned.memory_count > 0)
        free(owned.memory[--owned.memory_count]);
    free(owned.memory);
    owned.memory = NULL;
}

struct selector *small_run_selector(struct small_run *run)
{
    struct selector **selector = &owned.selectors[owned.selector_count++];
    assert_true(owned.selector_count <= sizeof owned.selectors / sizeof *owned.selectors);
    must(selector_create(selector, &run->experiment->model, &run->experiment->data, &error));
    return *selector;
}

struct evaluator *small_run_evaluator(struct small_run *run, struct selector *selector, size_t zero_shot)
{
    struct run *e = run->experiment;
    struct evaluator **evaluator = &owned.evaluators[owned.evaluator_count++];
    assert_true(owned.evaluator_count <= sizeof owned.evaluators / sizeof *owned.evaluators);
    must(evaluator_create(evaluator, &e->model, &e->data, &e->method, selector, &error));
    for (size_t j = 0; j < zero_shot; j++)
        must(evaluator_zero_shot(*evaluator, j, NULL, &error));
    return *evaluator;
}

/* --- Training --- */

static bool wants_loss(void *context, size_t iteration, size_t iterations)
{
    const struct small_training *training = context;
    return training->every == 0 || iteration % training->every == 0;
}

static status record_step(void *context, const struct step_report *report, struct error *failure)
{
    struct small_training *training = context;
    assert_int_equal(report->iteration, training->count + 1);
    assert_true(training->count < sizeof training->loss / sizeof *training->loss);
    training->loss[training->count] = report->loss;
    training->rate[training->count++] = report->rate;
    training->images = report->images;
    if (training->look != NULL)
        training->look(training);
    training->stop.signal = training->count == training->stop_at ? 2 : 0;
    return OK;
}

status small_run_train(struct small_run *run, size_t task, struct small_training *training)
{
    struct training whole = {.run = &run->experiment->method, .task = joint_or(&run->experiment->data, task)};
    if (training == NULL)
        return train_task(&whole, &error);
    training->run = run;
    training->stop.signal = 0;
    whole.first = training->count;
    whole.stop = &training->stop;
    whole.wants_loss = wants_loss;
    whole.after = record_step;
    whole.context = training;
    return train_task(&whole, &error);
}

void small_run_save(const struct small_run *run, const char *name, size_t task, size_t iteration)
{
    must(checkpoint_save(run->experiment, NULL, small_run_file(run, name),
                         &(struct checkpoint_place){.task = task, .iteration = iteration, .rows = 77}, &error));
}

void small_run_go_on(struct small_run *run, size_t task, size_t iteration, const char *const *overrides)
{
    struct checkpoint_place place;
    bool found;
    small_run_reopen(run, 1, overrides);
    must(checkpoint_load(run->experiment, NULL, small_run_file(run, "resume"), &place, &found, &error));
    assert_true(found && place.task == task && place.iteration == iteration && place.rows == 77);
}

void small_run_resume(struct small_run *run, size_t task, size_t iteration, const char *const *overrides)
{
    small_run_save(run, "resume", task, iteration);
    small_run_go_on(run, task, iteration, overrides);
}

/* --- Watching the backend: operations have no context of their own, so there is one spy --- */

static struct {
    struct backend_spy *spy;
    const struct backend_ops *watched;
    struct backend_ops ops;
} watch;

static void raise_at(size_t count, size_t at)
{
    if (at > 0 && count == at)
        watch.spy->stop->signal = 2;
}

static status watch_patchify(struct backend *backend, const struct patchify *arguments, struct error *failure)
{
    raise_at(++watch.spy->encodings, watch.spy->stop_at_encoding);
    return watch.watched->patchify(backend, arguments, failure);
}

static status watch_adamw(struct backend *backend, const struct adamw *arguments, struct error *failure)
{
    raise_at(++watch.spy->updates, watch.spy->stop_at_update);
    return watch.watched->adamw(backend, arguments, failure);
}

static status watch_argmax(struct backend *backend, const struct argmax *arguments, struct error *failure)
{
    raise_at(++watch.spy->predictions, watch.spy->stop_at_prediction);
    return watch.watched->argmax(backend, arguments, failure);
}

void small_run_watch(struct small_run *run, struct backend_spy *spy)
{
    struct backend *backend = run->experiment->model.backend;
    watch.spy = spy;
    if (backend->ops == &watch.ops)
        return;
    watch.watched = backend->ops;
    watch.ops = *backend->ops;
    watch.ops.patchify = watch_patchify;
    watch.ops.adamw = watch_adamw;
    watch.ops.argmax = watch_argmax;
    backend->ops = &watch.ops;
}

static float *values_of(struct backend *backend, const float *device, size_t n)
{
    float *values = small_run_keep(malloc((n + 1) * sizeof *values));
    must(backend->ops->bind(backend, &error)); /* a rank's, perhaps */
    must(backend->ops->download(backend, values, device, n * sizeof *values, &error));
    return values;
}

float *small_run_values(const struct small_run *run, const float *device, size_t n)
{
    return values_of(run->experiment->model.backend, device, n);
}

float *small_run_group(const struct parameters *group)
{
    return values_of(group->backend, group->values, group->values_count);
}

float *small_run_adapters(const struct small_run *run, enum tower tower)
{
    return small_run_group(run->experiment->model.adapters->towers[tower].parameters);
}

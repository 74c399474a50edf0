/* fixtures/methods/finetune_small: losses, gradients, weights and answers of the methods that train both towers. The trainer, the
 * methods and the resume files of the program run on recorded batches and texts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/methods/methods.h"
#include "harness/run/resume/checkpoint.h"
#include "harness/run/run.h"
#include "harness/train/batches.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"
#include "models/class_head.h"
#include "tests/replay/replay.h"

enum { TASKS_MOST = 16 };

/* Terms of the loss that the method's options can leave out. */
enum { TERM_IMAGE, TERM_TEXT, TERM_L2, TERMS };
static const struct {
    const char *option, *quantity, *tolerance;
} terms[TERMS] = {
    {"image_weight", "distill_image", "losses"}, {"text_weight", "distill_text", "losses"}, {"l2", "l2", "l2_public"}};

struct trajectory {
    struct replay *r;
    struct safetensors *data[TASKS_MOST];
    const char *weights, *resume; /* paths; resume: of the resume file */
    size_t tasks;
    struct settings settings;
    struct recorded recorded;
    char straight[TASKS_MOST][DIGEST_SIZE]; /* of the weights after each task without stops */
    /* of the method */
    const struct method *method;
    struct method watched;          /* the method with what compares on top: what is trained with */
    struct options *options;        /* as config.json has them */
    struct options *without[TERMS]; /* the same with a weight of 0; NULL: the method has no such term */
    struct report *report;
    bool stops;
    struct run *e;
    float *start, *now; /* host: weights when the task began; weights or gradients */
    /* of the task */
    size_t task;
    struct safetensors *expect;
};

static const json_t *task_of(const struct trajectory *p, size_t task)
{
    return json_array_get(json_object_get(p->r->config, "tasks"), task);
}

/* --- What the loader and the tokenizer would give --- */

static status batch_of(void *context, const struct loader_settings *wanted, size_t step, struct recorded_batch *batch,
                       struct error *error)
{
    const struct trajectory *p = context;
    const struct safetensors *file = p->data[wanted->task];
    const char *name = wanted->augment                        ? "images"
                       : strcmp(p->method->name, "zscl") == 0 ? "reference_outside"
                                                              : "reference_current";
    const struct safetensor *images = recorded(file, "%s", name), *labels = recorded(file, "labels");
    if (images->rank != 5 || step >= images->shape[0] || (wanted->augment && images->shape[1] != labels->shape[1]))
        return error_set(error, ERROR_FORMAT, "%s: there is no batch %zu in %s", safetensors_path(file), step, name);
    size_t each = images->shape[2] * images->shape[3] * images->shape[4];
    *batch = (struct recorded_batch){.images = (const float *)images->data + step * images->shape[1] * each,
                                     .labels = (const int32_t *)labels->data + step * labels->shape[1],
                                     .count = images->shape[1]};
    return OK;
}

static status texts_of(void *context, size_t task, const int32_t **tokens, size_t *count, struct error *error)
{
    const struct trajectory *p = context;
    const struct safetensor *texts = strcmp(p->method->name, "zscl") == 0 ? recorded(p->r->data, "captions")
                                                                          : recorded(p->data[task], "random_sentences");
    *tokens = texts->data;
    *count = texts->shape[0];
    return OK;
}

/* --- Opening --- */

static void open_folder(struct trajectory *p)
{
    const json_t *config = p->r->config, *dims = json_object_get(config, "dims");
    p->tasks = json_array_size(json_object_get(config, "tasks"));
    p->weights = replay_text(p->r, "%s/clip.safetensors", p->r->folder);
    p->recorded = (struct recorded){.context = p, .batch = batch_of, .texts = texts_of};
    if (p->tasks == 0 || p->tasks > TASKS_MOST || recorded_number(dims, "layer_norm_eps") != 1e-5)
        must(error_set(&error, ERROR_FORMAT, "%s: expected 1 to %d tasks and a layer_norm_eps of 1e-5", p->r->folder,
                       TASKS_MOST));
    p->settings = (struct settings){.weights = p->weights,
                                    .backend = p->r->settings,
                                    .gpus = p->r->members,
                                    .stated = {.config = {.image_heads = recorded_size(dims, "vision_heads"),
                                                          .text_heads = recorded_size(dims, "text_heads"),
                                                          .activation = ACTIVATION_QUICK_GELU},
                                               .heads_by = "config.json",
                                               .activation_by = "config.json"}};
    for (size_t t = 0; t < p->tasks; t++)
        p->data[t] = recorded_open(p->r, "task%zu.data.safetensors", t);
}

/* --- A method --- */

static void read_options(const struct trajectory *p, struct options **options)
{
    const json_t *config = p->r->config, *sentences = json_object_get(config, "random_sentences");
    const struct {
        const char *option;
        double value;
    } values[] = {{"temperature", recorded_number(config, "temperature")},
                  {"l2", recorded_number(config, "l2")},
                  {"alpha", recorded_number(config, "wise_alpha")},
                  {"average_every", recorded_number(config, "average_every")},
                  {"reference_batch", recorded_number(config, "reference_batch")},
                  {"sentences", recorded_number(sentences, "count")},
                  {"words", recorded_number(sentences, "words")}};
    must(options_create(options, p->method->options, &error));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        recorded_option(*options, p->method->options, values[i].option, values[i].value);
}

static void choose(struct trajectory *p, const char *name)
{
    must(method_find(&p->method, name, &error));
    read_options(p, &p->options);
    memset(p->without, 0, sizeof p->without);
    for (int i = 0; i < TERMS; i++)
        if (options_find(p->method->options, terms[i].option) != NULL) {
            read_options(p, &p->without[i]);
            must(options_set(p->without[i], terms[i].option, "0", "test", &error));
        }
    p->watched = *p->method;
    p->settings.method = &p->watched;
    p->settings.method_options = p->options;
}

static void make_task(const struct trajectory *p, size_t index, struct task *task)
{
    const json_t *own = task_of(p, index), *config = p->r->config, *betas = json_object_get(config, "betas");
    const struct safetensor *tokens = recorded(p->data[index], "tokens");
    static const char *const template = "{}";
    size_t bytes = safetensor_elements(tokens) * sizeof(int32_t), classes = tokens->shape[0];
    const char **names = replay_take(p->r, classes, sizeof *names);
    for (size_t c = 0; c < classes; c++)
        names[c] = "class";
    dataset_of_names(&task->dataset, names, classes, &template, 1);
    task->index = index;
    task->settings = (struct task_settings){.name = json_string_value(json_object_get(own, "name")),
                                            .iterations = recorded_size(own, "steps"),
                                            .schedule_end = recorded_size(own, "iterations"),
                                            .warmup = recorded_size(own, "warmup"),
                                            .batch = recorded_size(config, "batch"),
                                            .rate = recorded_number(own, "lr"),
                                            .rule = {.weight_decay = recorded_number(config, "weight_decay"),
                                                     .beta1 = json_number_value(json_array_get(betas, 0)),
                                                     .beta2 = json_number_value(json_array_get(betas, 1)),
                                                     .epsilon = recorded_number(config, "eps")},
                                            .smoothing = (float)recorded_number(config, "label_smoothing")};
    task->prompts = xmalloc(bytes);
    memcpy(task->prompts, tokens->data, bytes);
}

/* From the weights before the first task. The model reads only the settings weights, backend, gpus, method and its options. */
static void start(struct trajectory *p)
{
    struct run *run = p->e = xcalloc(1, sizeof *run);
    *run = (struct run){
        .model = {.settings = p->settings, .groups = method_groups(p->method, p->options)},
        .data = {.tasks = xcalloc(p->tasks, sizeof(struct task)), .task_count = p->tasks, .recorded = &p->recorded}};
    for (size_t t = 0; t < p->tasks; t++)
        make_task(p, t, &run->data.tasks[t]);
    must(model_open(&run->model, &error));
    must(method_open(&run->method, &run->model, &run->data, &error));
    must(replicas_open(&run->method, &error));
}

static const struct parameters *weights_of(const struct trajectory *p)
{
    return p->e->model.clip->parameters;
}

static void download(const struct trajectory *p, float *host, const float *device)
{
    must(p->e->model.backend->ops->download(p->e->model.backend, host, device,
                                            weights_of(p)->values_count * sizeof *host, &error));
}

/* A number that is recorded for every step; the method may lack it. */
static void compare_step(const struct trajectory *p, const char *quantity, size_t step, double got, double allowed)
{
    const struct safetensor *expected = safetensors_find(p->expect, quantity);
    if (expected == NULL)
        return;
    report_exact(p->report, "steps", step < safetensor_elements(expected), "%s of step %zu", quantity, step);
    if (step < safetensor_elements(expected))
        report_value(p->report, quantity, got, recorded_value(expected, step), allowed);
}

/* --- Tensors without key biases, whose gradient is rounding noise --- */

static bool is_bias_of_keys(const struct parameter *t, size_t i)
{
    static const char ending[] = "in_proj_bias";
    size_t length = strlen(t->name);
    return length >= sizeof ending - 1 && strcmp(t->name + length - (sizeof ending - 1), ending) == 0 &&
           i >= t->size / 3 && i < t->size / 3 * 2;
}

/* Moves what is not a key's bias to the front of values; returns its count. */
static size_t drop_key_biases(const struct parameter *t, float *values)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->size; i++)
        if (!is_bias_of_keys(t, i))
            values[kept++] = values[i];
    return kept;
}

/* --- Within a step --- */

/* "cross_entropy", of one term by what the total is without it; gradients are left at zero. */
static void loss_with(struct trajectory *p, struct method_run *run, const struct options *options,
                      const struct batch *batch, bool classification, double *value)
{
    const struct model *model = run->model;
    const struct backend_ops *ops = model->backend->ops;
    const struct task *task = &run->data->tasks[p->task];
    struct arena_mark mark = arena_mark(run->step_memory);
    float loss;
    must(ops->zero(model->backend, model->loss, sizeof *model->loss, &error));
    run->options = options;
    must(classification || p->method->loss == NULL ? classification_loss(run, task, batch, &error)
                                                   : p->method->loss(run, task, batch, &error));
    run->options = p->options;
    arena_release(run->step_memory, mark);
    must(ops->download(model->backend, &loss, model->loss, sizeof loss, &error));
    must(ops->zero(model->backend, model->clip->parameters->gradients,
                   model->clip->parameters->values_count * sizeof loss, &error));
    must(ops->zero(model->backend, model->loss, sizeof *model->loss, &error));
    *value = (double)loss;
}

/* What the recorded l2 has to be multiplied by to be the term of the recorded total: 1, or its strength where the sum alone
 * was recorded. */
static double l2_factor(const struct trajectory *p, size_t step)
{
    static const char *const names[] = {"total", "cross_entropy", "distill_image", "distill_text", "l2"};
    double values[5], strength = recorded_number(p->r->config, "l2");
    for (size_t i = 0; i < 5; i++) {
        const struct safetensor *steps = safetensors_find(p->expect, names[i]);
        values[i] = steps != NULL && step < safetensor_elements(steps) ? recorded_value(steps, step) : NAN;
    }
    double term = values[0] - values[1] - values[2] - values[3];
    return fabs(strength * values[4] - term) < fabs(values[4] - term) ? strength : 1;
}

static void compare_terms(struct trajectory *p, struct method_run *run, const struct batch *batch)
{
    struct step_state state;
    double whole, part;
    must(run->model->backend->ops->download(run->model->backend, &state, run->model->state, sizeof state, &error));
    loss_with(p, run, p->options, batch, true, &part);
    compare_step(p, "cross_entropy", state.step, part, recorded_tolerance(p->r, "losses"));
    loss_with(p, run, p->options, batch, false, &whole);
    for (int i = 0; i < TERMS; i++) {
        if (p->without[i] == NULL)
            continue;
        loss_with(p, run, p->without[i], batch, false, &part);
        double factor = i == TERM_L2 ? l2_factor(p, state.step) : 1;
        compare_step(p, terms[i].quantity, state.step, (whole - part) / factor,
                     recorded_tolerance(p->r, terms[i].tolerance));
    }
}

static status loss_in_terms(struct method_run *run, const struct task *task, const struct batch *batch,
                            struct error *error)
{
    struct trajectory *p = run->data->recorded->context;
    compare_terms(p, run, batch);
    return p->method->loss != NULL ? p->method->loss(run, task, batch, error)
                                   : classification_loss(run, task, batch, error);
}

static void compare_gradients(struct trajectory *p, const char *moment)
{
    for (size_t i = 0; i < weights_of(p)->count; i++) {
        const struct parameter *t = &weights_of(p)->list[i];
        const struct safetensor *expected = recorded_if_there(p->expect, "grad_digest.%s.%s", moment, t->name);
        bool trained = strcmp(t->name, "logit_scale") != 0;
        report_exact(p->report, "gradients in the fixture", (expected != NULL) == trained, "%s, %s", moment, t->name);
        if (expected != NULL)
            report_digest(p->report, "gradient digests", p->now + t->offset, drop_key_biases(t, p->now + t->offset),
                          expected->data, recorded_tolerance(p->r, "grad_digest_rel") * recorded_largest(expected));
    }
}

/* The sum alone, without its strength, relative to its largest value in the task. */
static void compare_distance(struct trajectory *p, size_t step)
{
    const struct safetensor *expected = safetensors_find(p->expect, "l2_without_key_bias");
    double sum = 0;
    if (expected == NULL)
        return;
    for (size_t i = 0; i < weights_of(p)->count; i++) {
        const struct parameter *t = &weights_of(p)->list[i];
        for (size_t k = 0; k < t->size; k++)
            if (!is_bias_of_keys(t, k))
                sum += pow((double)p->now[t->offset + k] - (double)p->start[t->offset + k], 2);
    }
    compare_step(p, "l2_without_key_bias", step, sum, recorded_tolerance(p->r, "l2") * recorded_largest(expected));
}

static status before_update(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct trajectory *p = run->data->recorded->context;
    if (p->method->before_update != NULL)
        TRY(p->method->before_update(run, task, iteration, error));
    if (run->model->work.rank > 0)
        return OK;
    download(p, p->now, weights_of(p)->values);
    compare_distance(p, iteration - 1);
    if (iteration > 1 && iteration < task->settings.iterations)
        return OK;
    download(p, p->now, weights_of(p)->gradients);
    compare_gradients(p, iteration == 1 ? "first" : "last");
    return OK;
}

/* --- After a task --- */

static void compare_tensor(struct trajectory *p, const char *prefix, const struct parameter *t, double *squares,
                           size_t *compared)
{
    const float *values = p->now + t->offset;
    const struct safetensor *whole = recorded_if_there(p->expect, "%sweights.%s", prefix, t->name),
                            *digest = recorded_if_there(p->expect, "%sdigest.%s", prefix, t->name);
    bool fits = whole != NULL ? safetensor_elements(whole) == t->size : digest != NULL;
    if (whole == NULL && digest == NULL && strcmp(t->name, "logit_scale") == 0) {
        report_exact(p->report, "logit_scale stays", *values == p->start[t->offset], "%g", (double)*values);
        return;
    }
    report_exact(p->report, "parameters in the fixture", fits, "%s%s", prefix, t->name);
    if (whole == NULL && digest != NULL)
        report_digest(p->report, "weight digests", values, t->size, digest->data, recorded_tolerance(p->r, "digest"));
    for (size_t i = 0; whole != NULL && fits && i < t->size; i++) {
        double expected = recorded_value(whole, i);
        if (is_bias_of_keys(t, i))
            continue;
        report_value(p->report, "weights", (double)values[i], expected, recorded_tolerance(p->r, "weights_max"));
        *squares += ((double)values[i] - expected) * ((double)values[i] - expected);
        ++*compared;
    }
}

static void compare_weights(struct trajectory *p, const char *prefix)
{
    double squares = 0;
    size_t compared = 0;
    download(p, p->now, weights_of(p)->values);
    for (size_t i = 0; i < weights_of(p)->count; i++)
        compare_tensor(p, prefix, &weights_of(p)->list[i], &squares, &compared);
    if (compared > 0)
        report_value(p->report, "weights, rms", sqrt(squares / (double)compared), 0,
                     recorded_tolerance(p->r, "weights_rms"));
}

/* Weights after the last optimizer step, where the fixture has them besides. */
static void compare_raw_weights(struct trajectory *p)
{
    bool has = false;
    for (size_t i = 0; i < safetensors_count(p->expect); i++)
        has = has || strncmp(safetensors_at(p->expect, i)->name, "raw.", 4) == 0;
    if (has)
        compare_weights(p, "raw.");
}

/* Of one task's prompts: columns `first` … of the logits. */
static void compare_prompts(struct trajectory *p, const struct task *task, const struct safetensor *probes,
                            size_t first, const struct safetensor *expected)
{
    struct model *model = &p->e->model;
    struct encoding encoding = {.arena = &model->step_memory};
    struct tensor features[TOWERS], images = {0};
    struct tower_pass pass;
    struct texts texts;
    struct class_head head;
    size_t classes = dataset_classes(task->dataset), columns = expected->shape[1];
    arena_reset(&model->step_memory);
    must(tensor_take(&images, &model->step_memory, TENSOR_F32, "probes", 4, probes->shape, &error));
    must(model->backend->ops->upload(model->backend, images.data, probes->data, tensor_bytes(&images), &error));
    must(texts_create(&texts, model->clip, &model->step_memory, task->prompts, classes, &error));
    must(clip_encode_images(model->clip, &encoding, &images, &pass, &features[TOWER_IMAGE], &error));
    must(clip_encode_texts(model->clip, &encoding, &texts, &pass, &features[TOWER_TEXT], &error));
    must(class_head_logits(model->backend, &model->step_memory, &features[TOWER_IMAGE], &features[TOWER_TEXT],
                           (float)recorded_number(p->r->config, "eval_logit_scale"), &head, &error));
    must(model->backend->ops->download(model->backend, p->now, head.logits.data, tensor_bytes(&head.logits), &error));
    for (size_t i = 0; i < probes->shape[0]; i++)
        report_values(p->report, "probe_logits", p->now + i * classes,
                      (const float *)expected->data + i * columns + first, classes,
                      recorded_tolerance(p->r, "probe_logits"));
}

static void compare_probes(struct trajectory *p)
{
    const struct safetensor *probes = recorded(p->r->data, "probe_images"),
                            *expected = recorded(p->expect, "probe_logits");
    size_t first = 0;
    for (size_t t = 0; t < p->e->data.task_count; t++) {
        compare_prompts(p, &p->e->data.tasks[t], probes, first, expected);
        first += dataset_classes(p->e->data.tasks[t].dataset);
    }
    report_exact(p->report, "classes", first == expected->shape[1], "%zu of all tasks", first);
}

/* A run that was stopped ends with the same bits. */
static void compare_bits(struct trajectory *p)
{
    char hash[DIGEST_SIZE], *straight = p->straight[p->task];
    digest_bytes(p->now, weights_of(p)->values_count * sizeof *p->now, hash);
    if (p->stops)
        report_exact(p->report, "bits as without stops", strcmp(hash, straight) == 0, "%s, task %zu", p->method->name,
                     p->task);
    memcpy(straight, hash, sizeof hash);
}

static void compare_after_task(struct trajectory *p)
{
    const struct method *method = p->method;
    if (method->evaluation_begin != NULL)
        must(method->evaluation_begin(&p->e->method, &error));
    compare_weights(p, "");
    compare_bits(p);
    compare_probes(p);
    must(method->evaluation_end != NULL ? method->evaluation_end(&p->e->method, &error) : OK);
}

/* --- Training --- */

static void save(struct trajectory *p, size_t task, size_t iteration)
{
    must(checkpoint_save(p->e, NULL, p->resume, &(struct checkpoint_place){.task = task, .iteration = iteration},
                         &error));
}

static bool wants_loss(void *context, size_t iteration, size_t iterations)
{
    return iteration <= iterations;
}

static status after_iteration(void *context, const struct step_report *report, struct error *error)
{
    struct trajectory *p = context;
    size_t step = report->iteration - 1;
    compare_step(p, "lr", step, report->rate, recorded_tolerance(p->r, "lr"));
    compare_step(p, "total", step, report->loss,
                 recorded_tolerance(p->r, safetensors_find(p->expect, "l2") != NULL ? "l2_public" : "losses"));
    if (report->iteration == report->iterations)
        compare_raw_weights(p);
    if (!p->stops)
        return OK;
    save(p, p->task, report->iteration);
    return error_set(error, ERROR_STOPPED, "stopped after iteration %zu", report->iteration);
}

/* Another experiment, which goes on from the resume file. */
static void go_on(struct trajectory *p, size_t *iteration)
{
    struct checkpoint_place place;
    bool found;
    run_close(p->e);
    start(p);
    must(checkpoint_load(p->e, NULL, p->resume, &place, &found, &error));
    report_exact(p->report, "resume files", found && place.task == p->task, "task %zu", place.task);
    *iteration = place.iteration;
}

static void replay_task(struct trajectory *p)
{
    status result = ERROR_STOPPED;
    download(p, p->start, weights_of(p)->values);
    for (size_t first = 0; result == ERROR_STOPPED;) {
        struct error error = {0};
        struct training training = {.run = &p->e->method,
                                    .task = &p->e->data.tasks[p->task],
                                    .first = first,
                                    .wants_loss = wants_loss,
                                    .after = after_iteration,
                                    .context = p};
        result = train_task(&training, &error);
        if (result == ERROR_STOPPED)
            go_on(p, &first);
        else if (result != OK)
            report_abort(&error);
    }
    compare_after_task(p);
}

static void replay_tasks(struct trajectory *p)
{
    size_t iteration;
    start(p);
    p->start = replay_take(p->r, weights_of(p)->values_count, sizeof *p->start);
    p->now = replay_take(p->r, weights_of(p)->values_count, sizeof *p->now);
    for (p->task = 0; p->task < p->tasks; p->task++) {
        p->expect = recorded_open(p->r, "%s.task%zu.safetensors", p->method->name, p->task);
        replay_task(p);
        safetensors_close(p->expect);
        if (!p->stops || p->task + 1 == p->tasks)
            continue;
        save(p, ++p->task, 0);
        go_on(p, &iteration);
        p->task--;
    }
}

/* Terms are compared where one member trains without stops, and every one of its iterations is launched anew. */
static void replay_method(struct trajectory *p, const char *name, bool stops, struct report *report)
{
    choose(p, name);
    p->stops = stops;
    p->report = report;
    p->watched.before_update = before_update;
    if (!p->r->stops && p->r->members == 1) {
        p->watched.loss = loss_in_terms;
        p->watched.loss_repeats = false;
    }
    replay_tasks(p);
    run_close(p->e);
    options_destroy(p->options);
    for (int i = 0; i < TERMS; i++)
        options_destroy(p->without[i]);
}

/* 0-based iterations after which the mean takes the weights in: multiples of average_every. */
static void check_averages(struct trajectory *p)
{
    size_t every = recorded_size(p->r->config, "average_every");
    for (size_t t = 0; t < p->tasks; t++) {
        const json_t *task = task_of(p, t), *averaged = json_object_get(task, "averaged_at");
        size_t steps = recorded_size(task, "steps"), count = (steps + every - 1) / every;
        bool same = json_array_size(averaged) == count;
        for (size_t i = 0; same && i < count; i++)
            same = recorded_at(averaged, i) == i * every;
        report_exact(&p->r->report, "iterations that are averaged", same, "task %zu: every %zu", t, every);
    }
}

static void replay_methods(struct trajectory *p)
{
    static const char ending[] = ".task0.safetensors";
    struct directory directory;
    struct report unused = {0};
    must(directory_list(&directory, p->r->folder, &error));
    for (size_t i = 0; i < directory.count; i++) {
        char *name = directory.names[i], *end = strstr(name, ending);
        if (end == NULL)
            continue;
        *end = 0;
        if (p->r->method != NULL && strcmp(p->r->method, name) != 0)
            continue;
        if (p->r->stops)
            replay_method(p, name, false, &unused);
        replay_method(p, name, p->r->stops, &p->r->report);
    }
    directory_free(&directory);
}

void replay_finetune(struct replay *r)
{
    struct trajectory p = {.r = r};
    char folder[] = "/tmp/mtil-replay-XXXXXX";
    must(mkdtemp(folder) != NULL ? OK : error_set(&error, ERROR_IO, "%s: cannot be made", folder));
    p.resume = replay_text(r, "%s/resume.safetensors", folder);
    open_folder(&p);
    check_averages(&p);
    replay_methods(&p);
    for (size_t t = 0; t < p.tasks; t++)
        safetensors_close(p.data[t]);
    unlink(p.resume);
    rmdir(folder);
}

/* fixtures/methods/finetune_small: losses, gradients, weights and answers of the methods that train both towers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/run/checkpoint.h"
#include "harness/train/trainer.h"
#include "models/class_head.h"
#include "tests/replay/finetune.h"

struct trajectory {
    struct finetune r; /* first: the recorded context is both */
    struct run *e;
    struct report *report;
    struct safetensors *expect; /* of the task */
    size_t task;
    bool stops;
    char *resume;                               /* the resume file's path */
    float *start, *now;                         /* host: weights when the task began; weights or gradients */
    char straight[FINETUNE_TASKS][DIGEST_SIZE]; /* of the weights after each task without stops */
};

static double tolerance(const struct trajectory *p, const char *key)
{
    return recorded_tolerance(p->r.r, key);
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
    must(classification || p->r.method->loss == NULL ? classification_loss(run, task, batch, &error)
                                                     : p->r.method->loss(run, task, batch, &error));
    run->options = p->r.options;
    arena_release(run->step_memory, mark);
    must(ops->download(model->backend, &loss, model->loss, sizeof loss, &error));
    must(ops->zero(model->backend, model->clip->parameters->gradients,
                   model->clip->parameters->values_count * sizeof loss, &error));
    must(ops->zero(model->backend, model->loss, sizeof *model->loss, &error));
    *value = (double)loss;
}

static double recorded_step(const struct trajectory *p, const char *quantity, size_t step)
{
    const struct safetensor *values = safetensors_find(p->expect, quantity);
    return values != NULL && step < safetensor_elements(values) ? recorded_value(values, step) : NAN;
}

/* What the recorded l2 has to be multiplied by to be the term of the recorded total: 1, or its strength where the sum alone
 * was recorded. */
static double l2_factor(const struct trajectory *p, size_t step)
{
    double term = recorded_step(p, "total", step) - recorded_step(p, "cross_entropy", step) -
                  recorded_step(p, "distill_image", step) - recorded_step(p, "distill_text", step),
           l2 = recorded_step(p, "l2", step), strength = recorded_number(p->r.r->config, "l2");
    return fabs(strength * l2 - term) < fabs(l2 - term) ? strength : 1;
}

static void compare_terms(struct trajectory *p, struct method_run *run, const struct batch *batch)
{
    static const char *const names[TERMS] = {"distill_image", "distill_text", "l2"};
    struct step_state state;
    double whole, part;
    must(run->model->backend->ops->download(run->model->backend, &state, run->model->state, sizeof state, &error));
    loss_with(p, run, p->r.options, batch, true, &part);
    compare_step(p, "cross_entropy", state.step, part, tolerance(p, "losses"));
    loss_with(p, run, p->r.options, batch, false, &whole);
    for (int i = 0; i < TERMS; i++) {
        if (p->r.without[i] == NULL)
            continue;
        loss_with(p, run, p->r.without[i], batch, false, &part);
        double factor = i == TERM_L2 ? l2_factor(p, state.step) : 1;
        compare_step(p, names[i], state.step, (whole - part) / factor,
                     tolerance(p, i == TERM_L2 ? "l2_public" : "losses"));
    }
}

static status loss_in_terms(struct method_run *run, const struct task *task, const struct batch *batch,
                            struct error *error)
{
    struct trajectory *p = run->data->recorded->context;
    compare_terms(p, run, batch);
    return p->r.method->loss != NULL ? p->r.method->loss(run, task, batch, error)
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
                          expected->data, tolerance(p, "grad_digest_rel") * recorded_largest(expected));
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
    compare_step(p, "l2_without_key_bias", step, sum, tolerance(p, "l2") * recorded_largest(expected));
}

static status before_update(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct trajectory *p = run->data->recorded->context;
    if (p->r.method->before_update != NULL)
        TRY(p->r.method->before_update(run, task, iteration, error));
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
        report_digest(p->report, "weight digests", values, t->size, digest->data, tolerance(p, "digest"));
    for (size_t i = 0; whole != NULL && fits && i < t->size; i++) {
        double expected = recorded_value(whole, i);
        if (is_bias_of_keys(t, i))
            continue;
        report_value(p->report, "weights", (double)values[i], expected, tolerance(p, "weights_max"));
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
        report_value(p->report, "weights, rms", sqrt(squares / (double)compared), 0, tolerance(p, "weights_rms"));
}

/* Weights after the last optimizer step, where the fixture has them besides. */
static void compare_raw_weights(struct trajectory *p)
{
    for (size_t i = 0; i < safetensors_count(p->expect); i++)
        if (strncmp(safetensors_at(p->expect, i)->name, "raw.", 4) == 0) {
            compare_weights(p, "raw.");
            return;
        }
}

/* Of one task's prompts: columns `first` … of the logits. */
static void compare_prompts(struct trajectory *p, const struct task *task, const struct safetensor *probes,
                            size_t first, const struct safetensor *expected)
{
    struct run *e = p->e;
    struct encoding encoding = {.arena = &e->model.step_memory};
    struct tensor features[TOWERS];
    struct tensor images = {0};
    struct tower_pass pass;
    struct texts texts;
    struct class_head head;
    size_t classes = dataset_classes(task->dataset), columns = expected->shape[1];
    arena_reset(&e->model.step_memory);
    must(tensor_take(&images, &e->model.step_memory, TENSOR_F32, "probes", 4, probes->shape, &error));
    must(e->model.backend->ops->upload(e->model.backend, images.data, probes->data, tensor_bytes(&images), &error));
    must(texts_create(&texts, e->model.clip, &e->model.step_memory, task->prompts, classes, &error));
    must(clip_encode_images(e->model.clip, &encoding, &images, &pass, &features[TOWER_IMAGE], &error));
    must(clip_encode_texts(e->model.clip, &encoding, &texts, &pass, &features[TOWER_TEXT], &error));
    must(class_head_logits(e->model.backend, &e->model.step_memory, &features[TOWER_IMAGE], &features[TOWER_TEXT],
                           (float)recorded_number(p->r.r->config, "eval_logit_scale"), &head, &error));
    must(e->model.backend->ops->download(e->model.backend, p->now, head.logits.data, tensor_bytes(&head.logits),
                                         &error));
    for (size_t i = 0; i < probes->shape[0]; i++)
        report_values(p->report, "probe_logits", p->now + i * classes,
                      (const float *)expected->data + i * columns + first, classes, tolerance(p, "probe_logits"));
}

static void compare_probes(struct trajectory *p)
{
    const struct safetensor *probes = recorded(p->r.r->data, "probe_images"),
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
        report_exact(p->report, "bits as without stops", strcmp(hash, straight) == 0, "%s, task %zu", p->r.method->name,
                     p->task);
    memcpy(straight, hash, sizeof hash);
}

static void compare_after_task(struct trajectory *p)
{
    const struct method *method = p->r.method;
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
    must(checkpoint_save(p->e, NULL, p->resume, &(struct checkpoint_place){task, iteration, 0}, &error));
}

static bool wants_loss(void *context, size_t iteration, size_t iterations)
{
    (void)context;
    return iteration <= iterations;
}

static status after_iteration(void *context, const struct step_report *report, struct error *error)
{
    struct trajectory *p = context;
    size_t step = report->iteration - 1;
    compare_step(p, "lr", step, report->rate, tolerance(p, "lr"));
    compare_step(p, "total", step, report->loss,
                 tolerance(p, safetensors_find(p->expect, "l2") != NULL ? "l2_public" : "losses"));
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
    p->e = NULL;
    finetune_start(&p->r, &p->e);
    must(checkpoint_load(p->e, NULL, p->resume, &place, &found, &error));
    report_exact(p->report, "resume files", found && place.task == p->task, "task %zu", place.task);
    *iteration = place.iteration;
}

static status train(struct trajectory *p, size_t first, struct error *error)
{
    struct training training = {.run = &p->e->method,
                                .task = &p->e->data.tasks[p->task],
                                .first = first,
                                .wants_loss = wants_loss,
                                .after = after_iteration,
                                .context = p};
    return train_task(&training, error);
}

static void replay_task(struct trajectory *p)
{
    struct error error = {0};
    size_t first = 0;
    status result;
    download(p, p->start, weights_of(p)->values);
    while ((result = train(p, first, &error)) == ERROR_STOPPED)
        go_on(p, &first);
    if (result != OK)
        report_abort(&error);
    compare_after_task(p);
}

static void replay_tasks(struct trajectory *p)
{
    size_t iteration;
    finetune_start(&p->r, &p->e);
    p->start = xmalloc(weights_of(p)->values_count * sizeof *p->start);
    p->now = xmalloc(weights_of(p)->values_count * sizeof *p->now);
    for (p->task = 0; p->task < p->r.tasks; p->task++) {
        safetensors_close(p->expect);
        p->expect = recorded_open(p->r.r, "%s.task%zu.safetensors", p->r.method->name, p->task);
        replay_task(p);
        if (!p->stops || p->task + 1 == p->r.tasks)
            continue;
        save(p, ++p->task, 0);
        go_on(p, &iteration);
        p->task--;
    }
}

/* Terms are compared where one member trains without stops, and every one of its iterations is launched anew. */
static void replay_method(struct trajectory *p, const char *name, bool stops, struct report *report)
{
    finetune_choose(&p->r, name);
    p->stops = stops;
    p->report = report;
    p->r.watched.before_update = before_update;
    if (!p->r.r->stops && p->r.r->members == 1) {
        p->r.watched.loss = loss_in_terms;
        p->r.watched.loss_repeats = false;
    }
    replay_tasks(p);
    run_close(p->e);
    p->e = NULL;
    safetensors_close(p->expect);
    p->expect = NULL;
    free(p->start);
    free(p->now);
    p->start = p->now = NULL;
}

/* 0-based iterations after which the mean takes the weights in: multiples of average_every. */
static void check_averages(struct trajectory *p)
{
    size_t every = recorded_size(p->r.r->config, "average_every");
    for (size_t t = 0; t < p->r.tasks; t++) {
        const json_t *task = finetune_task(&p->r, t), *averaged = json_object_get(task, "averaged_at");
        size_t steps = recorded_size(task, "steps"), count = (steps + every - 1) / every;
        bool same = json_array_size(averaged) == count;
        for (size_t i = 0; same && i < count; i++)
            same = recorded_at(averaged, i) == i * every;
        report_exact(&p->r.r->report, "iterations that are averaged", same, "task %zu: every %zu", t, every);
    }
}

static void replay_methods(struct trajectory *p)
{
    static const char ending[] = ".task0.safetensors";
    struct directory directory;
    struct report unused = {0};
    must(directory_list(&directory, p->r.r->folder, &error));
    for (size_t i = 0; i < directory.count; i++) {
        char *name = directory.names[i], *end = strstr(name, ending);
        if (end == NULL)
            continue;
        *end = 0;
        if (p->r.r->method != NULL && strcmp(p->r.r->method, name) != 0)
            continue;
        if (p->r.r->stops)
            replay_method(p, name, false, &unused);
        replay_method(p, name, p->r.r->stops, &p->r.r->report);
    }
    directory_free(&directory);
}

void replay_finetune(struct replay *r)
{
    struct trajectory p = {.r.r = r};
    char folder[] = "/tmp/mtil-replay-XXXXXX";
    if (mkdtemp(folder) == NULL || (p.resume = path_format("%s/resume.safetensors", folder)) == NULL)
        must(error_set(&error, ERROR_IO, "%s: cannot be made", folder));
    finetune_open(&p.r);
    check_averages(&p);
    replay_methods(&p);
    finetune_close(&p.r);
    unlink(p.resume);
    rmdir(folder);
    free(p.resume);
}

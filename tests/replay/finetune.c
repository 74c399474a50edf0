#include "tests/replay/finetune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/methods/methods.h"

const json_t *finetune_task(const struct finetune *r, size_t task)
{
    return json_array_get(json_object_get(r->r->config, "tasks"), task);
}

/* --- What the loader and the tokenizer would give --- */

static bool is_method(const struct finetune *r, const char *name)
{
    return strcmp(r->method->name, name) == 0;
}

static status batch_of(void *context, const struct loader_settings *wanted, size_t step, struct recorded_batch *batch,
                       struct error *error)
{
    const struct finetune *r = context;
    const struct safetensors *file = r->data[wanted->task];
    const struct safetensor *images, *labels;
    const char *name = wanted->augment ? "images" : is_method(r, "zscl") ? "reference_outside" : "reference_current";
    images = recorded(file, "%s", name);
    labels = recorded(file, "labels");
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
    (void)error;
    const struct finetune *r = context;
    const struct safetensor *texts =
        is_method(r, "zscl") ? recorded(r->r->data, "captions") : recorded(r->data[task], "random_sentences");
    *tokens = texts->data;
    *count = texts->shape[0];
    return OK;
}

/* --- Opening --- */

static void read_settings(struct finetune *r)
{
    const json_t *dims = json_object_get(r->r->config, "dims");
    if (recorded_number(dims, "layer_norm_eps") != 1e-5)
        must(error_set(&error, ERROR_FORMAT, "%s: expected a layer_norm_eps of 1e-5", r->r->folder));
    r->settings = (struct settings){.weights = r->weights,
                                    .backend = r->r->settings,
                                    .gpus = r->r->members,
                                    .stated = {.config = {recorded_size(dims, "vision_heads"),
                                                          recorded_size(dims, "text_heads"), ACTIVATION_QUICK_GELU},
                                               .heads_by = "config.json",
                                               .activation_by = "config.json"}};
}

void finetune_open(struct finetune *r)
{
    r->tasks = json_array_size(json_object_get(r->r->config, "tasks"));
    r->weights = path_format("%s/clip.safetensors", r->r->folder);
    r->recorded = (struct recorded){.context = r, .batch = batch_of, .texts = texts_of};
    if (r->tasks == 0 || r->tasks > FINETUNE_TASKS)
        must(error_set(&error, ERROR_FORMAT, "%s: expected 1 to %d tasks", r->r->folder, FINETUNE_TASKS));
    read_settings(r);
    for (size_t t = 0; t < r->tasks; t++)
        r->data[t] = recorded_open(r->r, "task%zu.data.safetensors", t);
}

static void free_options(struct finetune *r)
{
    options_destroy(r->options);
    r->options = NULL;
    for (int i = 0; i < TERMS; i++) {
        options_destroy(r->without[i]);
        r->without[i] = NULL;
    }
}

void finetune_close(struct finetune *r)
{
    free_options(r);
    for (size_t t = 0; t < r->tasks && t < FINETUNE_TASKS; t++)
        safetensors_close(r->data[t]);
    free(r->weights);
}

/* --- A method --- */

static void read_options(const struct finetune *r, struct options **options)
{
    const json_t *config = r->r->config, *sentences = json_object_get(config, "random_sentences");
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
    must(options_create(options, r->method->options, &error));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.17g", values[i].value);
        if (options_find(r->method->options, values[i].option) != NULL)
            must(options_set(*options, values[i].option, text, "config.json", &error));
    }
}

void finetune_choose(struct finetune *r, const char *name)
{
    static const char *const weights[TERMS] = {"image_weight", "text_weight", "l2"};
    free_options(r);
    must(method_find(&r->method, name, &error));
    read_options(r, &r->options);
    for (int i = 0; i < TERMS; i++)
        if (options_find(r->method->options, weights[i]) != NULL) {
            read_options(r, &r->without[i]);
            must(options_set(r->without[i], weights[i], "0", "test", &error));
        }
    r->watched = *r->method;
    r->settings.method = &r->watched;
    r->settings.method_options = r->options;
}

static void name_classes(struct dataset **dataset, size_t classes)
{
    static const char *const template = "{}";
    const char **names = xcalloc(classes, sizeof *names);
    for (size_t c = 0; c < classes; c++)
        names[c] = "class";
    dataset_of_names(dataset, names, classes, &template, 1);
    free(names);
}

static void make_task(const struct finetune *r, size_t index, struct task *task)
{
    const json_t *own = finetune_task(r, index), *config = r->r->config, *betas = json_object_get(config, "betas");
    const struct safetensor *tokens = recorded(r->data[index], "tokens");
    size_t bytes = safetensor_elements(tokens) * sizeof(int32_t);
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
    name_classes(&task->dataset, tokens->shape[0]);
}

void finetune_start(struct finetune *r, struct run **experiment)
{
    struct task *tasks = xcalloc(r->tasks, sizeof *tasks);
    for (size_t t = 0; t < r->tasks; t++)
        make_task(r, t, &tasks[t]);
    must(run_open_recorded(experiment, &r->settings, &r->recorded, tasks, r->tasks, &error));
}

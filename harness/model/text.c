/* Class prompts: a class is the text features of its prompts, and its score is the cosine to an image's (CLIP, Radford et al.
 * 2021). In training the first template of every class is encoded anew in every iteration; in evaluation a class is the
 * mean over all templates (class_features.h). */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/class_features.h"
#include "harness/model/head.h"
#include "harness/model/model.h"
#include "harness/model/weights.h"
#include "models/class_head.h"

static status check(const struct settings *s, struct error *error)
{
    const char *size = model_choice_size(s->model_options);
    if (size != NULL)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: model.%s is the size of an image tower alone, for head.name linear; those of a CLIP are "
            "known from its file: leave it out",
            size);
    if (s->scratch.width == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: model.weights: scratch is an image tower alone, which has no class prompts; set "
                     "head.name=linear and method.name=supervised, or use the weights of a CLIP");
}

static status load(struct model *model, enum parameters_mode mode, struct error *error)
{
    const struct settings *s = &model->settings;
    if (model->planned && weights_plan(&model->clip, model->backend, &model->memory, s->weights, mode, error) == OK)
        return OK;
    return weights_load(&model->clip, model->backend, &model->memory, s->weights, mode, &s->stated,
                        &model->weights_read, error);
}

static status save(const struct model *model, const struct data *data, const char *path, struct error *error)
{
    return clip_save(model->clip, path, error);
}

/* --- Prompts --- */

static status tokenize_prompt(const struct model *model, const struct dataset *dataset, size_t class_index,
                              size_t template_index, int32_t *row, struct error *error)
{
    size_t tokens, context = model->clip->dimensions.context;
    OWNED char *prompt =
        prompt_format(dataset_template(dataset, template_index), dataset_class_name(dataset, class_index));
    status result = tokenizer_encode(model->tokenizer, prompt, row, context, &tokens, error);
    if (result == OK && tokens > context)
        log_warn(model->log, "%s: prompt \"%s\" has %zu tokens, cut to the model's %zu", dataset_name(dataset), prompt,
                 tokens, context);
    return result == OK ? OK
                        : error_context(error, "%s: class %zu, \"%.60s\"", dataset_name(dataset), class_index,
                                        dataset_class_name(dataset, class_index));
}

/* Every template of every class; training uses the first one. Warns once about each truncated prompt. */
static status open_task(const struct model *model, struct task *task, struct error *error)
{
    size_t classes = dataset_classes(task->dataset), templates = dataset_templates(task->dataset),
           context = model->clip->dimensions.context;
    task->prompts = xmalloc(array_size(classes, context * sizeof *task->prompts));
    task->test_prompts = xcalloc(array_size(classes, templates), context * sizeof *task->test_prompts);
    if (model->tokenizer == NULL) { /* planned */
        memset(task->prompts, 0, classes * context * sizeof *task->prompts);
        return OK;
    }
    for (size_t c = 0; c < classes; c++) {
        int32_t *of_class = task->test_prompts + c * templates * context;
        for (size_t t = 0; t < templates; t++)
            TRY(tokenize_prompt(model, task->dataset, c, t, of_class + t * context, error));
        memcpy(task->prompts + c * context, of_class, context * sizeof *of_class);
    }
    return OK;
}

static void close_task(struct task *task)
{
    free(task->prompts);
    free(task->test_prompts);
    task->prompts = task->test_prompts = NULL;
}

static status join_tasks(const struct model *model, struct data *data, struct error *error)
{
    struct task *joint = &data->joint;
    size_t context = model->clip->dimensions.context, done = 0;
    joint->prompts = xmalloc(array_size(data->class_count, context * sizeof *joint->prompts));
    for (size_t k = 0; k < (data->shared_classes ? 1 : data->task_count); k++) {
        size_t count = dataset_classes(data->tasks[k].dataset) * context;
        memcpy(joint->prompts + done, data->tasks[k].prompts, count * sizeof *joint->prompts);
        done += count;
    }
    return OK;
}

static void longest_text(const struct model *model, const struct task *task, size_t *count, size_t *positions)
{
    size_t context = model->clip->dimensions.context;
    *count = dataset_classes(task->dataset);
    *positions = model->clip->dimensions.pool_hidden > 0 ? context : 0; /* SigLIP pads every text */
    if (model->tokenizer == NULL && *positions == 0)
        *positions = PLANNED_TOKENS;
    for (size_t c = 0; c < *count && model->tokenizer != NULL; c++)
        for (size_t l = 0; l < context; l++)
            if (task->prompts[c * context + l] == tokenizer_end(model->tokenizer) && l + 1 > *positions)
                *positions = l + 1;
}

/* --- Training --- */

static status begin_task(struct model *model, const struct task *task, int32_t router, struct arena *arena,
                         struct head_classes *classes, struct error *error)
{
    TRY(clip_logit_scale(model->clip, &model->logit_scale, error));
    TRY(texts_create(&classes->texts, model->clip, arena, task->prompts, dataset_classes(task->dataset), error));
    return model_fill(model, arena, classes->texts.count, router, &classes->routers, error);
}

/* Over the classes of the task. */
static status cross_entropy(struct model *model, const struct tensor *texts, struct head_batch *batch,
                            struct tensor *dtexts, struct error *error)
{
    struct class_head c;
    TRY(class_head_logits(model->backend, &model->step_memory, batch->features, texts, model->logit_scale, &c, error));
    c.right = model->loss + LOSS_RIGHT;
    TRY(class_head_loss(model->backend, &c, batch->labels, batch->smoothing, batch->weight, model->loss, error));
    return class_head_backward(model->backend, &model->step_memory, &c, &batch->dfeatures, dtexts, error);
}

/* Over the batch's images and the prompts of their labels: Park, Algorithm 1, lines 8 and 17. A prompt is encoded once,
 * however many images have it, and as with the cross-entropy also where none has. */
static status contrastive(struct model *model, const struct tensor *texts, struct head_batch *batch,
                          struct tensor *dtexts, struct error *error)
{
    return class_head_contrast(model->backend, &model->step_memory,
                               &(struct class_contrast){.image_features = batch->features,
                                                        .text_features = texts,
                                                        .labels = batch->labels->labels,
                                                        .scale = model->logit_scale,
                                                        .smoothing = batch->smoothing,
                                                        .weight = batch->weight,
                                                        .loss = model->loss},
                               &batch->dfeatures, dtexts, error);
}

static status encode(struct model *model, const struct head_classes *classes, struct head_batch *batch,
                     struct error *error)
{
    struct head_texts *texts = &batch->texts;
    arena_reset(&model->text_memory);
    trained_encoding(model, TOWER_TEXT, classes->routers, &texts->encoding);
    return clip_encode_texts(model->clip, &texts->encoding, &classes->texts, &texts->pass, &texts->features, error);
}

static status loss(struct model *model, const struct head_classes *classes, struct head_batch *batch,
                   struct error *error)
{
    return (batch->contrastive ? contrastive : cross_entropy)(model, &batch->texts.features, batch,
                                                              &batch->texts.dfeatures, error);
}

static status backward(struct model *model, const struct head_batch *batch, struct error *error)
{
    const struct head_texts *texts = &batch->texts;
    return texts->encoding.training
               ? clip_encode_backward(model->clip, &texts->encoding, &texts->pass, &texts->dfeatures, error)
               : OK;
}

/* --- Evaluation --- */

static size_t width(const struct model *model)
{
    return model->clip->dimensions.embed;
}

static status scores(struct model *model, const struct tensor *features, const struct tensor *rows,
                     struct tensor *result, struct error *error)
{
    struct class_head c;
    TRY(class_head_logits(model->backend, &model->step_memory, features, rows, EVALUATION_SCALE, &c, error));
    *result = c.logits;
    return OK;
}

const struct head head_text = {.name = "text",
                               .what = "class prompts",
                               .source = "CLIP, ICML 2021",
                               .check = check,
                               .formula =
                                   "score of a class = cosine of image and prompts, the mean of all templates; in "
                                   "training times exp(logit_scale), and of the first template",
                               .of_texts = true,
                               .load = load,
                               .save = save,
                               .open_task = open_task,
                               .close_task = close_task,
                               .join_tasks = join_tasks,
                               .begin_task = begin_task,
                               .encode = encode,
                               .loss = loss,
                               .backward = backward,
                               .width = width,
                               .classes = class_features,
                               .encoded = class_prompts,
                               .scores = scores,
                               .texts = longest_text};

#include "harness/trainer.h"

#include <math.h>
#include <stdlib.h>

#include "datasets/loader.h"
#include "models/contrastive.h"
#include "models/schedule.h"

static void encodings_of(struct experiment *e, struct block_hook hooks[TOWERS], struct encoding encodings[TOWERS])
{
    for (int t = 0; t < TOWERS; t++) {
        encodings[t] = (struct encoding){.arena = &e->step, .training = true, .state = e->state};
        if (e->trains != TRAINS_ADAPTERS)
            continue;
        hooks[t] = adapters_hook(e->adapters, (enum tower)t);
        encodings[t].hook = &hooks[t];
        encodings[t].router = t == TOWER_IMAGE ? e->routers.images : e->routers.texts;
    }
}

status contrastive_task_loss(struct experiment *e, const struct task *task, const struct batch *batch,
                             struct error *error)
{
    struct block_hook hooks[TOWERS];
    struct encoding encodings[TOWERS];
    struct tower_pass passes[TOWERS];
    struct tensor features[TOWERS], dfeatures[TOWERS];
    struct contrastive c;
    float scale;
    encodings_of(e, hooks, encodings);
    struct image_batch images = {.images = batch->images};
    TRY(clip_encode_images(e->clip, &encodings[TOWER_IMAGE], &images, &passes[TOWER_IMAGE], &features[TOWER_IMAGE],
                           error));
    TRY(clip_encode_texts(e->clip, &encodings[TOWER_TEXT], &e->prompts, &passes[TOWER_TEXT], &features[TOWER_TEXT],
                          error));
    TRY(clip_logit_scale(e->clip, &scale, error));
    TRY(contrastive_logits(e->backend, &e->step, &features[TOWER_IMAGE], &features[TOWER_TEXT], scale, &c, error));
    TRY(contrastive_loss(e->backend, &c, batch->labels, task->settings.smoothing, 1.0f, e->loss, error));
    TRY(contrastive_backward(e->backend, &e->step, &c, &dfeatures[TOWER_IMAGE], &dfeatures[TOWER_TEXT], error));
    for (int t = 0; t < TOWERS; t++)
        TRY(clip_encode_backward(e->clip, &encodings[t], &passes[t], &dfeatures[t], error));
    return OK;
}

/* The task's batches on the host, and the loader that fills them. */
struct feed {
    struct loader *loader;
    uint8_t *pixels;
    int32_t *labels;
};

static status open_feed(struct experiment *e, const struct task *task, struct feed *feed, struct error *error)
{
    size_t r = e->clip->dimensions.resolution, batch = task->settings.batch;
    *feed = (struct feed){.pixels = malloc(array_size(batch, r * r * 3)),
                          .labels = malloc(array_size(batch, sizeof *feed->labels))};
    if (feed->pixels == NULL || feed->labels == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for a batch of %zu images", task->settings.name, batch);
    struct loader_settings settings = {.dataset = task->dataset,
                                       .split = SPLIT_TRAIN,
                                       .resolution = (int)r,
                                       .batch = batch,
                                       .shuffle = true,
                                       .augment = true,
                                       .seed = e->seed,
                                       .task = (uint32_t)task->index,
                                       .threads = 1,
                                       .ahead = 4,
                                       .cache = e->cache};
    return loader_create(&feed->loader, &settings, error);
}

static void close_feed(struct feed *feed)
{
    loader_destroy(feed->loader);
    free(feed->pixels);
    free(feed->labels);
}

static status read_batch(struct experiment *e, struct feed *feed, size_t step, struct batch *batch, struct error *error)
{
    size_t r = e->clip->dimensions.resolution;
    struct tensor labels;
    TRY(loader_read(feed->loader, step, feed->pixels, feed->labels, NULL, &batch->count, error));
    TRY(tensor_take(&batch->images, &e->step, TENSOR_U8, "images", 4, (size_t[]){batch->count, r, r, 3}, error));
    TRY(tensor_take(&labels, &e->step, TENSOR_I32, "labels", 1, &batch->count, error));
    batch->labels = labels.data;
    TRY(e->backend->ops->upload(e->backend, batch->images.data, feed->pixels, tensor_bytes(&batch->images), error));
    return e->backend->ops->upload(e->backend, labels.data, feed->labels, tensor_bytes(&labels), error);
}

static status update(struct experiment *e, const struct task *task, struct error *error)
{
    struct update_rule rule = {
        .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = task->settings.weight_decay};
    if (e->trains == TRAINS_ADAPTERS)
        return adapters_step(e->adapters, e->state, &rule, error);
    return parameters_step(e->clip->parameters, e->state, &rule, error);
}

static status one_iteration(const struct training *training, struct feed *feed, size_t step, struct step_report *report,
                            struct error *error)
{
    struct experiment *e = training->experiment;
    const struct task *task = training->task;
    const struct method *method = e->settings.method;
    struct schedule schedule = {task->settings.rate, task->settings.warmup, task->settings.schedule_end};
    struct batch batch;
    float loss = 0;
    report->rate = schedule_rate(&schedule, step);
    arena_reset(&e->step);
    TRY(experiment_set_step(e, task->index, step, report->rate, error));
    TRY(read_batch(e, feed, step, &batch, error));
    TRY(e->backend->ops->zero(e->backend, e->loss, sizeof *e->loss, error));
    TRY((method->loss != NULL ? method->loss : contrastive_task_loss)(e, task, &batch, error));
    TRY(update(e, task, error));
    report->images += batch.count;
    report->iteration = step + 1;
    report->loss = NAN;
    if (method->after_step != NULL)
        TRY(method->after_step(e, task, step + 1, error));
    if (training->wants_loss == NULL || !training->wants_loss(training->context, step + 1, report->iterations))
        return OK;
    TRY(e->backend->ops->download(e->backend, &loss, e->loss, sizeof loss, error));
    report->loss = (double)loss;
    if (!isfinite(loss))
        return error_set(error, ERROR_ARGUMENT,
                         "%s: the loss is %g after iteration %zu; lower training.learning_rate (now at %g) or lengthen "
                         "training.warmup",
                         task->settings.name, (double)loss, step + 1, report->rate);
    return OK;
}

static status run_iterations(const struct training *training, struct feed *feed, struct error *error)
{
    size_t iterations = training->task->settings.iterations;
    struct step_report report = {.iterations = iterations};
    for (size_t step = training->first; step < iterations; step++) {
        TRY(one_iteration(training, feed, step, &report, error));
        if (training->after != NULL)
            TRY(training->after(training->context, &report, error));
        if (step + 1 < iterations && stop_requested(training->stop))
            return error_set(error, ERROR_STOPPED, "%s: stopped after iteration %zu of %zu",
                             training->task->settings.name, step + 1, iterations);
    }
    return OK;
}

status train_task(const struct training *training, struct error *error)
{
    struct experiment *e = training->experiment;
    const struct task *task = training->task;
    const struct method *method = e->settings.method;
    struct feed feed;
    arena_reset(&e->per_task);
    if (training->first == 0 && method->begin_task != NULL)
        TRY(method->begin_task(e, task, error));
    TRY(texts_create(&e->prompts, e->clip, &e->per_task, task->prompts, dataset_classes(task->dataset), error));
    TRY(experiment_fill(e, &e->per_task, task->settings.batch, (int32_t)task->index, &e->routers.images, error));
    TRY(experiment_fill(e, &e->per_task, e->prompts.count, (int32_t)task->index, &e->routers.texts, error));
    status result = open_feed(e, task, &feed, error);
    if (result == OK)
        result = run_iterations(training, &feed, error);
    close_feed(&feed);
    TRY(result);
    return method->end_task != NULL ? method->end_task(e, task, error) : OK;
}

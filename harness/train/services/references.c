#include "harness/train/services/references.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/formats/strings.h"
#include "harness/train/batches.h"

/* --- Images --- */

status reference_images_open(struct reference_images *images, const char *folder, struct error *error)
{
    *images = (struct reference_images){0};
    return folder != NULL ? dataset_of_images(&images->dataset, folder, error) : OK;
}

void reference_images_close(struct reference_images *images)
{
    batches_close(images->batches);
    free(images->order);
    dataset_close(images->dataset);
    *images = (struct reference_images){0};
}

static void repeat_in_order(struct reference_images *images, size_t count)
{
    size_t size = dataset_size(images->dataset, SPLIT_TRAIN);
    free(images->order);
    images->order = xmalloc(array_size(count, sizeof *images->order));
    for (size_t i = 0; i < count; i++)
        images->order[i] = (uint32_t)(i % size);
}

status reference_images_begin(struct reference_images *images, const struct method_run *run, const struct task *task,
                              size_t batch, size_t first, struct arena *arena, struct error *error)
{
    struct model *model = run->model;
    struct loader_settings settings = {.dataset = images->dataset != NULL ? images->dataset : task->dataset,
                                       .split = SPLIT_TRAIN,
                                       .resolution = (int)model->clip->dimensions.resolution,
                                       .squash = clip_squashes(&model->clip->dimensions),
                                       .batch = batch,
                                       .shuffle = true,
                                       .full = true,
                                       .order = RNG_REFERENCE,
                                       .seed = model->seed,
                                       .task = (uint32_t)task->index,
                                       .cache = images->dataset != NULL ? NULL : run->data->cache};
    batches_close(images->batches);
    images->batches = NULL;
    images->left = task->settings.iterations - first;
    if (images->left == 0)
        return OK;
    if (images->in_order) {
        settings.item_count = array_size(task->settings.iterations, batch);
        repeat_in_order(images, settings.item_count);
        settings.items = images->order;
        settings.shuffle = false;
    }
    TRY(batches_open(&images->batches, model, run->data, &settings, first, task->settings.iterations, error));
    images->left--;
    images->batch.data = NULL;
    TRY(batches_take_images(images->batches, arena, &images->batch, error));
    batches_advance(images->batches);
    return OK;
}

status reference_images_next(struct reference_images *images, struct error *error)
{
    if (images->left == 0)
        return OK;
    images->left--;
    TRY(batches_take_images(images->batches, NULL, &images->batch, error));
    batches_advance(images->batches);
    return OK;
}

/* --- Texts --- */

void reference_texts_free(struct reference_texts *texts)
{
    free(texts->tokens);
    *texts = (struct reference_texts){0};
}

/* Allocates count texts of zeros. */
static void create(struct reference_texts *texts, const struct model *model, size_t count)
{
    reference_texts_free(texts);
    texts->tokens = xcalloc(count, model->clip->dimensions.context * sizeof *texts->tokens);
    texts->count = count;
}

static status copy_recorded(struct reference_texts *texts, const struct method_run *run, size_t task,
                            struct error *error)
{
    const struct recorded *recorded = run->data->recorded;
    const int32_t *tokens;
    size_t count;
    TRY(recorded->texts(recorded->context, task, &tokens, &count, error));
    create(texts, run->model, count);
    memcpy(texts->tokens, tokens, count * run->model->clip->dimensions.context * sizeof *tokens);
    return OK;
}

static status encode_lines(struct reference_texts *texts, const struct model *model, const struct strings *lines,
                           const char *path, struct error *error)
{
    size_t context = model->clip->dimensions.context, tokens, cut = 0;
    TRY(strings_check_texts(lines, path, "sentence", error));
    create(texts, model, lines->count);
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->items[i];
        if (tokenizer_encode(model->tokenizer, line, texts->tokens + i * context, context, &tokens, error) != OK)
            return error_context(error, "%s:%zu", path, i + 1);
        cut += tokens > context;
    }
    if (cut > 0)
        log_warn(model->log, "%s: %zu of %zu sentences have more than %zu tokens and are cut", path, cut, lines->count,
                 context);
    return OK;
}

status reference_texts_read(struct reference_texts *texts, const struct method_run *run, const char *path,
                            struct error *error)
{
    struct strings lines = {0};
    if (run->data->recorded != NULL)
        return copy_recorded(texts, run, 0, error);
    status result = strings_read_lines(&lines, path, error);
    NEXT(result, encode_lines(texts, run->model, &lines, path, error));
    strings_free(&lines);
    return result;
}

status reference_texts_draw(struct reference_texts *texts, const struct method_run *run, size_t task, size_t count,
                            size_t words, struct error *error)
{
    const struct model *model = run->model;
    size_t context = model->clip->dimensions.context;
    if (run->data->recorded != NULL)
        return copy_recorded(texts, run, task, error);
    if (words + 2 > context)
        return error_set(error, ERROR_ARGUMENT,
                         "method.words: at most %zu, so that start and end fit into the model's %zu tokens, found %zu",
                         context - 2, context, words);
    create(texts, model, count);
    struct rng rng = rng_make(model->seed, RNG_SENTENCES, (uint32_t)task, 0);
    uint32_t vocabulary = (uint32_t)tokenizer_vocabulary(model->tokenizer);
    for (size_t i = 0; i < count; i++) {
        int32_t *row = texts->tokens + i * context;
        size_t at = 0;
        if (tokenizer_start(model->tokenizer) >= 0)
            row[at++] = tokenizer_start(model->tokenizer);
        for (size_t k = 0; k < words; k++)
            row[at++] = (int32_t)rng_below(&rng, i * words + k, vocabulary);
        row[at++] = tokenizer_end(model->tokenizer);
        while (at < context)
            row[at++] = tokenizer_pad(model->tokenizer);
    }
    return OK;
}

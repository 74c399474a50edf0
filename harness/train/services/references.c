#include "harness/train/services/references.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
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

/* Whether all columns of a line, separated by tabs or commas, have names that lists of captions give to theirs. */
static bool is_header(const char *line)
{
    static const char names[] =
        "caption|captions|title|text|texts|sentence|sentences|url|image_url|image|filepath|file|key|id";
    OWNED char *copy = xstrdup(line);
    char *rest = NULL;
    bool known = true;
    for (char *p = copy; *p != 0; p++)
        *p = (char)tolower((unsigned char)*p);
    for (char *name = strtok_r(copy, "\t,", &rest); name != NULL && known; name = strtok_r(NULL, "\t,", &rest))
        known = text_has_word(names, name);
    return known;
}

/* The start and size of column `index` of a line. */
static const char *find_column(const char *line, size_t index, size_t *size)
{
    for (; index > 0 && line != NULL; index--)
        line = strchr(line, '\t') != NULL ? strchr(line, '\t') + 1 : NULL;
    *size = line != NULL ? strcspn(line, "\t") : 0;
    return line;
}

/* Which column it is; by its name in the first line, which is then no sentence. */
static status choose_column(const struct strings *lines, const char *path, const char *column, size_t *index,
                            size_t *first, struct error *error)
{
    int64_t number;
    size_t size;
    const char *name;
    if (parse_integer(column, &number) && number > 0) {
        *index = (size_t)number - 1;
        return OK;
    }
    *first = 1;
    for (*index = 0; (name = find_column(lines->items[0], *index, &size)) != NULL; ++*index)
        if (strlen(column) == size && strncmp(name, column, size) == 0)
            return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s:1: expected a header with a column \"%s\" (method.reference_column), found \"%.200s\"", path,
                     column, lines->items[0]);
}

static status check_sentence(const char *line, const char *path, size_t number, struct error *error)
{
    const char *last = strrchr(line, ',') != NULL ? strrchr(line, ',') + 1 : line;
    if (strchr(line, '\t') != NULL)
        return error_set(
            error, ERROR_FORMAT,
            "%s:%zu: expected one sentence, found columns separated by tabs: \"%.200s\"; name the one with "
            "the sentences, as method.reference_column=1",
            path, number, line);
    if (number == 1 && is_header(line))
        return error_set(
            error, ERROR_FORMAT,
            "%s:1: expected a sentence, found a header: \"%.200s\"; remove it, or name the column with the "
            "sentences, as method.reference_column=%.*s",
            path, line, (int)strcspn(line, ","), line);
    if (strncmp(last, "http://", 7) == 0 || strncmp(last, "https://", 8) == 0)
        return error_set(error, ERROR_FORMAT, "%s:%zu: expected a sentence, found an address: \"%.200s\"", path, number,
                         line);
    return OK;
}

/* Turns lines into sentences: themselves, or what is in a column. first: the line of the first one. */
static status read_sentences(struct strings *lines, const char *path, const char *column, size_t *first,
                             struct error *error)
{
    size_t index = 0, size;
    *first = 0;
    TRY(strings_check_texts(lines, path, "sentence", error));
    if (column != NULL)
        TRY(choose_column(lines, path, column, &index, first, error));
    for (size_t i = *first; i < lines->count; i++) {
        char *line = lines->items[i];
        if (column != NULL) {
            const char *cell = find_column(line, index, &size);
            if (cell == NULL || size == 0)
                return error_set(error, ERROR_FORMAT,
                                 "%s:%zu: expected a sentence in column %zu (method.reference_column), found none",
                                 path, i + 1, index + 1);
            memmove(line, cell, size);
            line[size] = 0;
        }
        TRY(check_sentence(line, path, i + 1, error));
    }
    return lines->count > *first ? OK : error_set(error, ERROR_FORMAT, "%s: has no line but its header", path);
}

static status encode_lines(struct reference_texts *texts, const struct model *model, const struct strings *lines,
                           size_t first, const char *path, struct error *error)
{
    size_t context = model->clip->dimensions.context, tokens, cut = 0;
    create(texts, model, lines->count - first);
    for (size_t i = 0; i < texts->count; i++) {
        const char *line = lines->items[first + i];
        if (tokenizer_encode(model->tokenizer, line, texts->tokens + i * context, context, &tokens, error) != OK)
            return error_context(error, "%s:%zu", path, first + i + 1);
        cut += tokens > context;
    }
    if (cut > 0)
        log_warn(model->log, "%s: %zu of %zu sentences have more than %zu tokens and are cut", path, cut, texts->count,
                 context);
    return OK;
}

status reference_texts_read(struct reference_texts *texts, const struct method_run *run, const char *path,
                            const char *column, struct error *error)
{
    SCOPED(strings_free) struct strings lines = {0};
    size_t first = 0;
    if (run->data->recorded != NULL)
        return copy_recorded(texts, run, 0, error);
    TRY(strings_read_lines(&lines, path, error));
    TRY(read_sentences(&lines, path, column, &first, error));
    return encode_lines(texts, run->model, &lines, first, path, error);
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

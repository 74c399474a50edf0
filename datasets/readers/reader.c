#include "datasets/readers/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/prompts.h"
#include "datasets/split/split.h"

const struct option dataset_listed_options[] = {OPTION_SPLIT, OPTION_ON_MISSING, {0}};

status dataset_path(const struct dataset *dataset, const char *name, char path[DATASET_PATH], struct error *error)
{
    int length = snprintf(path, DATASET_PATH, "%s/%s/%s", dataset->root, dataset->folder, name);
    if (length >= 0 && length < DATASET_PATH)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "%s: the path of %s/%s is longer than %d bytes", dataset->root,
                     dataset->folder, name, DATASET_PATH - 1);
}

status dataset_read_lines(const struct dataset *dataset, const char *name, struct strings *lines, struct error *error)
{
    char path[DATASET_PATH];
    TRY(dataset_path(dataset, name, path, error));
    return strings_read_lines(lines, path, error);
}

status dataset_each_line(const struct dataset *dataset, const char *name, dataset_line_taker *take, void *context,
                         struct error *error)
{
    SCOPED(strings_free) struct strings lines = {0};
    TRY(dataset_read_lines(dataset, name, &lines, error));
    for (size_t i = 0; i < lines.count; i++)
        if (take(context, lines.items[i], error) != OK)
            return error_context(error, "%s/%s/%s:%zu", dataset->root, dataset->folder, name, i + 1);
    return OK;
}

void dataset_add_class(struct dataset *dataset, const char *name)
{
    strings_add(&dataset->classes, name, strlen(name));
    for (char *p = dataset->classes.items[dataset->classes.count - 1]; *p != 0 && !dataset->original_names; p++)
        if (*p == '_')
            *p = ' ';
}

status dataset_read_override(const struct dataset *dataset, const char *name, struct strings *lines, bool *found,
                             struct error *error)
{
    char path[DATASET_PATH];
    *found = false;
    if (dataset->folder == NULL)
        return OK;
    TRY(dataset_path(dataset, name, path, error));
    *found = file_exists(path);
    if (!*found)
        return OK;
    TRY(strings_read_lines(lines, path, error));
    return strings_check_texts(lines, path, "name or prompt", error);
}

status dataset_add_positional_classes(struct dataset *dataset, struct error *error)
{
    TRY(dataset_read_override(dataset, "classnames.txt", &dataset->classes, &dataset->names_given, error));
    if (!dataset->names_given)
        prompts_add_classes(dataset->reader->name, &dataset->classes);
    return OK;
}

void dataset_add_item(struct dataset_items *items, struct dataset_item item)
{
    GROW(items->items, items->count);
    items->items[items->count++] = item;
}

status dataset_add_file(struct dataset *dataset, struct dataset_items *items, size_t label, struct error *error,
                        const char *format, ...)
{
    struct text file = {0};
    va_list arguments;
    va_start(arguments, format);
    text_add(&file, "%s/", dataset->folder);
    text_add_list(&file, format, arguments);
    va_end(arguments);
    if (path_climbs(file.data)) {
        error_set(error, ERROR_FORMAT, "%s: a list names \"%s\", which leads out of the folder; refused", dataset->root,
                  file.data);
        text_free(&file);
        return ERROR_FORMAT;
    }
    dataset_add_item(
        items, (struct dataset_item){file.data, label > INT32_MAX ? -1 : (int32_t)label, (uint32_t)items->count, 0});
    return OK;
}

void dataset_add_raw(struct dataset *dataset, enum split split, struct raw_images images, const int32_t *labels)
{
    struct dataset_items *items = &dataset->items[split];
    GROW(dataset->sources, dataset->source_count);
    images.first = (uint32_t)items->count;
    images.name = path_format("%s/%s", dataset->folder, images.name);
    dataset->sources[dataset->source_count++] = images;
    for (uint32_t i = 0; i < images.count; i++)
        dataset_add_item(items,
                         (struct dataset_item){NULL, labels[i], images.first + i, (uint32_t)dataset->source_count - 1});
}

void dataset_add_generated(struct dataset *dataset, enum split split, size_t label)
{
    struct dataset_items *items = &dataset->items[split];
    dataset_add_item(items, (struct dataset_item){NULL, (int32_t)label, (uint32_t)items->count, (uint32_t)split});
}

/* How many images of each class, or of all together, are trained on. */
static void count_train(const struct dataset_items *items, bool by_class, size_t groups, size_t *train)
{
    for (size_t i = 0; i < items->count; i++)
        train[by_class ? items->items[i].label : 0]++;
    for (size_t g = 0; g < groups; g++)
        train[g] = by_class && train[g] == 1 ? 1 : split_train_count(train[g]);
}

status dataset_split_randomly(struct dataset *dataset, struct dataset_items *items, uint64_t seed, bool by_class,
                              struct error *error)
{
    if (items->count >= SPLIT_ITEMS_MOST)
        return error_set(error, ERROR_FORMAT, "%s: %zu images are more than a seeded split can take", dataset->root,
                         items->count);
    size_t groups = by_class ? dataset->classes.count : 1;
    OWNED size_t *train = xcalloc(groups + 1, sizeof *train);
    OWNED uint32_t *order = xmalloc((items->count + 1) * sizeof *order);
    split_permutation(seed, items->count, order);
    count_train(items, by_class, groups, train);
    for (size_t i = 0; i < items->count; i++) {
        struct dataset_item *item = &items->items[order[i]];
        size_t *left = &train[by_class ? item->label : 0];
        dataset_add_item(&dataset->items[*left > 0 ? SPLIT_TRAIN : SPLIT_TEST], *item);
        *left -= *left > 0;
        item->file = NULL; /* it has moved */
    }
    dataset_items_free(items);
    return OK;
}

status dataset_split_positional(struct dataset *dataset, struct dataset_items *items, const char *part,
                                const char *kind, const char *kinds, size_t folders, struct error *error)
{
    if (folders != dataset->classes.count)
        return error_set(error, ERROR_FORMAT,
                         "%s/%s/%s: expected %zu %s folders, found %zu; other %s need a classnames.txt in %s with "
                         "their names in byte order of the folders",
                         dataset->root, dataset->folder, part, dataset->classes.count, kind, folders, kinds,
                         dataset->folder);
    TRY(dataset_require_images(dataset, items, error));
    return dataset_split_randomly(dataset, items, SPLIT_SEED, false, error);
}

void dataset_items_free(struct dataset_items *items)
{
    for (size_t i = 0; i < items->count; i++)
        free(items->items[i].file);
    free(items->items);
    *items = (struct dataset_items){0};
}

status dataset_require_images(const struct dataset *dataset, const struct dataset_items *items, struct error *error)
{
    size_t classes = dataset->classes.count;
    OWNED bool *seen = xcalloc(classes + 1, sizeof *seen);
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i].label >= 0 && (size_t)items->items[i].label < classes)
            seen[items->items[i].label] = true;
    size_t empty = 0;
    while (empty < classes && seen[empty])
        empty++;
    if (empty == classes || dataset->skip_missing)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s/%s: the class \"%s\" (label %zu) of %s has no images%s", dataset->root,
                     dataset->folder, dataset->classes.items[empty], empty, dataset->reader->name,
                     items == &dataset->items[SPLIT_TRAIN] ? " to train on" : "");
}

void dataset_warn_repeated(const struct dataset *dataset)
{
    for (int split = 0; split < SPLITS; split++) {
        const struct dataset_items *items = &dataset->items[split];
        SCOPED(strings_free) struct strings files = {0};
        size_t count = 0, first = 0;
        for (size_t i = 0; i < items->count; i++)
            strings_add(&files, items->items[i].file, strlen(items->items[i].file));
        strings_sort(&files);
        for (size_t i = 1; i < files.count; i++)
            if (strcmp(files.items[i], files.items[i - 1]) == 0 && count++ == 0)
                first = i;
        if (count > 0)
            log_warn(dataset->log,
                     "%s/%s: %zu of %zu %s images are listed before, and count as often as they are listed; the first "
                     "is %s. Name each once",
                     dataset->root, dataset->folder, count, items->count, split == SPLIT_TRAIN ? "training" : "test",
                     files.items[first]);
    }
}

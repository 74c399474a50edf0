/* tiny-imagenet-200/: wnids.txt has a class a line, in the order of the labels; train/<wnid>/images/<file>.JPEG are the
 * training images, val/val_annotations.txt has lines "file<tab>wnid<tab>box" of the labelled test images in
 * val/images/. Class names are those of class-incremental learning's public code; a class outside its 200 has its first
 * name in words.txt, lines "wnid<tab>name, synonym, …". */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/readers/reader.h"

/* Lines as in words.txt, in the order of the archive's wnids.txt, to which published class orders refer. */
EMBEDDED_FILES(tiny_imagenet_names);

struct reading {
    struct dataset *dataset;
    struct strings wnids, published, words; /* lines; words: once they are needed */
};

static bool is_jpeg(const char *name)
{
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".JPEG") == 0;
}

/* The line "wnid<tab>…" of a list; its count: none. */
static size_t find_line(const struct strings *lines, const char *wnid)
{
    size_t length = strlen(wnid), i = 0;
    while (i < lines->count && (strncmp(lines->items[i], wnid, length) != 0 || lines->items[i][length] != '\t'))
        i++;
    return i;
}

/* Under its first name in a line. */
static void add_class(struct dataset *dataset, const char *line)
{
    const char *names = strchr(line, '\t') + 1;
    OWNED char *name = xstrndup(names, strcspn(names, ","));
    dataset_add_class(dataset, name);
}

static status add_by_words(struct reading *reading, const char *wnid, struct error *error)
{
    const struct dataset *dataset = reading->dataset;
    if (reading->words.count == 0)
        TRY(dataset_read_lines(dataset, "words.txt", &reading->words, error));
    size_t i = find_line(&reading->words, wnid);
    if (i == reading->words.count)
        return error_set(error, ERROR_FORMAT, "%s/%s/words.txt: has no name for the class %s", dataset->root,
                         dataset->folder, wnid);
    add_class(reading->dataset, reading->words.items[i]);
    return OK;
}

static status add_classes(struct reading *reading, struct error *error)
{
    const struct strings *published = &reading->published;
    const struct dataset *dataset = reading->dataset;
    size_t known = 0, elsewhere = 0;
    for (size_t i = 0; i < reading->wnids.count; i++) {
        size_t k = find_line(published, reading->wnids.items[i]);
        known += k < published->count;
        elsewhere += k < published->count && k != i;
        if (k < published->count)
            add_class(reading->dataset, published->items[k]);
        else
            TRY(add_by_words(reading, reading->wnids.items[i], error));
    }
    if (known == published->count && elsewhere > 0)
        log_warn(dataset->log,
                 "%s/%s/wnids.txt: %zu of its classes are on another line than in the published archive, so that "
                 "data.class_order: tinyimagenet is not the published order",
                 dataset->root, dataset->folder, elsewhere);
    return OK;
}

static status add_training_images(struct dataset *dataset, const char *wnid, size_t label, struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(strings_free) struct strings files = {0};
    OWNED char *folder = path_format("train/%s/images", wnid);
    TRY(dataset_path(dataset, "", path, error));
    path[strlen(path) - 1] = 0;
    TRY(strings_list_files(&files, path, folder, is_jpeg, &dataset->left_out, error));
    for (size_t i = 0; i < files.count; i++)
        TRY(dataset_add_file(dataset, &dataset->items[SPLIT_TRAIN], label, error, "%s", files.items[i]));
    return OK;
}

static status add_test_image(void *context, const char *line, struct error *error)
{
    const struct reading *reading = context;
    const struct strings *wnids = &reading->wnids;
    const char *tab = strchr(line, '\t'), *wnid = tab != NULL ? tab + 1 : "";
    size_t size = strcspn(wnid, "\t"), label = 0;
    while (label < wnids->count &&
           (strlen(wnids->items[label]) != size || strncmp(wnids->items[label], wnid, size) != 0))
        label++;
    if (tab == NULL || label == wnids->count)
        return error_set(error, ERROR_FORMAT, "expected a file, a tab and a class of wnids.txt, found \"%s\"", line);
    return dataset_add_file(reading->dataset, &reading->dataset->items[SPLIT_TEST], label, error, "val/images/%.*s",
                            (int)(tab - line), line);
}

static status open_tiny_imagenet(struct dataset *dataset, const struct options *options, struct error *error)
{
    struct reading reading = {.dataset = dataset};
    strings_add_lines(&reading.published, (const char *)tiny_imagenet_names[0].data, tiny_imagenet_names[0].size);
    status result = dataset_read_lines(dataset, "wnids.txt", &reading.wnids, error);
    NEXT(result, add_classes(&reading, error));
    for (size_t i = 0; result == OK && i < reading.wnids.count; i++)
        result = add_training_images(dataset, reading.wnids.items[i], i, error);
    NEXT(result, dataset_require_images(dataset, &dataset->items[SPLIT_TRAIN], error));
    NEXT(result, dataset_each_line(dataset, "val/val_annotations.txt", add_test_image, &reading, error));
    strings_free(&reading.wnids);
    strings_free(&reading.published);
    strings_free(&reading.words);
    return result;
}

const struct dataset_reader dataset_tiny_imagenet = {
    .name = "tiny_imagenet",
    .source = "Tiny ImageNet: its training images, and the validation images to test",
    .folders = {"tiny-imagenet-200"},
    .options = dataset_listed_options,
    .listed = true,
    .open = open_tiny_imagenet,
};

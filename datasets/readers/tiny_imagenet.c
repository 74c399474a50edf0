/* tiny-imagenet-200/: wnids.txt has a class a line, counted here in the order of their WordNet ids; words.txt
 * "wnid<tab>name, synonym, …", train/<wnid>/images/<file>.JPEG the training images, val/val_annotations.txt lines
 * "file<tab>wnid<tab>box" of the labelled test images in val/images/. A class is called by its first name in words.txt. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "datasets/readers/reader.h"
#include "datasets/readers/registry.h"

static bool is_jpeg(const char *name)
{
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".JPEG") == 0;
}

/* Adds the class of wnid, under the name that words.txt has for it. */
static status add_class(struct dataset *dataset, const char *wnid, const struct strings *words, struct error *error)
{
    char name[256];
    for (size_t i = 0; i < words->count; i++) {
        const char *tab = strchr(words->items[i], '\t');
        if (tab == NULL || (size_t)(tab - words->items[i]) != strlen(wnid) ||
            strncmp(words->items[i], wnid, strlen(wnid)) != 0)
            continue;
        size_t size = strcspn(tab + 1, ",");
        size = size < sizeof name ? size : sizeof name - 1;
        memcpy(name, tab + 1, size);
        name[size] = 0;
        return dataset_add_class(dataset, name, error);
    }
    return error_set(error, ERROR_FORMAT, "%s/%s/words.txt: has no name for the class %s", dataset->root,
                     dataset->folder, wnid);
}

static status add_training_images(struct dataset *dataset, const char *wnid, size_t label, struct error *error)
{
    char path[DATASET_PATH];
    struct strings files = {0};
    char *folder = path_format("train/%s/images", wnid);
    TRY(dataset_path(dataset, "", path, error));
    path[strlen(path) - 1] = 0;
    status result = folder != NULL ? strings_list_files(&files, path, folder, is_jpeg, error)
                                   : error_set(error, ERROR_MEMORY, "no memory for a name");
    for (size_t i = 0; result == OK && i < files.count; i++)
        result = dataset_add_file(dataset, &dataset->items[SPLIT_TRAIN], label, error, "%s", files.items[i]);
    strings_free(&files);
    free(folder);
    return result;
}

static status add_test_images(struct dataset *dataset, const struct strings *wnids, struct error *error)
{
    struct strings lines = {0};
    status result = dataset_read_lines(dataset, "val/val_annotations.txt", &lines, error);
    for (size_t i = 0; result == OK && i < lines.count; i++) {
        const char *line = lines.items[i], *tab = strchr(line, '\t'), *wnid = tab != NULL ? tab + 1 : "";
        size_t size = strcspn(wnid, "\t"), label = 0;
        while (label < wnids->count &&
               (strlen(wnids->items[label]) != size || strncmp(wnids->items[label], wnid, size) != 0))
            label++;
        if (tab == NULL || label == wnids->count)
            result = error_set(error, ERROR_FORMAT,
                               "%s/%s/val/val_annotations.txt:%zu: expected a file, a tab and a class of "
                               "wnids.txt, found \"%s\"",
                               dataset->root, dataset->folder, i + 1, line);
        else
            result = dataset_add_file(dataset, &dataset->items[SPLIT_TEST], label, error, "val/images/%.*s",
                                      (int)(tab - line), line);
    }
    strings_free(&lines);
    return result;
}

static status open_tiny_imagenet(struct dataset *dataset, const struct options *options, struct error *error)
{
    (void)options;
    struct strings wnids = {0}, words = {0};
    status result = dataset_read_lines(dataset, "wnids.txt", &wnids, error);
    NEXT(result, dataset_read_lines(dataset, "words.txt", &words, error));
    if (result == OK)
        strings_sort(&wnids);
    for (size_t i = 0; result == OK && i < wnids.count; i++) {
        result = add_class(dataset, wnids.items[i], &words, error);
        NEXT(result, add_training_images(dataset, wnids.items[i], i, error));
    }
    NEXT(result, dataset_require_images(dataset, &dataset->items[SPLIT_TRAIN], error));
    NEXT(result, add_test_images(dataset, &wnids, error));
    strings_free(&wnids);
    strings_free(&words);
    return result;
}

static const char *const folders[] = {"tiny-imagenet-200", NULL};

const struct dataset_reader dataset_tiny_imagenet = {
    .name = "tiny_imagenet",
    .source = "Tiny ImageNet: its training images, and the validation images to test",
    .folders = folders,
    .options = dataset_listed_options,
    .listed = true,
    .open = open_tiny_imagenet,
};

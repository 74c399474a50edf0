/* Any folder of class folders: <path>/train/<class>/<file> and <path>/test/<class>/<file>, or <path>/<class>/<file>
 * with a seeded 80/20 split of each class. Class names are the folder names in byte order (<path>/classnames.txt overrides
 * them). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/readers/image_folder.h"
#include "datasets/readers/registry.h"

static const struct option own_options[] = {
    {.name = "path",
     .type = OPTION_TEXT,
     .help = "folder of the dataset below the data root; default: the task's own name"},
    {.name = "split_seed",
     .type = OPTION_INTEGER,
     .minimum = 0,
     .maximum = 4294967295.0,
     .fallback = "42",
     .help = "seed of the 80/20 split of each class, where there are no train and test folders"},
    {0}};

static void add_classes(struct dataset *dataset, const struct strings *names)
{
    for (size_t i = 0; i < names->count; i++)
        dataset_add_class(dataset, names->items[i]);
}

/* Names the folder without a "/." at its end. */
static status refuse(const struct dataset *dataset, struct error *error, const char *found)
{
    bool whole = strcmp(dataset->folder, ".") == 0;
    return error_set(error, ERROR_FORMAT, "%s%s%s: expected a folder for each class, with its images; found %s",
                     dataset->root, whole ? "" : "/", whole ? "" : dataset->folder, found);
}

/* Refuses a folder one level too high, where each dataset would be a class. */
static status refuse_datasets(const struct dataset *dataset, const struct strings *names, struct error *error)
{
    char path[DATASET_PATH], found[DATASET_PATH];
    for (size_t i = 0; i < names->count; i++) {
        TRY(dataset_path(dataset, names->items[i], path, error));
        if (!dataset_is_folder(path))
            continue;
        snprintf(found, sizeof found, "class folders within \"%s\"; set path to one dataset, as in path: %s%s%s",
                 names->items[i], strcmp(dataset->folder, ".") == 0 ? "" : dataset->folder,
                 strcmp(dataset->folder, ".") == 0 ? "" : "/", names->items[i]);
        return refuse(dataset, error, found);
    }
    return OK;
}

static status check_classes(const struct dataset *dataset, const struct strings *names, struct error *error)
{
    char found[80];
    if (names->count > 0)
        return refuse_datasets(dataset, names, error);
    snprintf(found, sizeof found, "%zu images and no folder", dataset->left_out.count);
    return refuse(dataset, error, dataset->left_out.count > 0 ? found : "no folder");
}

static status open_whole(struct dataset *dataset, uint64_t seed, struct error *error)
{
    struct strings names = {0};
    struct dataset_items items = {0};
    status result = image_folder_list(dataset, ".", &names, &items, error);
    NEXT(result, check_classes(dataset, &names, error));
    if (result == OK)
        add_classes(dataset, &names);
    NEXT(result, dataset_require_images(dataset, &items, error));
    NEXT(result, dataset_split_randomly(dataset, &items, seed, true, error));
    dataset_items_free(&items);
    strings_free(&names);
    return result;
}

/* The test folder's labels are positions among its own folders; they become the training classes'. */
static status map_labels(struct dataset *dataset, const struct strings *train, const struct strings *test,
                         struct error *error)
{
    struct dataset_items *items = &dataset->items[SPLIT_TEST];
    for (size_t i = 0; i < items->count; i++) {
        size_t label = strings_find_sorted(train, test->items[items->items[i].label]);
        if (label == train->count)
            return error_set(error, ERROR_FORMAT, "%s/%s: the class \"%s\" has test images but no train folder",
                             dataset->root, dataset->folder, test->items[items->items[i].label]);
        items->items[i].label = (int32_t)label;
    }
    return OK;
}

static status open_parts(struct dataset *dataset, struct error *error)
{
    struct strings names[SPLITS] = {{0}, {0}};
    char test[DATASET_PATH];
    TRY(dataset_path(dataset, "test", test, error));
    if (!file_is_directory(test))
        return refuse(dataset, error, "train without test beside it");
    status result = image_folder_list(dataset, "train", &names[SPLIT_TRAIN], &dataset->items[SPLIT_TRAIN], error);
    if (result == OK)
        add_classes(dataset, &names[SPLIT_TRAIN]);
    NEXT(result, dataset_require_images(dataset, &dataset->items[SPLIT_TRAIN], error));
    NEXT(result, image_folder_list(dataset, "test", &names[SPLIT_TEST], &dataset->items[SPLIT_TEST], error));
    NEXT(result, map_labels(dataset, &names[SPLIT_TRAIN], &names[SPLIT_TEST], error));
    strings_free(&names[SPLIT_TRAIN]);
    strings_free(&names[SPLIT_TEST]);
    return result;
}

static status refuse_missing(const struct dataset *dataset, struct error *error)
{
    struct directory below = {0};
    TRY(directory_list(&below, dataset->root, error));
    const char *near = nearest_word(dataset->folder, (const char *const *)below.names, below.count);
    error_set(error, ERROR_IO,
              "%s: there is no folder \"%s\"%s%s%s; expected one with a folder of images for each class", dataset->root,
              dataset->folder, near != NULL ? " (did you mean \"" : "", near != NULL ? near : "",
              near != NULL ? "\"?)" : "");
    directory_free(&below);
    return ERROR_IO;
}

static status open_folder(struct dataset *dataset, const struct options *options, struct error *error)
{
    char whole[DATASET_PATH], train[DATASET_PATH];
    const char *path = options_text(options, "path");
    dataset->given_folder = xstrdup(path != NULL ? path : ".");
    dataset->folder = dataset->given_folder;
    if (*dataset->folder == '/' || dataset_climbs(dataset->folder))
        return error_set(error, ERROR_ARGUMENT,
                         "path: expected a folder below the data root %s, found \"%s\"; link it there with ln -s",
                         dataset->root, dataset->folder);
    TRY(dataset_path(dataset, "", whole, error));
    TRY(dataset_path(dataset, "train", train, error));
    if (!file_is_directory(whole))
        return refuse_missing(dataset, error);
    if (file_is_directory(train))
        return open_parts(dataset, error);
    return open_whole(dataset, (uint64_t)options_integer(options, "split_seed"), error);
}

const struct dataset_reader dataset_folder = {
    .name = "folder",
    .source = "any folder of class folders, with train and test parts or a seeded 80/20 split of each class",
    .options = own_options,
    .open = open_folder,
};

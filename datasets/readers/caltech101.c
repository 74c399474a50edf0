/* caltech101/101_ObjectCategories/<category>/image_%04d.jpg. Categories are the folders sorted by bytes, without
 * BACKGROUND_Google; a folder with n entries has the images 1 to n, as torchvision assumes. Class names go by
 * position (caltech101/classnames.txt overrides them). Split by permutation. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "datasets/readers/reader.h"

#define CATEGORIES "101_ObjectCategories"

static status add_category(struct dataset *dataset, struct dataset_items *items, const char *category, size_t label,
                           struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(directory_free) struct directory directory = {0};
    OWNED char *name = path_format("%s/%s", CATEGORIES, category);
    size_t number = 0;
    TRY(dataset_path(dataset, name, path, error));
    TRY(directory_list(&directory, path, error));
    for (size_t i = 0; i < directory.count; i++)
        if (path_is_leftover(directory.names[i]))
            strings_format(&dataset->left_out, "%s/%s", name, directory.names[i]);
        else
            TRY(dataset_add_file(dataset, items, label, error, "%s/image_%04zu.jpg", name, ++number));
    return OK;
}

static status add_categories(struct dataset *dataset, const struct strings *names, struct error *error)
{
    SCOPED(dataset_items_free) struct dataset_items items = {0};
    size_t label = 0;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], "BACKGROUND_Google") != 0)
            TRY(add_category(dataset, &items, names->items[i], label++, error));
    return dataset_split_positional(dataset, &items, CATEGORIES, "category", "categories", label, error);
}

static status open_caltech101(struct dataset *dataset, const struct options *options, struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(strings_free) struct strings names = {0};
    TRY(dataset_add_positional_classes(dataset, error));
    TRY(dataset_path(dataset, CATEGORIES, path, error));
    TRY(strings_list_folders(&names, path, error));
    return add_categories(dataset, &names, error);
}

const struct dataset_reader dataset_caltech101 = {
    .name = "caltech101",
    .source = "Caltech 101, torchvision's layout; seeded 80/20 split",
    .folders = {"caltech101", "caltech-101"},
    .options = dataset_listed_options,
    .listed = true,
    .coop = &(
        const struct coop){.file = "split_zhou_Caltech101.json",
                           .places = {{"caltech-101", "101_ObjectCategories"}, {"caltech101", "101_ObjectCategories"}}},
    .open = open_caltech101,
};

/* food-101/meta/{train,test}.json: an object of class → ["class/id", …], in the order of the file;
 * images/class/id.jpg. Classes are the keys sorted by bytes; classes.txt has another order and is not used. */
#include <string.h>

#include "datasets/formats/json.h"
#include "datasets/readers/reader.h"

static void list_classes(struct dataset *dataset, const struct strings *keys, struct strings *classes)
{
    strings_copy(classes, (const char *const *)keys->items, keys->count);
    strings_sort(classes);
    for (size_t i = 0; i < classes->count; i++)
        dataset_add_class(dataset, classes->items[i]);
}

static status add_images(struct dataset *dataset, enum split split, const struct json_lists *lists,
                         const struct strings *classes, struct error *error)
{
    for (size_t i = 0; i < lists->values.count; i++) {
        const char *key = lists->keys.items[lists->of[i]];
        size_t label = strings_find_sorted(classes, key);
        if (label == classes->count)
            return error_set(error, ERROR_FORMAT, "%s/%s/meta/test.json: the class \"%s\" is not in train.json",
                             dataset->root, dataset->folder, key);
        TRY(dataset_add_file(dataset, &dataset->items[split], label, error, "images/%s.jpg", lists->values.items[i]));
    }
    return OK;
}

static status open_split(struct dataset *dataset, enum split split, struct strings *classes, struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(json_lists_free) struct json_lists lists = {0};
    TRY(dataset_path(dataset, split == SPLIT_TRAIN ? "meta/train.json" : "meta/test.json", path, error));
    TRY(json_lists_read(&lists, path, error));
    if (split == SPLIT_TRAIN)
        list_classes(dataset, &lists.keys, classes);
    return add_images(dataset, split, &lists, classes, error);
}

static status open_food(struct dataset *dataset, const struct options *options, struct error *error)
{
    SCOPED(strings_free) struct strings classes = {0};
    TRY(open_split(dataset, SPLIT_TRAIN, &classes, error));
    return open_split(dataset, SPLIT_TEST, &classes, error);
}

const struct dataset_reader dataset_food = {
    .name = "food",
    .source = "Food-101: meta/train.json and meta/test.json",
    .folders = {"food-101"},
    .options = dataset_listed_options,
    .listed = true,
    .coop = &(const struct coop){.file = "split_zhou_Food101.json", .places = {{"food-101", "images"}}},
    .open = open_food,
};

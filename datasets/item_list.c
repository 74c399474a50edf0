/* A dataset of training images that belong to other datasets: a reader that asks those. */
#include <stdlib.h>
#include <string.h>

#include "datasets/readers/reader.h"

static status read_item(const struct dataset *list, const struct dataset_item *item, struct image *image,
                        struct error *error)
{
    const struct dataset_place *place = (const struct dataset_place *)list->sources->owner + item->position;
    return dataset_read(place->dataset, SPLIT_TRAIN, place->item, image, NULL, error);
}

static const struct dataset_reader item_list = {.name = "item list", .source = "the caller", .read = read_item};

static status fill(struct dataset *list, const struct dataset_place *places, size_t count, struct error *error)
{
    struct dataset_place *copy = malloc(count * sizeof *copy);
    list->root = strdup("");
    list->sources = calloc(1, sizeof *list->sources);
    if (list->root == NULL || copy == NULL || list->sources == NULL) {
        free(copy);
        return error_set(error, ERROR_MEMORY, "no memory for a list of %zu images", count);
    }
    memcpy(copy, places, count * sizeof *copy);
    *list->sources = (struct raw_images){.owner = copy, .release = free, .name = strdup(item_list.name)};
    list->source_count = 1;
    TRY(strings_add(&list->classes, "image", strlen("image"), error));
    for (size_t i = 0; i < count; i++) {
        int label = dataset_label(places[i].dataset, SPLIT_TRAIN, places[i].item);
        TRY(dataset_add_item(&list->items[SPLIT_TRAIN], (struct dataset_item){.label = label, .position = (uint32_t)i},
                             error));
    }
    return OK;
}

status dataset_of_items(struct dataset **result, const struct dataset_place *places, size_t count, struct error *error)
{
    struct dataset *list = calloc(1, sizeof *list);
    if (list == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for a list of %zu images", count);
    list->reader = &item_list;
    status filled = fill(list, places, count, error);
    if (filled == OK)
        *result = list;
    else
        dataset_close(list);
    return filled;
}

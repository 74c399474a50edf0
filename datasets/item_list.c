/* A dataset of training images of other datasets, read by those datasets. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
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
    struct dataset_place *copy = xmalloc(count * sizeof *copy);
    list->root = xstrdup("");
    list->sources = xcalloc(1, sizeof *list->sources);
    memcpy(copy, places, count * sizeof *copy);
    *list->sources = (struct raw_images){.owner = copy, .release = free, .name = xstrdup(item_list.name)};
    list->source_count = 1;
    strings_add(&list->classes, "image", strlen("image"));
    for (size_t i = 0; i < count; i++) {
        int label = dataset_label(places[i].dataset, SPLIT_TRAIN, places[i].item);
        TRY(dataset_add_item(&list->items[SPLIT_TRAIN], (struct dataset_item){.label = label, .position = (uint32_t)i},
                             error));
    }
    return OK;
}

static void copy_classes(struct dataset *joint, const struct dataset *part)
{
    for (size_t c = 0; c < dataset_classes(part); c++) {
        const char *name = dataset_class_name(part, c);
        strings_add(&joint->classes, name, strlen(name));
    }
}

static void fill_joint(struct dataset *joint, const struct dataset *const *parts, size_t count, bool shared)
{
    struct dataset_item *items = joint->items[SPLIT_TRAIN].items;
    strings_free(&joint->classes);
    if (shared)
        copy_classes(joint, parts[0]);
    for (size_t k = 0; k < count && !shared; k++) {
        for (size_t i = 0; i < dataset_size(parts[k], SPLIT_TRAIN); i++)
            items++->label += (int32_t)joint->classes.count;
        copy_classes(joint, parts[k]);
    }
}

status dataset_join(struct dataset **result, const struct dataset *const *parts, size_t count, bool shared,
                    struct error *error)
{
    size_t images = 0;
    for (size_t k = 0; k < count; k++)
        images += dataset_size(parts[k], SPLIT_TRAIN);
    struct dataset_place *places = xmalloc(images * sizeof *places), *place = places;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < dataset_size(parts[k], SPLIT_TRAIN); i++)
            *place++ = (struct dataset_place){parts[k], (uint32_t)i};
    struct dataset *joint = NULL;
    status joined = dataset_of_items(&joint, places, images, error);
    free(places);
    if (joined == OK)
        fill_joint(joint, parts, count, shared);
    if (joined == OK)
        *result = joint;
    else
        dataset_close(joint);
    return joined;
}

status dataset_of_items(struct dataset **result, const struct dataset_place *places, size_t count, struct error *error)
{
    struct dataset *list = xcalloc(1, sizeof *list);
    list->reader = &item_list;
    status filled = fill(list, places, count, error);
    if (filled == OK)
        *result = list;
    else
        dataset_close(list);
    return filled;
}

/* Datasets that are not opened by name: class names alone, the images of a folder, images of other datasets. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/readers/image_folder.h"

/* *result: what was made, or NULL and nothing is left of it. */
static status finish(struct dataset **result, struct dataset *made, status filled)
{
    *result = filled == OK ? made : NULL;
    if (filled != OK)
        dataset_close(made);
    return filled;
}

/* --- names, from an adapters file --------------------------------------------------------------------------------- */

static const struct dataset_reader names_alone = {.name = "class names", .source = "the caller"};

void dataset_of_names(struct dataset **result, const char *const *classes, size_t class_count,
                      const char *const *templates, size_t template_count)
{
    struct dataset *dataset = *result = xcalloc(1, sizeof *dataset);
    dataset->reader = &names_alone;
    strings_copy(&dataset->classes, classes, class_count);
    strings_copy(&dataset->templates, templates, template_count);
}

/* --- a folder of images: references for distillation -------------------------------------------------------------- */

static const struct dataset_reader images_alone = {.name = "image folder", .source = "the caller"};

static status add_images(struct dataset *dataset, struct error *error)
{
    strings_add(&dataset->classes, "image", strlen("image"));
    TRY(image_folder_add(dataset, ".", 0, &dataset->items[SPLIT_TRAIN], error));
    return dataset->items[SPLIT_TRAIN].count > 0
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: expected a folder with images in it, at any depth; found none",
                           dataset->root);
}

status dataset_of_images(struct dataset **result, const char *path, struct error *error)
{
    if (!file_is_directory(path))
        return error_set(error, ERROR_IO, "there is no folder %s; expected one with images in it", path);
    struct dataset *dataset = xcalloc(1, sizeof *dataset);
    dataset->root = xstrdup(path);
    dataset->reader = &images_alone;
    dataset->folder = ".";
    return finish(result, dataset, add_images(dataset, error));
}

/* --- training images of other datasets, read by those ------------------------------------------------------------- */

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

status dataset_of_items(struct dataset **result, const struct dataset_place *places, size_t count, struct error *error)
{
    struct dataset *list = xcalloc(1, sizeof *list);
    list->reader = &item_list;
    return finish(result, list, fill(list, places, count, error));
}

static void copy_classes(struct dataset *joint, const struct dataset *part)
{
    strings_copy(&joint->classes, (const char *const *)part->classes.items, part->classes.count);
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
    status joined = dataset_of_items(result, places, images, error);
    free(places);
    if (joined == OK)
        fill_joint(*result, parts, count, shared);
    return joined;
}

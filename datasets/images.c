/* A dataset of all images below a folder, without test images: references for distillation. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/readers/image_folder.h"

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
    status added = add_images(dataset, error);
    if (added != OK) {
        dataset_close(dataset);
        return added;
    }
    *result = dataset;
    return OK;
}

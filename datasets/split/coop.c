#include "datasets/split/coop.h"

#include <string.h>

#include "core/file.h"
#include "core/text.h"
#include "datasets/formats/coop_split.h"

static status no_split(const struct dataset *dataset, struct error *error)
{
    struct text names = {0};
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    for (size_t i = 0; i < count; i++)
        if (readers[i]->coop != NULL)
            text_add(&names, "%s%s", names.size > 0 ? ", " : "", readers[i]->name);
    error_set(error, ERROR_ARGUMENT, "CoOp has no split of %s, only of %s; set split: torchvision for %s",
              dataset->reader->name, names.data != NULL ? names.data : "others", dataset->reader->name);
    text_free(&names);
    return ERROR_ARGUMENT;
}

static status no_file(const struct dataset *dataset, const struct coop *coop, struct error *error)
{
    struct text places = {0};
    for (size_t i = 0; i < COOP_PLACES && coop->places[i].folder != NULL; i++)
        if (i == 0 || strcmp(coop->places[i].folder, coop->places[i - 1].folder) != 0)
            text_add(&places, "%s%s/%s", i > 0 ? " or " : "", coop->places[i].folder, coop->file);
    error_set(error, ERROR_IO,
              "%s: expected CoOp's split of %s, %s, found none; DATASETS.md of the repository KaiyangZhou/CoOp says "
              "where to download it",
              dataset->root, dataset->reader->name, places.data != NULL ? places.data : coop->file);
    text_free(&places);
    return ERROR_IO;
}

static status choose_place(struct dataset *dataset, const struct coop *coop, const struct coop_place **place,
                           struct error *error)
{
    char file[DATASET_PATH], images[DATASET_PATH];
    *place = NULL;
    for (size_t i = 0; i < COOP_PLACES && coop->places[i].folder != NULL; i++) {
        dataset->folder = coop->places[i].folder;
        TRY(dataset_path(dataset, coop->file, file, error));
        if (!file_exists(file))
            continue;
        *place = &coop->places[i];
        TRY(dataset_path(dataset, coop->places[i].images, images, error));
        if (file_is_directory(images))
            return OK;
    }
    if (*place == NULL)
        return no_file(dataset, coop, error);
    return error_set(error, ERROR_IO, "%s/%s: expected a folder \"%s\" with the images of %s, found none",
                     dataset->root, (*place)->folder, (*place)->images, coop->file);
}

static status add_images(struct dataset *dataset, enum split split, const struct coop_list *list, const char *images,
                         struct error *error)
{
    for (size_t i = 0; i < list->files.count; i++)
        TRY(dataset_add_file(dataset, &dataset->items[split], (size_t)list->labels[i], error, "%s%s%s", images,
                             *images != 0 ? "/" : "", list->files.items[i]));
    return OK;
}

status coop_open(struct dataset *dataset, struct error *error)
{
    const struct coop *coop = dataset->reader->coop;
    const struct coop_place *place;
    char path[DATASET_PATH];
    struct coop_split split;
    if (coop == NULL)
        return no_split(dataset, error);
    TRY(choose_place(dataset, coop, &place, error));
    TRY(dataset_path(dataset, coop->file, path, error));
    TRY(coop_split_read(&split, path, error));
    for (size_t i = 0; i < split.classes.count; i++)
        dataset_add_class(dataset, split.classes.items[i]);
    status result = add_images(dataset, SPLIT_TRAIN, &split.train, place->images, error);
    NEXT(result, add_images(dataset, SPLIT_TEST, &split.test, place->images, error));
    coop_split_free(&split);
    return result;
}

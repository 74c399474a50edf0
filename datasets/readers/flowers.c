/* flowers-102/: setid.mat has the image ids of the splits ("trnid", "tstid", not sorted), imagelabels.mat the
 * 1-based label of every image, jpg/image_%05d.jpg the images. Validation images are not used. Class names go by
 * position (flowers-102/classnames.txt overrides them). */
#include "datasets/formats/mat.h"
#include "datasets/readers/reader.h"

static status read_numbers(const struct dataset *dataset, const char *file, const char *variable,
                           struct mat_numbers *numbers, struct error *error)
{
    char path[DATASET_PATH];
    TRY(dataset_path(dataset, file, path, error));
    return mat_read_numbers(path, variable, NULL, numbers, error);
}

static status add_images(struct dataset *dataset, enum split split, const struct mat_numbers *ids,
                         const struct mat_numbers *labels, struct error *error)
{
    for (size_t i = 0; i < ids->count; i++) {
        int id = ids->values[i];
        if (id < 1 || (size_t)id > labels->count || labels->values[id - 1] < 1)
            return error_set(error, ERROR_FORMAT,
                             "%s/%s/setid.mat: image %d has no label in imagelabels.mat, which holds %zu",
                             dataset->root, dataset->folder, id, labels->count);
        TRY(dataset_add_file(dataset, &dataset->items[split], (size_t)labels->values[id - 1] - 1, error,
                             "jpg/image_%05d.jpg", id));
    }
    return OK;
}

static status open_flowers(struct dataset *dataset, const struct options *options, struct error *error)
{
    static const char *const ids_names[SPLITS] = {[SPLIT_TRAIN] = "trnid", [SPLIT_TEST] = "tstid"};
    SCOPED(mat_numbers_free) struct mat_numbers labels = {0};
    TRY(dataset_add_positional_classes(dataset, error));
    TRY(read_numbers(dataset, "imagelabels.mat", "labels", &labels, error));
    for (int split = 0; split < SPLITS; split++) {
        SCOPED(mat_numbers_free) struct mat_numbers ids = {0};
        TRY(read_numbers(dataset, "setid.mat", ids_names[split], &ids, error));
        TRY(add_images(dataset, (enum split)split, &ids, &labels, error));
    }
    return OK;
}

const struct dataset_reader dataset_flowers = {
    .name = "flowers",
    .source = "Oxford Flowers 102: trnid and tstid of setid.mat",
    .folders = {"flowers-102", "oxford_flowers"},
    .options = dataset_listed_options,
    .listed = true,
    .coop = &(const struct coop){.file = "split_zhou_OxfordFlowers.json",
                                 .places = {{"oxford_flowers", "jpg"}, {"flowers-102", "jpg"}}},
    .open = open_flowers,
};

/* stanford_cars/: devkit/cars_train_annos.mat and cars_test_annos_withlabels.mat list file names and 1-based
 * classes, devkit/cars_meta.mat the class names; images in cars_train/ and cars_test/. */
#include "datasets/formats/mat.h"
#include "datasets/readers/reader.h"

static status open_split(struct dataset *dataset, enum split split, const char *name, struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(strings_free) struct strings files = {0};
    SCOPED(mat_numbers_free) struct mat_numbers classes = {0};
    TRY(dataset_path(dataset, name, path, error));
    TRY(mat_read_strings(path, "annotations", "fname", &files, error));
    TRY(mat_read_numbers(path, "annotations", "class", &classes, error));
    for (size_t i = 0; i < files.count; i++)
        TRY(dataset_add_file(dataset, &dataset->items[split], (size_t)((int64_t)classes.values[i] - 1), error, "%s/%s",
                             split == SPLIT_TRAIN ? "cars_train" : "cars_test", files.items[i]));
    return OK;
}

static status open_names(struct dataset *dataset, struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(strings_free) struct strings names = {0};
    TRY(dataset_path(dataset, "devkit/cars_meta.mat", path, error));
    TRY(mat_read_strings(path, "class_names", NULL, &names, error));
    for (size_t i = 0; i < names.count; i++)
        dataset_add_class(dataset, names.items[i]);
    return OK;
}

static status open_stanford_cars(struct dataset *dataset, const struct options *options, struct error *error)
{
    TRY(open_names(dataset, error));
    TRY(open_split(dataset, SPLIT_TRAIN, "devkit/cars_train_annos.mat", error));
    return open_split(dataset, SPLIT_TEST, "cars_test_annos_withlabels.mat", error);
}

const struct dataset_reader dataset_stanford_cars = {
    .name = "stanford_cars",
    .source = "Stanford Cars, torchvision's layout: its own train and test lists",
    .folders = {"stanford_cars"},
    .options = dataset_listed_options,
    .listed = true,
    .coop = &(const struct coop){.file = "split_zhou_StanfordCars.json", .places = {{"stanford_cars", ""}}},
    .open = open_stanford_cars,
};

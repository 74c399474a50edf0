/* eurosat/2750/<Class>/<file>: classes are the sorted sub-folders, images the files below with an image's ending.
 * Class names go by position (eurosat/classnames.txt overrides them). Split by permutation. */
#include "datasets/readers/reader.h"

static status open_eurosat(struct dataset *dataset, const struct options *options, struct error *error)
{
    (void)options;
    struct strings names = {0};
    struct dataset_items items = {0};
    TRY(dataset_add_positional_classes(dataset, error));
    status result = image_folder_list(dataset, "2750", &names, &items, error);
    NEXT(result, dataset_split_positional(dataset, &items, "2750", "class", "classes", names.count, error));
    dataset_items_free(&items);
    strings_free(&names);
    return result;
}

const struct dataset_reader dataset_eurosat = {
    .name = "eurosat",
    .source = "EuroSAT RGB, torchvision's layout; seeded 80/20 split",
    .folders = {"eurosat"},
    .options = dataset_listed_options,
    .coop = &(const struct coop){.file = "split_zhou_EuroSAT.json", .places = {{"eurosat", "2750"}}},
    .open = open_eurosat,
};

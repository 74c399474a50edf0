/* eurosat/2750/<Class>/<file>: classes are the sorted sub-folders, images the files below with an image's ending.
 * Class names go by position (eurosat/classnames.txt overrides them). Split by permutation. */
#include "core/file.h"
#include "datasets/readers/reader.h"

/* The folder of the class folders: torchvision's, or that of a later archive. */
static status find_classes(const struct dataset *dataset, const char **part, struct error *error)
{
    static const char *const parts[] = {"EuroSAT_RGB", "EuroSAT/2750", "EuroSAT", "2750"};
    char path[DATASET_PATH];
    for (size_t i = 4; i > 0; i--) {
        *part = parts[i - 1];
        TRY(dataset_path(dataset, *part, path, error));
        if (file_is_directory(path))
            return OK;
    }
    TRY(dataset_path(dataset, "AnnualCrop", path, error));
    *part = file_is_directory(path) ? "." : "2750";
    return OK;
}

static status open_eurosat(struct dataset *dataset, const struct options *options, struct error *error)
{
    SCOPED(strings_free) struct strings names = {0};
    SCOPED(dataset_items_free) struct dataset_items items = {0};
    const char *part;
    TRY(find_classes(dataset, &part, error));
    TRY(dataset_add_positional_classes(dataset, error));
    TRY(image_folder_list(dataset, part, &names, &items, error));
    return dataset_split_positional(dataset, &items, part, "class", "classes", names.count, error);
}

const struct dataset_reader dataset_eurosat = {
    .name = "eurosat",
    .source = "EuroSAT RGB, torchvision's layout; seeded 80/20 split",
    .folders = {"eurosat", "EuroSAT"},
    .options = dataset_listed_options,
    .coop = &(const struct coop){.file = "split_zhou_EuroSAT.json", .places = {{"eurosat", "2750"}}},
    .open = open_eurosat,
};

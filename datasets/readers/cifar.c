#include "datasets/readers/cifar.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/formats/cifar.h"

const struct option cifar_options[] = {{.name = "version",
                                        .type = OPTION_CHOICE,
                                        .choices = "any|python|binary",
                                        .fallback = "any",
                                        .help = "archive to read; any: python where both exist"},
                                       {0}};

static status open_file(struct dataset *dataset, const struct cifar_layout *layout, bool python, enum split split,
                        const char *name, struct error *error)
{
    char path[DATASET_PATH];
    struct cifar cifar;
    TRY(dataset_path(dataset, name, path, error));
    TRY(python ? cifar_read_pickle(&cifar, path, layout->label_key, error)
               : cifar_read_binary(&cifar, path, layout->label_bytes, error));
    struct raw_images images = {.name = (char *)name,
                                .count = (uint32_t)cifar.count,
                                .samples = cifar.pixels,
                                .stride = cifar.stride,
                                .width = CIFAR_SIDE,
                                .height = CIFAR_SIDE,
                                .channels = 3,
                                .owner = cifar.owner,
                                .release = cifar_release};
    status result = dataset_add_raw(dataset, split, images, cifar.labels, error);
    free(cifar.labels);
    return result;
}

static status open_names(struct dataset *dataset, const struct cifar_layout *layout, bool python, struct error *error)
{
    struct strings names = {0};
    char path[DATASET_PATH];
    TRY(dataset_path(dataset, python ? layout->python_names : layout->binary_names, path, error));
    status result =
        python ? cifar_read_names(&names, path, layout->python_key, error) : strings_read_lines(&names, path, error);
    for (size_t i = 0; result == OK && i < names.count; i++)
        dataset_add_class(dataset, names.items[i]);
    strings_free(&names);
    return result;
}

status cifar_open(struct dataset *dataset, const struct cifar_layout *layout, const struct options *options,
                  struct error *error)
{
    const char *version = options_text(options, "version");
    if (strcmp(version, "any") != 0)
        dataset->folder = strcmp(version, "python") == 0 ? layout->python : layout->binary;
    bool python = strcmp(dataset->folder, layout->python) == 0;
    TRY(open_names(dataset, layout, python, error));
    for (int split = 0; split < SPLITS; split++) {
        const char *const *files = python ? layout->python_files[split] : layout->binary_files[split];
        for (; *files != NULL; files++)
            TRY(open_file(dataset, layout, python, (enum split)split, *files, error));
    }
    return OK;
}

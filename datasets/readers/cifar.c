/* cifar-10-batches-py/{data_batch_1 … 5,test_batch,batches.meta} or cifar-10-batches-bin/{….bin,batches.meta.txt};
 * cifar-100-python/{train,test,meta} or cifar-100-binary/{train.bin,test.bin,fine_label_names.txt}, fine labels. */
#include <stdlib.h>
#include <string.h>

#include "datasets/formats/cifar.h"
#include "datasets/readers/reader.h"

enum { CIFAR_FILES = 6 };

struct cifar_layout {
    const char *python_names, *python_key; /* file and key of the class names */
    const char *binary_names;              /* file of the class names, one a line */
    const char *label_key;                 /* of the python version's labels */
    int label_bytes;                       /* of a binary record */
    const char *python_files[SPLITS][CIFAR_FILES], *binary_files[SPLITS][CIFAR_FILES]; /* end with NULL */
};

static const struct cifar_layout cifar10 = {
    .python_names = "batches.meta",
    .python_key = "label_names",
    .binary_names = "batches.meta.txt",
    .label_key = "labels",
    .label_bytes = 1,
    .python_files = {{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"}, {"test_batch"}},
    .binary_files = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                      "data_batch_5.bin"},
                     {"test_batch.bin"}},
};

static const struct cifar_layout cifar100 = {
    .python_names = "meta",
    .python_key = "fine_label_names",
    .binary_names = "fine_label_names.txt",
    .label_key = "fine_labels",
    .label_bytes = 2,
    .python_files = {{"train"}, {"test"}},
    .binary_files = {{"train.bin"}, {"test.bin"}},
};

static const struct option own_options[] = {{.name = "version",
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

static status open_cifar(struct dataset *dataset, const struct options *options, struct error *error)
{
    const struct cifar_layout *layout = dataset->reader == &dataset_cifar10 ? &cifar10 : &cifar100;
    const char *version = options_text(options, "version");
    if (strcmp(version, "any") != 0)
        dataset->folder = dataset->reader->folders[strcmp(version, "binary") == 0]; /* the first is Python's */
    bool python = dataset->folder == dataset->reader->folders[0];
    TRY(open_names(dataset, layout, python, error));
    for (int split = 0; split < SPLITS; split++) {
        const char *const *files = python ? layout->python_files[split] : layout->binary_files[split];
        for (; *files != NULL; files++)
            TRY(open_file(dataset, layout, python, (enum split)split, *files, error));
    }
    return OK;
}

const struct dataset_reader dataset_cifar10 = {
    .name = "cifar10",
    .source = "CIFAR-10, python or binary version: its own training and test sets",
    .folders = {"cifar-10-batches-py", "cifar-10-batches-bin"},
    .options = own_options,
    .open = open_cifar,
};

const struct dataset_reader dataset_cifar100 = {
    .name = "cifar100",
    .source = "CIFAR-100, python or binary version: its own training and test sets, fine labels",
    .folders = {"cifar-100-python", "cifar-100-binary"},
    .options = own_options,
    .open = open_cifar,
};

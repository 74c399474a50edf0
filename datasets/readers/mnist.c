/* MNIST/raw/{train,t10k}-{images-idx3,labels-idx1}-ubyte, or the same with .gz. Class names go by position
 * (MNIST/classnames.txt overrides them). */
#include <stdlib.h>

#include "core/alloc.h"
#include "datasets/formats/idx.h"
#include "datasets/readers/reader.h"

static void release_idx(void *owner)
{
    idx_free(owner);
    free(owner);
}

static status add_images(struct dataset *dataset, enum split split, const char *name, struct idx *images,
                         const struct idx *labels, struct error *error)
{
    size_t count = images->sizes[0];
    if (labels->sizes[0] != count || count > INT32_MAX || images->sizes[1] > INT32_MAX || images->sizes[2] > INT32_MAX)
        return error_set(error, ERROR_FORMAT, "%s/%s/%s: %zu images of %zu×%zu pixels, and %zu labels beside them",
                         dataset->root, dataset->folder, name, count, images->sizes[2], images->sizes[1],
                         labels->sizes[0]);
    int32_t *values = xmalloc((count + 1) * sizeof *values);
    struct idx *owner = xmalloc(sizeof *owner);
    for (size_t i = 0; i < count; i++)
        values[i] = labels->values[i];
    *owner = *images;
    *images = (struct idx){0}; /* owned by the dataset from here on */
    struct raw_images raw = {.name = (char *)name,
                             .count = (uint32_t)count,
                             .samples = owner->values,
                             .stride = owner->sizes[1] * owner->sizes[2],
                             .width = (int)owner->sizes[2],
                             .height = (int)owner->sizes[1],
                             .channels = 1,
                             .owner = owner,
                             .release = release_idx};
    status result = dataset_add_raw(dataset, split, raw, values, error);
    free(values);
    return result;
}

static status open_split(struct dataset *dataset, enum split split, const char *images_name, const char *labels_name,
                         struct error *error)
{
    char path[DATASET_PATH];
    struct idx images, labels;
    TRY(dataset_path(dataset, images_name, path, error));
    TRY(idx_read(&images, path, 3, error));
    status result = dataset_path(dataset, labels_name, path, error);
    NEXT(result, idx_read(&labels, path, 1, error));
    if (result == OK) {
        result = add_images(dataset, split, images_name, &images, &labels, error);
        idx_free(&labels);
    }
    idx_free(&images);
    return result;
}

static status open_mnist(struct dataset *dataset, const struct options *options, struct error *error)
{
    (void)options;
    TRY(dataset_add_positional_classes(dataset, error));
    TRY(open_split(dataset, SPLIT_TRAIN, "raw/train-images-idx3-ubyte", "raw/train-labels-idx1-ubyte", error));
    return open_split(dataset, SPLIT_TEST, "raw/t10k-images-idx3-ubyte", "raw/t10k-labels-idx1-ubyte", error);
}

const struct dataset_reader dataset_mnist = {
    .name = "mnist",
    .source = "MNIST, idx files as torchvision keeps them: its own training and test sets",
    .folders = {"MNIST"},
    .open = open_mnist,
};

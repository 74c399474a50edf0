/* MNIST/raw/{train,t10k}-{images-idx3,labels-idx1}-ubyte, or the same with .gz. Class names go by position
 * (MNIST/classnames.txt overrides them). */
#include "datasets/readers/mnist.h"

#include <errno.h>
#include <stdlib.h>

#include <zlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/readers/reader.h"

/* --- idx files ---------------------------------------------------------------------------------------------------- */

enum { UNSIGNED_BYTE = 8, GZIP_BEST_RATIO = 1032 };

/* Reads size bytes or reports why not. zlib passes files that are not gzip through unchanged. */
static status read_exactly(gzFile stream, uint8_t *target, size_t size, const char *path, struct error *error)
{
    for (size_t got = 0; got < size;) {
        size_t left = size - got;
        int part = gzread(stream, target + got, left < (1U << 30) ? (unsigned)left : 1U << 30);
        if (part <= 0) {
            int code, number = errno;
            const char *reason = gzerror(stream, &code);
            if (code == Z_ERRNO)
                return error_errno(error, number, "%s: cannot be read", path);
            return error_set(error, ERROR_FORMAT, "%s: ends early: expected %zu more bytes%s%s", path, left,
                             code != Z_OK ? ": " : "", code != Z_OK ? reason : "");
        }
        got += (size_t)part;
    }
    return OK;
}

/* Fills sizes; count is their product. Refuses sizes larger than a file of this size can unpack to. */
static status read_header(struct idx *idx, gzFile stream, uint64_t file_bytes, int rank, size_t *count,
                          const char *path, struct error *error)
{
    uint8_t header[4 + 4 * IDX_RANK_MOST];
    TRY(read_exactly(stream, header, 4, path, error));
    if (header[0] != 0 || header[1] != 0 || header[2] != UNSIGNED_BYTE || header[3] != rank)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected an idx file of unsigned bytes in %d dimensions (00 00 08 %02x), found %02x %02x %02x %02x",
            path, rank, (unsigned)rank, header[0], header[1], header[2], header[3]);
    TRY(read_exactly(stream, header + 4, 4 * (size_t)rank, path, error));
    uint64_t most = file_bytes * (gzdirect(stream) ? 1 : GZIP_BEST_RATIO), product = 1;
    for (int i = 0; i < rank; i++) {
        const uint8_t *size = header + 4 + 4 * i;
        idx->sizes[i] = (size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3];
        if (idx->sizes[i] != 0 && product > most / idx->sizes[i])
            return error_set(error, ERROR_FORMAT,
                             "%s: its header promises more bytes than a file of %llu bytes can hold", path,
                             (unsigned long long)file_bytes);
        product *= idx->sizes[i];
    }
    *count = (size_t)product;
    return OK;
}

static status read_stream(struct idx *idx, gzFile stream, uint64_t file_bytes, int rank, const char *path,
                          struct error *error)
{
    size_t count;
    uint8_t surplus;
    TRY(read_header(idx, stream, file_bytes, rank, &count, path, error));
    idx->values = malloc(count + 1);
    if (idx->values == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu values", path, count);
    TRY(read_exactly(stream, idx->values, count, path, error));
    int more = gzread(stream, &surplus, 1);
    if (more == 0)
        return OK;
    if (more > 0)
        return error_set(error, ERROR_FORMAT, "%s: has more bytes than its header says", path);
    int code;
    return error_set(error, ERROR_FORMAT, "%s: damaged: %s", path, gzerror(stream, &code));
}

static status read_file(struct idx *idx, const char *path, int rank, struct error *error)
{
    int file;
    uint64_t size;
    if (!file_exists(path))
        return error_errno(error, errno, "%s: cannot open this file, nor the same without .gz", path);
    TRY(file_check_meant(path, true, error));
    TRY(file_open(path, &file, &size, error));
    gzFile stream = xgiven(gzdopen(file, "rb"), 0);
    errno = 0;
    status result = memory_blame(read_stream(idx, stream, size, rank, path, error), path, error);
    if (gzclose(stream) != Z_OK && result == OK)
        result = error_set(error, ERROR_FORMAT, "%s: its gzip data end early", path);
    return result;
}

status mnist_read_idx(struct idx *idx, const char *path, int rank, struct error *error)
{
    *idx = (struct idx){0};
    OWNED char *name = file_exists(path) ? xstrdup(path) : path_format("%s.gz", path);
    status result = read_file(idx, name, rank, error);
    if (result != OK)
        mnist_free_idx(idx);
    return result;
}

void mnist_free_idx(struct idx *idx)
{
    free(idx->values);
    *idx = (struct idx){0};
}

/* --- the dataset -------------------------------------------------------------------------------------------------- */

static status add_images(struct dataset *dataset, enum split split, const char *name, struct idx *images,
                         const struct idx *labels, struct error *error)
{
    size_t count = images->sizes[0];
    if (labels->sizes[0] != count || count > INT32_MAX || images->sizes[1] > INT32_MAX || images->sizes[2] > INT32_MAX)
        return error_set(error, ERROR_FORMAT, "%s/%s/%s: %zu images of %zu×%zu pixels, and %zu labels beside them",
                         dataset->root, dataset->folder, name, count, images->sizes[2], images->sizes[1],
                         labels->sizes[0]);
    OWNED int32_t *values = xmalloc((count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = labels->values[i];
    struct raw_images raw = {.name = (char *)name,
                             .count = (uint32_t)count,
                             .samples = images->values,
                             .stride = images->sizes[1] * images->sizes[2],
                             .width = (int)images->sizes[2],
                             .height = (int)images->sizes[1],
                             .channels = 1,
                             .owner = images->values,
                             .release = free};
    *images = (struct idx){0}; /* owned by the dataset from here on */
    dataset_add_raw(dataset, split, raw, values);
    return OK;
}

static status open_split(struct dataset *dataset, enum split split, const char *images_name, const char *labels_name,
                         struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(mnist_free_idx) struct idx images = {0}, labels = {0};
    TRY(dataset_path(dataset, images_name, path, error));
    TRY(mnist_read_idx(&images, path, 3, error));
    TRY(dataset_path(dataset, labels_name, path, error));
    TRY(mnist_read_idx(&labels, path, 1, error));
    return add_images(dataset, split, images_name, &images, &labels, error);
}

static status open_mnist(struct dataset *dataset, const struct options *options, struct error *error)
{
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

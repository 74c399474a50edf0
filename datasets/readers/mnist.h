/* MNIST's idx files of unsigned bytes: 00 00 08 rank, one big-endian 32-bit size per dimension, then the values.
 *
 *     struct idx images;
 *     TRY(mnist_read_idx(&images, "MNIST/raw/train-images-idx3-ubyte", 3, error));   // or the same with .gz
 *     const uint8_t *pixels = images.values + i * images.sizes[1] * images.sizes[2];
 *     mnist_free_idx(&images);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { IDX_RANK_MOST = 3 };

struct idx {
    uint8_t *values;
    size_t sizes[IDX_RANK_MOST]; /* the first `rank` of them */
};

/* path, or path with ".gz" if that does not exist; gzip is recognised by content. The file must contain exactly what
 * its header says. The caller frees with mnist_free_idx. */
status mnist_read_idx(struct idx *idx, const char *path, int rank, struct error *error);
void mnist_free_idx(struct idx *idx);

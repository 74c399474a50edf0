/* The eleven datasets of MTIL in their published layouts, with published numbers of classes and images, files of typical
 * sizes and bytes, and drawings in the place of photographs. A task reads 64,000 training images: where a list names them,
 * no more are written.
 *
 *     struct rehearsal_data data = {.root = "rehearsal/data", .scale = 0.01, .threads = pool};
 *     TRY(rehearsal_data_write(&data, &error));
 *     … data.train, data.test, data.bytes …
 */
#pragma once

#include <stddef.h>

#include "core/status.h"
#include "core/threads.h"

struct rehearsal_data {
    const char *root;
    double scale;   /* of the published numbers of images; a class has an image to train and one to test at least */
    size_t classes; /* at most so many of a dataset; 0: all */
    struct threads *threads;
    size_t train, test, bytes; /* out: images, and bytes of all files of images */
};

status rehearsal_data_write(struct rehearsal_data *data, struct error *error);

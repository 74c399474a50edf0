/* The pixels of some test images, batch by batch: from memory, or decoded by a loader ahead of their use.
 *
 *     struct pixel_source source;
 *     TRY(pixel_source_open(&source, &what, error));
 *     for (size_t step = 0; …; step++) TRY(pixel_source_read(&source, step, &count, error));  // source.pixels
 *     pixel_source_close(&source);
 */
#ifndef MTIL_HARNESS_PIXEL_SOURCE_H
#define MTIL_HARNESS_PIXEL_SOURCE_H

#include "datasets/loader.h"

struct pixel_source {
    const struct dataset *dataset;
    const uint8_t *kept;   /* all test images, [n, R, R, 3], or NULL */
    const uint32_t *items; /* borrowed; indices of the test images to read */
    size_t n, resolution, batch;
    struct loader *loader;
    uint8_t *pixels; /* [batch, R, R, 3] */
};

/* Opens a source whose first six fields are set. */
status pixel_source_open(struct pixel_source *source, struct error *error);
status pixel_source_read(struct pixel_source *source, size_t step, size_t *count, struct error *error);
void pixel_source_close(struct pixel_source *source); /* also after a failed opening */

#endif

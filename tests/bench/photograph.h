/* Pictures that cost a decoder what photographs cost: a drawing of the built-in suite, enlarged, with as much grain as gives
 * its JPEG the bytes of a photograph.
 *
 *     struct photograph p = {.drawn = &suite_domains[4], .width = 500, .height = 375};
 *     TRY(photograph_choose_grain(&p, 0, "/tmp/bench/00.jpg", 85000, error));
 *     TRY(photograph_write(&p, 1, "/tmp/bench/01.jpg", &bytes, error));       // the same bytes every time
 */
#pragma once

#include <stddef.h>

#include "core/status.h"
#include "datasets/mini/suite.h"

struct photograph {
    const struct domain *drawn;
    int width, height;
    int grain; /* half its range */
};

/* Picture number `item`, as a JPEG of quality 90; *bytes: of the file. */
status photograph_write(const struct photograph *p, size_t item, const char *path, uint64_t *bytes,
                        struct error *error);

/* The grain with which this picture has at most so many bytes. */
status photograph_choose_grain(struct photograph *p, size_t item, const char *path, uint64_t bytes,
                               struct error *error);

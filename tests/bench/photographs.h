/* Pictures that cost a decoder what photographs cost: 500 × 375 pixels, structure at every scale, edges, soft colours.
 *
 *     photographs_write("/tmp/bench/train/a", 32);        // 00.jpg … 31.jpg, the same bytes every time
 */
#pragma once

#include "core/status.h"

enum { PHOTOGRAPH_WIDTH = 500, PHOTOGRAPH_HEIGHT = 375 };

/* JPEGs of quality 90, 4:2:0, about 85 kB each; folder exists. */
status photographs_write(const char *folder, int count, struct error *error);

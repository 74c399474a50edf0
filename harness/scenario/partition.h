/* Cuts items into parts of equal size whose items are as similar, or as different, as possible.
 *
 *     struct class_partition partition = {.similarity = s, .n = 100, .parts = 10, .goal = PARTITION_TOGETHER, .seed = 1};
 *     partition_cut(&partition, part_of);                            // part_of[i] < 10
 *
 * Raises (lowers) the mean similarity within parts by exchanging pairs between parts, as in Kernighan and Lin, "An
 * efficient heuristic procedure for partitioning graphs" (1970), from several starts, in which seeds far from one
 * another (close together) take turns to grow. Integer arithmetic only: equal input gives equal parts on any machine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "harness/config/settings.h"

enum { PARTITION_ITEMS = 4096 /* at most */, PARTITION_MIXED_PARTS = 4 /* at least, for PARTITION_MIXED */ };

struct class_partition {
    const int32_t *similarity; /* [n, n], symmetric, below 2^20 in size */
    size_t n, parts;           /* 1 ≤ parts ≤ n ≤ PARTITION_ITEMS */
    enum partition_goal goal;
    uint64_t seed; /* of the starts, or of a random cut */
};

/* part_of [n]: sizes differ by at most one; parts are numbered by their first item. PARTITION_MIXED: the first half of the
 * parts of PARTITION_TOGETHER, and then the items of the others apart. */
void partition_cut(const struct class_partition *partition, uint32_t *part_of);

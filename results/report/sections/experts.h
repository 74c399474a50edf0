/* The blocks that have experts, and values per block and task.
 *
 *     struct blocks blocks;
 *     TRY(blocks_load(call, configuration, &blocks, error));          // count 0: there are no experts
 *     struct figure …; blocks.label[0]                                 // "image 0"
 */
#ifndef MTIL_RESULTS_REPORT_EXPERTS_H
#define MTIL_RESULTS_REPORT_EXPERTS_H

#include "results/report/section.h"

enum { BLOCKS_MOST = 128 };

struct block {
    const char *encoder;
    int64_t block;
};

struct blocks {
    size_t count;
    size_t experts; /* of the block that has most */
    struct block block[BLOCKS_MOST];
    const char *label[BLOCKS_MOST];
    size_t tasks[BLOCKS_MOST]; /* of the first used run: tasks trained so far */
};

status blocks_load(const struct section_call *call, const struct configuration *configuration, struct blocks *blocks,
                   struct error *error);

/* The same from rows of encoder, block, experts and tasks, which sql selects for the run ?1. */
status blocks_load_from(const struct section_call *call, int64_t run, const char *sql, struct blocks *blocks,
                        struct error *error);

/* blocks->count when there is no such block. */
size_t blocks_find(const struct blocks *blocks, const char *encoder, int64_t block);

/* A shaded table of a value per block and task, and the same for papers. */
struct block_values {
    const char *value_title; /* what the values are */
    const char *name, *label, *caption;
    const struct blocks *blocks;
    const double *value; /* [blocks, tasks] */
    double low, high;
    int decimals;
};
status blocks_show(const struct section_call *call, const struct block_values *values, struct error *error);

#endif

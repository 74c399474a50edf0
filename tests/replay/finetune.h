/* A folder like fixtures/methods/finetune_small, one of its methods, and the experiment that replays it: the trainer, the
 * methods and the resume files of the program, on recorded batches and texts.
 *
 *     struct finetune r = {.r = replay};
 *     finetune_open(&r);
 *     finetune_choose(&r, "zscl");
 *     finetune_start(&r, &experiment);
 *     ... train_task ...
 *     run_close(experiment);
 *     finetune_close(&r);
 */
#pragma once

#include "harness/run/run.h"
#include "harness/train/recorded.h"
#include "tests/replay/replay.h"

enum { FINETUNE_TASKS = 16 };

/* A term of the loss that the method's options can leave out. */
enum term { TERM_IMAGE, TERM_TEXT, TERM_L2, TERMS };

struct finetune {
    struct replay *r;
    struct safetensors *data[FINETUNE_TASKS];
    char *weights;
    size_t tasks;
    struct settings settings;
    struct recorded recorded;
    /* of the method */
    const struct method *method;
    struct method watched;          /* the method with what compares on top */
    struct options *options;        /* as config.json has them */
    struct options *without[TERMS]; /* the same with a weight of 0; NULL: the method has no such term */
};

void finetune_open(struct finetune *r);
void finetune_close(struct finetune *r);

/* A method that the folder has numbers of. */
void finetune_choose(struct finetune *r, const char *name);

/* From the weights before the first task. r->watched is what is trained with. */
void finetune_start(struct finetune *r, struct run **experiment);

/* Of the folder's config.json. */
const json_t *finetune_task(const struct finetune *r, size_t task);

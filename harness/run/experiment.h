/* One run in memory: the suite's datasets, the model, the adapters, and what a training step needs. opening.h opens one.
 */
#ifndef MTIL_HARNESS_RUN_EXPERIMENT_H
#define MTIL_HARNESS_RUN_EXPERIMENT_H

#include "harness/config/settings.h"
#include "harness/run/data.h"
#include "harness/run/model.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"
#include "harness/train/method.h"

/* The place of an experiment among those that train together on several GPUs: replicas.h. */
struct distributed_work {
    struct process_group *group; /* NULL: this one works alone */
    size_t rank, ranks;          /* 0 and 0: this one works alone */
};

struct experiment {
    const struct suite *suite;
    struct settings settings;
    uint64_t seed;
    char identity[DIGEST_SIZE];        /* the suite's hash until the inputs are known (inputs.h), then theirs */
    char identity_before[DIGEST_SIZE]; /* of a run that goes on with mended data; "": it does not */
    const struct log *log;
    const struct stop *stop; /* looked at in what takes long and is given no other; NULL: never */
    struct model model;
    struct data data;
    struct method_run method; /* state NULL: nothing is trained here */
    size_t evaluation_batch;
    struct distributed_work work;
    struct replicas *replicas;       /* that train along; NULL: none */
    const struct recorded *recorded; /* stands in for datasets and texts, in replays; NULL: nothing does */
    struct expert_changes changes;   /* merges, skips and freezes that the results do not have yet */
    /* the text features' inputs of the current task, in the task's arena */
    struct texts prompts;
    struct {
        const int32_t *images, *texts; /* device: the task's router for every sample */
    } routers;
};

/* A batch of a task on the device. */
struct batch {
    struct tensor images; /* u8 [count, R, R, 3], recorded ones f32 [count, 3, R, R] */
    const int32_t *labels;
    size_t count;
    size_t first, total; /* its place in a batch that is shared out among GPUs, and the images of that */
};

/* Which of the towers an update changes, where the weights of both are there to be trained; logit_scale stays. */
status experiment_choose_groups(struct experiment *experiment, unsigned groups, struct error *error);

/* Sets learning rate, task and step for the operations of a step. */
status experiment_set_step(struct experiment *experiment, size_t task, size_t step, double rate, struct error *error);

/* n times value in device memory of the arena. */
status experiment_fill(struct experiment *experiment, struct arena *arena, size_t n, int32_t value,
                       const int32_t **filled, struct error *error);

/* Test images to encode at a time: run.evaluation_batch, or what half of the device's free memory holds, at most 512, a
 * power of two; 64 where the device is the host. Decided when the experiment is opened. */
size_t experiment_evaluation_batch(const struct experiment *experiment);

/* What the model is called in results: the weights' file name without its folder and ending. The caller frees. */
char *experiment_model_name(const struct experiment *experiment);

#endif

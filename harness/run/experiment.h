/* One run in memory: the datasets of the suite, the model, the adapters, and the buffers of a training step. opening.h
 * opens one.
 */
#ifndef MTIL_HARNESS_RUN_EXPERIMENT_H
#define MTIL_HARNESS_RUN_EXPERIMENT_H

#include "harness/config/settings.h"
#include "harness/heads/model.h"
#include "harness/scenario/data.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"
#include "harness/train/method.h"

/* The rank of an experiment among the replicas that train together on several GPUs (replicas.h). */
struct distributed_work {
    struct process_group *group; /* NULL: there are no other ranks */
    size_t rank, ranks;          /* 0 and 0: likewise */
};

struct experiment {
    const struct suite *suite;
    struct settings settings;
    uint64_t seed;
    char identity[DIGEST_SIZE];        /* hash of the settings until the inputs are read, then of both (inputs.h) */
    char identity_before[DIGEST_SIZE]; /* previous identity of a run resumed with changed data; "": none */
    const struct log *log;
    const struct stop *stop; /* polled by long operations that take no stop of their own; NULL: never */
    struct model model;
    struct data data;
    struct method_run method; /* state NULL: nothing is trained */
    size_t evaluation_batch;
    double waited; /* seconds in which the host waited for images */
    struct distributed_work work;
    struct replicas *replicas;        /* the other ranks; NULL: none */
    const struct recorded *recorded;  /* replaces datasets and texts in replays; NULL: nothing does */
    struct expert_changes changes;    /* merges, skips and freezes not yet recorded */
    struct merge_effect_list effects; /* likewise */
    /* of the task being trained, in the task's arena */
    struct head_classes classes;
    const int32_t *routers; /* device: the task's for every image */
};

/* A batch of a task on the device. */
struct batch {
    struct tensor images;       /* u8 [count, R, R, 3]; recorded: f32 [count, 3, R, R] */
    struct image_labels labels; /* two per image with mixup or CutMix; a loss uses both */
    size_t count;
    size_t first, total; /* its position in a batch that is shared among ranks, and the size of that batch */
};

/* Marks the towers that an update changes, if the weights of both are trainable; logit_scale stays. */
status experiment_choose_groups(struct experiment *experiment, unsigned groups, struct error *error);

/* Sets learning rate, task and step for the operations of a step. */
status experiment_set_step(struct experiment *experiment, size_t task, size_t step, double rate, struct error *error);

/* n times value in device memory of the arena. */
status experiment_fill(struct experiment *experiment, struct arena *arena, size_t n, int32_t value,
                       const int32_t **filled, struct error *error);

/* The number of test images encoded at a time: run.evaluation_batch, or as many as half of the free device memory
 * holds, a power of two of at most 512; 64 on the CPU. Chosen when the experiment is opened. */
size_t experiment_evaluation_batch(const struct experiment *experiment);

/* Width of the features of images. */
size_t experiment_feature_width(const struct experiment *experiment);

/* The name of the model in results: the file name of the weights without folder and extension. The caller frees. */
char *experiment_model_name(const struct experiment *experiment);

#endif

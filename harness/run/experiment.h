/* One run in memory: the suite's datasets, the model, the adapters, and what a training step needs. opening.h opens one.
 */
#ifndef MTIL_HARNESS_RUN_EXPERIMENT_H
#define MTIL_HARNESS_RUN_EXPERIMENT_H

#include "datasets/survey.h"
#include "harness/config/settings.h"
#include "harness/run/file_digest.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"
#include "harness/train/method.h"
#include "models/clip.h"
#include "models/tokenizer.h"

struct task {
    size_t index;
    size_t first_class; /* of its classes in the label space: 0, or, in one of all tasks, after those of tasks before */
    struct task_settings settings;
    char *part_name; /* storage for the name of a part of a dataset; NULL: the suite has it */
    struct dataset *dataset;
    struct survey survey;  /* of the dataset; zeros until tasks_survey */
    int32_t *prompts;      /* host [classes, context]: the first template of each class, for training */
    int32_t *test_prompts; /* host [classes, templates, context] */
};

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
    struct file_stamp weights_read, vocabulary_read; /* of the files when they were read */
    size_t evaluation_batch;
    unsigned groups;          /* that are trained: set of enum parameter_group */
    struct method_run method; /* state NULL: nothing is trained here */
    const struct log *log;
    const struct stop *stop; /* looked at in what takes long and is given no other; NULL: never */
    struct tokenizer *tokenizer;
    struct backend *backend;
    struct arena model, per_task, step; /* for the run, for a task, for a step: method.h says when they are emptied */
    struct distributed_work work;
    struct replicas *replicas; /* that train along; NULL: none */
    struct clip *clip;
    struct adapters *adapters;      /* NULL unless the method trains them */
    struct step_state *state;       /* device */
    float *loss;                    /* device, one value */
    struct step_guard *guard;       /* device; guard.h */
    int32_t *found;                 /* device, one value: what guard.h found not to be finite */
    int32_t *counts_before[TOWERS]; /* device: the experts' selection counts before a step */
    float logit_scale;              /* exp, read when the training of a task begins: no method changes it */
    size_t task_count, class_count; /* classes of all tasks together */
    struct task *tasks;
    struct label_split *cut; /* of `whole` into the tasks; NULL: every task is a dataset */
    struct task whole;
    struct cache *cache;             /* of their decoded images */
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

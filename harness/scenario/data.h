/* The data of a run: its tasks, and the cache of their images.
 *
 * For a method that is `joint`, one task has the training images and the classes of all tasks:
 *
 *     joint_open(&data, training);                          // after the tasks; training: the options of that section
 *     joint_gather(&data);                                  // after images have been left out
 *     const struct task *task = joint_or(&data, k);
 *
 * Its classes are the classes of the tasks one after the other, even where names repeat, each with the prompt of its
 * own task; with shared classes, those of all tasks with the prompts of the first. Its iterations are the sum over all
 * tasks; batch, learning rate, warm-up and the rest come from the section `training`, whatever `tasks` says. Its index
 * is the last task's.
 */
#pragma once

#include "adapters/files/adapter_metadata.h"
#include "datasets/cache/cache.h"
#include "datasets/survey.h"
#include "harness/config/settings.h"
#include "harness/scenario/task_settings.h"

struct task {
    size_t index;
    size_t first_class; /* of its classes in a joint label space, after the previous tasks' classes; otherwise 0 */
    struct task_settings settings;
    char *part_name; /* storage for the name of a part of a dataset; NULL: the name is the suite's */
    struct dataset *dataset;
    bool planned;         /* the dataset has published sizes, and nothing that could be read */
    size_t all_images;    /* training images before data.shots */
    struct survey survey; /* of the dataset; zeros until surveyor_tasks */
    /* of the head `text`; NULL: it has another one */
    int32_t *prompts;      /* host [classes, context]: the first template of each class, for training */
    int32_t *test_prompts; /* host [classes, templates, context] */
};

struct data {
    size_t task_count, class_count; /* classes of all tasks together */
    bool shared_classes;            /* every task has all of them */
    struct task *tasks;
    struct label_split *cut; /* of `whole` into the tasks; NULL: every task is a dataset */
    struct task whole;
    struct task joint;               /* all tasks together; dataset NULL: they are trained one by one */
    struct cache *cache;             /* of their decoded images */
    const struct recorded *recorded; /* replaces datasets and texts in replays (train/batches.h); NULL: nothing does */
};

/* The number of the task's first class among those of all tasks, whatever evaluation.label_space is. */
size_t data_first_class(const struct data *data, const struct task *task);

/* The labels that an image of the task may get after task `after` (−1: before training), numbered as evaluation.label_space
 * asks. */
struct label_range {
    size_t first, end;
};
struct label_range data_labels(const struct data *data, enum label_space_kind space, int64_t after,
                               const struct task *task);

/* Describes the task's dataset for the metadata of a file: the name, the classes and the templates, which are
 * borrowed. */
void task_describe(struct adapter_task *description, const struct task *task, bool trained);

void joint_open(struct data *data, const struct options *training);
void joint_gather(struct data *data); /* does nothing where tasks are trained one by one */

/* The first task to train once the tasks before k are done. */
size_t joint_first(const struct data *data, size_t k);

/* The task trained as task k: the joint task if there is one and k is the last, else the task itself. */
const struct task *joint_or(const struct data *data, size_t k);

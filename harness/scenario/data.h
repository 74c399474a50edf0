/* The data of a run: its tasks, and the cache of their images. */
#pragma once

#include "adapters/files/adapter_metadata.h"
#include "datasets/cache/cache.h"
#include "datasets/survey.h"
#include "harness/scenario/task_settings.h"

struct task {
    size_t index;
    size_t first_class; /* of its classes in a joint label space, after the previous tasks' classes; otherwise 0 */
    struct task_settings settings;
    char *part_name; /* storage for the name of a part of a dataset; NULL: the name is the suite's */
    struct dataset *dataset;
    size_t all_images;    /* training images before data.shots */
    struct survey survey; /* of the dataset; zeros until tasks_survey */
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
    struct task joint;   /* all tasks together (harness/scenario/joint.h); dataset NULL: they are trained one by one */
    struct cache *cache; /* of their decoded images */
    const struct recorded *recorded; /* replaces datasets and texts in replays (train/recorded.h); NULL: nothing does */
};

/* The number of the task's first class among those of all tasks, whatever evaluation.label_space is. */
size_t data_first_class(const struct data *data, const struct task *task);

/* Its dataset for the metadata of a file: the name, the classes and the templates, which are borrowed. */
void task_describe(struct adapter_task *description, const struct task *task, bool trained);

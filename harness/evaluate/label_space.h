/* The classes that a test image is compared with (evaluation.label_space): the classes of its own task; in X-TAIL, of
 * all tasks, concatenated; in class-incremental learning, of the tasks trained so far; in open-domain learning, of the tasks
 * trained so far if its own is one of them, and otherwise of its own. A name that two tasks share is two classes.
 *
 *     struct label_space space = {.cache = cache, .seen = tasks};
 *     TRY(label_space_features(&space, j, router, &model->task_memory, &classes, error));      // [classes, embed]
 *     label_space_refresh(&space);                                                      // the model has changed
 *     label_space_free(&space);
 *
 * Task j's class c is row data->tasks[j].first_class + c.
 */
#pragma once

#include "harness/evaluate/feature_cache.h"

struct label_space {
    struct feature_cache *cache;
    size_t seen;  /* with label_space seen and open: the classes of the first `seen` tasks compete */
    float *joint; /* [classes of joint_tasks tasks, embed] without adapters, until the model changes; NULL: none */
    size_t joint_tasks;
};

/* Rows of class features. */
struct class_range {
    size_t first, count;
};

/* Whether the classes that compete change with the tasks that are trained. */
bool label_space_grows(enum label_space_kind kind);

/* Those of `rows` class features that an image of task j is compared with: all, or with `open` those of a task yet to come. */
struct class_range label_space_range(const struct label_space *space, size_t j, size_t rows);

/* Class features with a router (−1: adapters off) in the arena, for images of task j. */
status label_space_features(struct label_space *space, size_t j, int router, struct arena *arena,
                            struct tensor *features, struct error *error);

/* The features of all tasks' classes, whatever evaluation.label_space is: [all classes, embed]. */
status label_space_all(struct label_space *space, int router, struct arena *arena, struct tensor *features,
                       struct error *error);
void label_space_refresh(struct label_space *space);
void label_space_free(struct label_space *space);

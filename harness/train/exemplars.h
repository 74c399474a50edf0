/* Exemplars: the images of earlier tasks that a method keeps (iCaRL: Rebuffi et al., CVPR 2017, with one pool per task).
 *
 *     struct exemplars memory = {.capacity = 10000};
 *     exemplars_herd(features, n, width, exemplars_share(&memory), picks, NULL);
 *     exemplars_add(&memory, picks, exemplars_share(&memory));      // after the task; older shares shrink
 *     ... exemplars_at(&memory, i, &task, &item) ...
 *     exemplars_free(&memory);
 */
#pragma once

#include "harness/train/method.h"

struct exemplars {
    size_t capacity; /* images of all tasks together */
    size_t tasks;    /* tasks that have exemplars */
    struct {
        size_t count;
        uint32_t *items; /* in the order of picking */
    } * of_task;
};

/* The number of images that each task may keep after one more task: ⌊capacity / (tasks + 1)⌋. */
size_t exemplars_share(const struct exemplars *exemplars);

/* Greedy herding: pick k is the row whose addition brings the mean of the picks nearest to μ, the mean of all rows after
 * normalising each (μ is not normalised again); ties: the lowest row. features [n, width]; picks [min(count, n)];
 * distances of the same length, or NULL: ‖μ − mean of the first k picks‖. */
void exemplars_herd(const float *features, size_t n, size_t width, size_t count, uint32_t *picks, double *distances);

/* Keeps the first picks of the task that ended, at most exemplars_share, and shortens the lists of the tasks before. */
void exemplars_add(struct exemplars *exemplars, const uint32_t *picks, size_t count);

size_t exemplars_count(const struct exemplars *exemplars);
/* Exemplar i, oldest task first, each in the order of picking. */
void exemplars_at(const struct exemplars *exemplars, size_t i, size_t *task, uint32_t *item);

/* Keeps the exemplars in a resume file; for a method's keep. */
status exemplars_keep(struct exemplars *exemplars, const struct serializer *serializer, struct error *error);
void exemplars_free(struct exemplars *exemplars); /* keeps capacity */

/* Chooses the exemplars of a task that ended by herding with the current model, on all training images of the task in the evaluation
 * transform. */
status exemplars_learn(struct exemplars *exemplars, const struct method_run *run, const struct task *task,
                       struct error *error);

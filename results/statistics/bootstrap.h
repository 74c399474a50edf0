/* Intervals over seeds and images at once: a difference between two policies varies with the seed and with the images
 * that happen to be in the test set.
 *
 *     struct bootstrap_task tasks[] = {{.images = 200, .difference = right_b_less_right_a}};
 *     struct bootstrap_interval of[2];                                  // the task, and the mean over tasks
 *     bootstrap_seeds_and_images(tasks, 1, seeds, &(struct bootstrap_plan){.seed = 1}, of);
 *
 * Each draw takes as many seeds and as many images of each task as there are, with replacement; the seeds of a draw
 * share the images, because they share the test set (Owen, "The pigeonhole bootstrap", Annals of Applied Statistics
 * 2007). The interval holds the middle of the drawn means (Efron's percentile interval). With fewer than about ten
 * seeds it is too narrow by roughly √(1 − 1/seeds); Student's interval over the seeds is then more reliable.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BOOTSTRAP_DRAWS 2000

struct bootstrap_task {
    size_t images;            /* at least 1 */
    const int8_t *difference; /* [seeds, images] of −1, 0, 1 */
};

struct bootstrap_plan {
    uint64_t seed; /* of Philox */
    size_t draws;  /* 0: BOOTSTRAP_DRAWS */
};

struct bootstrap_interval {
    double estimate, low, high; /* 95%, in percent of the images */
};

/* interval [tasks + 1]: one for each task, then one for the mean over tasks. Tasks, seeds ≥ 1. */
void bootstrap_seeds_and_images(const struct bootstrap_task *tasks, size_t task_count, size_t seeds,
                                const struct bootstrap_plan *plan, struct bootstrap_interval *interval);

/* The same with tasks in the place of images, for the spread over datasets, too: each draw takes as many seeds and tasks
 * as there are. value [seeds, tasks], in points. */
struct bootstrap_interval bootstrap_seeds_and_tasks(const double *value, size_t seeds, size_t tasks,
                                                    const struct bootstrap_plan *plan);

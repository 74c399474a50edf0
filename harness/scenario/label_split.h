/* Cuts one dataset into a sequence of tasks. data.split_by: labels cuts by the meaning of the class names, with similar
 * classes together, apart, at random, or together in half of the tasks, to study merging with similar and with dissimilar
 * tasks. data.split_by: order cuts in a given order of the classes, as in class-incremental learning.
 *
 *     TRY(label_split_create(&split, experiment, whole, error));
 *     split->task_of[c] …                                           // the task of class c
 *     label_split_print(split, whole->dataset, stdout);             // classes per task, and their similarity
 *
 * Similarity is the cosine of the text features of the class names in zero-shot evaluation. The cut depends on the
 * suite alone, not on the seed of a run.
 */
#ifndef MTIL_HARNESS_SCENARIO_LABEL_SPLIT_H
#define MTIL_HARNESS_SCENARIO_LABEL_SPLIT_H

#include <stdio.h>

#include "harness/run/experiment.h"

struct label_split {
    size_t classes, tasks;
    uint32_t *task_of;      /* [classes] */
    uint32_t *order;        /* [classes] the classes, task after task, in each task's order */
    double *cosines;        /* [tasks, tasks] mean over pairs of different classes; NAN without any */
    double within, between; /* the same over all pairs within tasks, between tasks */
};

/* Cuts the classes of whole, whose prompts are tokenized, according to the experiment's settings. */
status label_split_create(struct label_split **split, struct experiment *experiment, const struct task *whole,
                          struct error *error);
void label_split_destroy(struct label_split *split); /* NULL is allowed */

/* Prints lines that begin with "# ", like estimate_print. */
void label_split_print(const struct label_split *split, const struct dataset *whole, FILE *out);

#endif

/* One dataset as a sequence of tasks, cut by what its class names mean (data.split_by: labels): similar classes together,
 * or apart, or at random, to study what merging does where tasks are alike and where they are not.
 *
 *     TRY(label_split_create(&split, experiment, whole, error));
 *     split->task_of[c] …                                           // the task of class c
 *     label_split_print(split, whole->dataset, stdout);             // classes per task, and how alike they are
 *
 * Similarity is the cosine of the class names' text features under the untouched model, as zero-shot evaluation has
 * them. The cut depends on the suite alone, not on a run's seed.
 */
#ifndef MTIL_HARNESS_SCENARIO_LABEL_SPLIT_H
#define MTIL_HARNESS_SCENARIO_LABEL_SPLIT_H

#include <stdio.h>

#include "harness/run/experiment.h"

struct label_split {
    size_t classes, tasks;
    uint32_t *task_of;      /* [classes] */
    double *cosines;        /* [tasks, tasks] mean over pairs of different classes; NAN where there is none */
    double within, between; /* the same over all pairs of one task, of two tasks */
};

/* Cuts the classes of whole, whose prompts are tokenized, as the experiment's settings say. */
status label_split_create(struct label_split **split, struct experiment *experiment, const struct task *whole,
                          struct error *error);
void label_split_destroy(struct label_split *split); /* NULL is allowed */

/* Lines that begin with "# ", as of estimate_print. */
void label_split_print(const struct label_split *split, const struct dataset *whole, FILE *out);

#endif

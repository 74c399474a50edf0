/* Cuts one dataset into a sequence of tasks. data.split_by: labels cuts by the meaning of the class names, with similar
 * classes together, apart, at random, or together in half of the tasks, to study merging with similar and with dissimilar
 * tasks. data.split_by: order cuts in a given order of the classes, as in class-incremental learning.
 *
 *     TRY(label_split_check(whole, tasks, error));
 *     TRY(label_split_create(&split, &settings->split, tasks, options, whole, features, embed, error));
 *     split->task_of[c] …                                           // the task of class c
 *     label_split_print(split, whole->dataset, stdout);             // classes per task, and their similarity
 *
 * Similarity is the cosine of the text features of the class names in zero-shot evaluation. The cut depends on the
 * suite alone, not on the seed of a run.
 */
#pragma once

#include <stdio.h>

#include "harness/config/settings.h"
#include "harness/scenario/data.h"

struct label_split {
    size_t classes, tasks;
    uint32_t *task_of;      /* [classes] */
    uint32_t *order;        /* [classes] the classes, task after task, in each task's order */
    double *cosines;        /* [tasks, tasks] mean over pairs of different classes; NAN without any */
    double within, between; /* the same over all pairs within tasks, between tasks */
};

/* Whether the classes of whole can be cut into that many tasks. */
status label_split_check(const struct task *whole, size_t tasks, struct error *error);

/* Cuts the classes of whole. options: of the section `data`; features [classes, embed]: the text features of the
 * classes. */
status label_split_create(struct label_split **split, const struct split_settings *settings, size_t tasks,
                          const struct options *options, const struct task *whole, const float *features, size_t embed,
                          struct error *error);
void label_split_destroy(struct label_split *split); /* NULL is allowed */

/* "0.8932 within tasks, 0.6611 between", without a mean that has no pairs; the caller frees out. */
void label_split_add_means(struct text *out, const struct label_split *split);

/* Prints lines that begin with "# ", like estimate_print. */
void label_split_print(const struct label_split *split, const struct dataset *whole, FILE *out);

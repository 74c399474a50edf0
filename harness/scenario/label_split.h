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
 *
 * partition_cut cuts any items into parts of equal size whose items are as similar, or as different, as possible:
 *
 *     struct class_partition partition = {.similarity = s, .n = 100, .parts = 10, .goal = PARTITION_TOGETHER, .seed = 1};
 *     partition_cut(&partition, part_of);                            // part_of[i] < 10
 *
 * Raises (lowers) the mean similarity within parts by exchanging pairs between parts, as in Kernighan and Lin, "An
 * efficient heuristic procedure for partitioning graphs" (1970), from several starts, in which seeds far from one
 * another (close together) take turns to grow. Integer arithmetic only: equal input gives equal parts on any machine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/scope.h"
#include "harness/config/settings.h"
#include "harness/scenario/data.h"

enum { PARTITION_ITEMS = 4096 /* at most */, PARTITION_MIXED_PARTS = 4 /* at least, for PARTITION_MIXED */ };

struct class_partition {
    const int32_t *similarity; /* [n, n], symmetric, below 2^20 in size */
    size_t n, parts;           /* 1 ≤ parts ≤ n ≤ PARTITION_ITEMS */
    enum partition_goal goal;
    uint64_t seed; /* of the starts, or of a random cut */
};

/* part_of [n]: sizes differ by at most one; parts are numbered by their first item. PARTITION_MIXED: the first half of the
 * parts of PARTITION_TOGETHER, and then the items of the others apart. */
void partition_cut(const struct class_partition *partition, uint32_t *part_of);

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
 * classes; NULL, unless the cut is by labels: there are no cosines. */
status label_split_create(struct label_split **split, const struct split_settings *settings, size_t tasks,
                          const struct options *options, const struct task *whole, const float *features, size_t embed,
                          struct error *error);
void label_split_destroy(struct label_split *split); /* NULL is allowed */
SCOPED_POINTER(struct label_split, label_split_destroy)

/* "0.8932 within tasks, 0.6611 between", without a mean that has no pairs; the caller frees out. */
void label_split_add_means(struct text *out, const struct label_split *split);

/* Prints lines that begin with "# ", like estimate_print. */
void label_split_print(const struct label_split *split, const struct dataset *whole, FILE *out);

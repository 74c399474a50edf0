/* The metrics of continual learning: pure functions of a matrix of accuracies.
 *
 *     struct accuracy_matrix matrix = {.tasks = 11, .accuracy = rows, .zero_shot = row};
 *     const struct metric *transfer = metric_find("transfer");
 *     double of_task_3 = metric_of_task(transfer, &matrix, 3);
 *     double transfer_mean = metric_mean(transfer, &matrix);
 *
 * Metrics have the unit of the accuracies. A missing accuracy is NAN, and so is every metric that depends on it.
 */
#ifndef MTIL_RESULTS_METRICS_H
#define MTIL_RESULTS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct accuracy_matrix {
    size_t tasks;            /* T */
    const double *accuracy;  /* [T, T]: row i after training task i, column j on task j */
    const double *zero_shot; /* [T], zero-shot CLIP's; NULL: unknown */
    /* Test images of each task [T] in class-incremental learning, else NULL. There classes accumulate, row i has only
     * the columns j ≤ i, and means over tasks are accuracies over all images. */
    const int64_t *images;
    bool later; /* with images: row i has all columns, as in domain-incremental learning, and its mean those of j ≤ i */
};

/* Whether the matrix of a whole run has this cell. */
bool accuracy_expected(const struct accuracy_matrix *matrix, size_t after_task, size_t task);

/* Mean of a row; after_task −1: zero-shot. NAN when a cell is missing. In class-incremental learning, the accuracy over
 * all classes seen. */
double accuracy_mean(const struct accuracy_matrix *matrix, int64_t after_task);

struct metric {
    const char *name, *title;     /* "backward_transfer", "Backward transfer" */
    const char *formula;          /* of task j of T, with a(i, j) the accuracy on j after task i */
    const char *source;           /* where it is defined; "": here */
    size_t skip_first, skip_last; /* tasks at either end for which it is not defined */
    double (*of_task)(const struct accuracy_matrix *matrix, size_t task);
    double (*of_images)(
        const struct accuracy_matrix *matrix); /* mean in class-incremental learning; NULL: over tasks */
    bool lower_is_better;
};

/* All metrics: transfer, average, last, forgetting, backward_transfer, forward_transfer, gain (of last over zero-shot),
 * zero_shot; METRICS.md has the formulas. */
const struct metric *metric_list(size_t *count);
const struct metric *metric_find(const char *name); /* NULL: no such metric */

/* NAN where the metric is not defined. */
double metric_of_task(const struct metric *metric, const struct accuracy_matrix *matrix, size_t task);

/* Mean over the tasks for which the metric is defined; NAN when there are none. */
double metric_mean(const struct metric *metric, const struct accuracy_matrix *matrix);

#endif

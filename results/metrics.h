/* The measures of continual learning: pure functions of a matrix of accuracies.
 *
 *     struct accuracy_matrix matrix = {.tasks = 11, .accuracy = rows, .zero_shot = row};
 *     const struct metric *transfer = metric_find("transfer");
 *     double of_task_3 = metric_of_task(transfer, &matrix, 3);
 *     double transfer_mean = metric_mean(transfer, &matrix);
 *
 * Whatever unit the accuracies have, the measures have. A missing accuracy is NAN, and so is what depends on it.
 */
#ifndef MTIL_RESULTS_METRICS_H
#define MTIL_RESULTS_METRICS_H

#include <stdbool.h>
#include <stddef.h>

struct accuracy_matrix {
    size_t tasks;            /* T */
    const double *accuracy;  /* [T, T]: row i after training task i, column j on task j */
    const double *zero_shot; /* [T], zero-shot CLIP's; NULL: unknown */
};

struct metric {
    const char *name, *title;     /* "backward_transfer", "Backward transfer" */
    const char *source;           /* where it is defined */
    size_t skip_first, skip_last; /* tasks at either end for which it is not defined */
    double (*of_task)(const struct accuracy_matrix *matrix, size_t task);
    bool lower_is_better;
};

/* All metrics: transfer, average, last, forgetting, backward_transfer, gain (of last over zero-shot), zero_shot. */
const struct metric *metric_list(size_t *count);
const struct metric *metric_find(const char *name); /* NULL: no such metric */

/* NAN where the metric is not defined. */
double metric_of_task(const struct metric *metric, const struct accuracy_matrix *matrix, size_t task);

/* Over the tasks for which it is defined; NAN when there are none. */
double metric_mean(const struct metric *metric, const struct accuracy_matrix *matrix);

#endif

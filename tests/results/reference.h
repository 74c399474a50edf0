/* The metrics of results/metrics.sql once more, written as loops over a matrix of accuracies: what tests hold the SQL against.
 *
 *     struct accuracy_matrix matrix = {.tasks = 11, .accuracy = rows, .zero_shot = row};
 *     double of_task_3 = metric_of_task(metric_find("transfer"), &matrix, 3);
 *     double of_run = metric_mean(metric_find("transfer"), &matrix);
 *
 * A missing accuracy is NAN, and so is every metric that depends on it. */
#pragma once

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct accuracy_matrix {
    size_t tasks;            /* T */
    const double *accuracy;  /* [T, T]: row i after training task i, column j on task j */
    const double *zero_shot; /* [T], zero-shot CLIP's; NULL: unknown */
    /* Test images of each task [T] in class-incremental learning, else NULL. There classes accumulate, row i has only
     * the columns j ≤ i, and means over tasks are accuracies over all images. */
    const int64_t *images;
    bool later; /* with images: row i has all columns, as in domain-incremental learning, and its mean those of j ≤ i */
};

static inline double after(const struct accuracy_matrix *matrix, size_t trained, size_t task)
{
    return matrix->accuracy[trained * matrix->tasks + task];
}

/* Whether tasks are tested before they are trained. */
static inline bool tests_later(const struct accuracy_matrix *matrix)
{
    return matrix->images == NULL || matrix->later;
}

static inline double accuracy_mean(const struct accuracy_matrix *matrix, int64_t after_task)
{
    size_t columns = matrix->images != NULL && after_task >= 0 ? (size_t)after_task + 1 : matrix->tasks;
    const double *row = after_task < 0 ? matrix->zero_shot : matrix->accuracy + (size_t)after_task * matrix->tasks;
    double sum = 0, weights = 0;
    for (size_t task = 0; row != NULL && task < columns; task++) {
        double weight = matrix->images != NULL ? (double)matrix->images[task] : 1;
        sum += weight * row[task];
        weights += weight;
    }
    return row != NULL ? sum / weights : (double)NAN;
}

static inline double mean_after(const struct accuracy_matrix *matrix, size_t first, size_t end, size_t task)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += after(matrix, i, task);
    return sum / (double)(end - first);
}

static inline double transfer(const struct accuracy_matrix *matrix, size_t task)
{
    return tests_later(matrix) ? mean_after(matrix, 0, task, task) : (double)NAN;
}

static inline double average(const struct accuracy_matrix *matrix, size_t task)
{
    return mean_after(matrix, tests_later(matrix) ? 0 : task, matrix->tasks, task);
}

static inline double average_of_steps(const struct accuracy_matrix *matrix)
{
    double sum = 0;
    for (size_t i = 0; i < matrix->tasks; i++)
        sum += accuracy_mean(matrix, (int64_t)i);
    return sum / (double)matrix->tasks;
}

static inline double last_step(const struct accuracy_matrix *matrix)
{
    return accuracy_mean(matrix, (int64_t)matrix->tasks - 1);
}

static inline double zero_shot_of_images(const struct accuracy_matrix *matrix)
{
    return accuracy_mean(matrix, -1);
}

static inline double gain_of_images(const struct accuracy_matrix *matrix)
{
    return last_step(matrix) - zero_shot_of_images(matrix);
}

static inline double last(const struct accuracy_matrix *matrix, size_t task)
{
    return after(matrix, matrix->tasks - 1, task);
}

/* fmax would pass over a NAN. */
static inline double forgetting(const struct accuracy_matrix *matrix, size_t task)
{
    double best = after(matrix, task, task);
    for (size_t i = task + 1; i < matrix->tasks; i++) {
        double accuracy = after(matrix, i, task);
        if (isnan(accuracy) || accuracy > best)
            best = accuracy;
    }
    return best - last(matrix, task);
}

static inline double backward_transfer(const struct accuracy_matrix *matrix, size_t task)
{
    return last(matrix, task) - after(matrix, task, task);
}

static inline double zero_shot(const struct accuracy_matrix *matrix, size_t task)
{
    return matrix->zero_shot ? matrix->zero_shot[task] : (double)NAN;
}

/* In class-incremental learning a task is not tested before its own row. */
static inline double forward_transfer(const struct accuracy_matrix *matrix, size_t task)
{
    return tests_later(matrix) ? after(matrix, task - 1, task) - zero_shot(matrix, task) : (double)NAN;
}

static inline double gain(const struct accuracy_matrix *matrix, size_t task)
{
    return last(matrix, task) - zero_shot(matrix, task);
}

struct metric {
    const char *name;
    size_t skip_first, skip_last; /* tasks at either end for which it is not defined */
    double (*of_task)(const struct accuracy_matrix *matrix, size_t task);
    double (*of_images)(
        const struct accuracy_matrix *matrix); /* mean in class-incremental learning; NULL: over tasks */
};

static inline const struct metric *metric_list(size_t *count)
{
    static const struct metric metrics[] = {{"transfer", 1, 0, transfer, NULL},
                                            {"average", 0, 0, average, average_of_steps},
                                            {"last", 0, 0, last, last_step},
                                            {"forgetting", 0, 1, forgetting, NULL},
                                            {"backward_transfer", 0, 1, backward_transfer, NULL},
                                            {"forward_transfer", 1, 0, forward_transfer, NULL},
                                            {"gain", 0, 0, gain, gain_of_images},
                                            {"zero_shot", 0, 0, zero_shot, zero_shot_of_images}};
    *count = sizeof metrics / sizeof *metrics;
    return metrics;
}

static inline const struct metric *metric_find(const char *name)
{
    size_t count;
    const struct metric *metrics = metric_list(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return &metrics[i];
    return NULL;
}

static inline double metric_of_task(const struct metric *metric, const struct accuracy_matrix *matrix, size_t task)
{
    assert(task < matrix->tasks);
    bool defined = task >= metric->skip_first && task + metric->skip_last < matrix->tasks;
    return defined ? metric->of_task(matrix, task) : (double)NAN;
}

static inline double metric_mean(const struct metric *metric, const struct accuracy_matrix *matrix)
{
    double sum = 0;
    size_t count = 0;
    if (matrix->images != NULL && metric->of_images != NULL)
        return metric->of_images(matrix);
    for (size_t task = metric->skip_first; task + metric->skip_last < matrix->tasks; task++, count++)
        sum += metric->of_task(matrix, task);
    return count ? sum / (double)count : (double)NAN;
}

#include "results/metrics.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static double after(const struct accuracy_matrix *matrix, size_t trained, size_t task)
{
    return matrix->accuracy[trained * matrix->tasks + task];
}

/* Whether tasks are tested before they are trained. */
static bool tests_later(const struct accuracy_matrix *matrix)
{
    return matrix->images == NULL || matrix->later;
}

bool accuracy_expected(const struct accuracy_matrix *matrix, size_t after_task, size_t task)
{
    return tests_later(matrix) || task <= after_task;
}

double accuracy_mean(const struct accuracy_matrix *matrix, int64_t after_task)
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

static double mean_after(const struct accuracy_matrix *matrix, size_t first, size_t end, size_t task)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += after(matrix, i, task);
    return sum / (double)(end - first);
}

static double transfer(const struct accuracy_matrix *matrix, size_t task)
{
    return tests_later(matrix) ? mean_after(matrix, 0, task, task) : (double)NAN;
}

static double average(const struct accuracy_matrix *matrix, size_t task)
{
    return mean_after(matrix, tests_later(matrix) ? 0 : task, matrix->tasks, task);
}

static double average_of_steps(const struct accuracy_matrix *matrix)
{
    double sum = 0;
    for (size_t i = 0; i < matrix->tasks; i++)
        sum += accuracy_mean(matrix, (int64_t)i);
    return sum / (double)matrix->tasks;
}

static double last_step(const struct accuracy_matrix *matrix)
{
    return accuracy_mean(matrix, (int64_t)matrix->tasks - 1);
}

static double zero_shot_of_images(const struct accuracy_matrix *matrix)
{
    return accuracy_mean(matrix, -1);
}

static double gain_of_images(const struct accuracy_matrix *matrix)
{
    return last_step(matrix) - zero_shot_of_images(matrix);
}

static double last(const struct accuracy_matrix *matrix, size_t task)
{
    return after(matrix, matrix->tasks - 1, task);
}

/* fmax would pass over a NAN. */
static double forgetting(const struct accuracy_matrix *matrix, size_t task)
{
    double best = after(matrix, task, task);
    for (size_t i = task + 1; i < matrix->tasks; i++) {
        double accuracy = after(matrix, i, task);
        if (isnan(accuracy) || accuracy > best)
            best = accuracy;
    }
    return best - last(matrix, task);
}

static double backward_transfer(const struct accuracy_matrix *matrix, size_t task)
{
    return last(matrix, task) - after(matrix, task, task);
}

static double zero_shot(const struct accuracy_matrix *matrix, size_t task)
{
    return matrix->zero_shot ? matrix->zero_shot[task] : (double)NAN;
}

/* In class-incremental learning a task is not tested before its own row. */
static double forward_transfer(const struct accuracy_matrix *matrix, size_t task)
{
    return tests_later(matrix) ? after(matrix, task - 1, task) - zero_shot(matrix, task) : (double)NAN;
}

static double gain(const struct accuracy_matrix *matrix, size_t task)
{
    return last(matrix, task) - zero_shot(matrix, task);
}

static const struct metric metrics[] = {
    {"transfer", "Transfer", "mean of a(i, j) over the tasks i before j: accuracy on tasks yet to come",
     "Zheng et al. (ZSCL, ICCV 2023)", 1, 0, transfer, NULL, false},
    {"average", "Average", "mean of a(i, j) over all tasks i", "Zheng et al. (ZSCL, ICCV 2023)", 0, 0, average,
     average_of_steps, false},
    {"last", "Last", "a(T, j): after the last task", "Zheng et al. (ZSCL, ICCV 2023)", 0, 0, last, last_step, false},
    {"forgetting", "Forgetting", "greatest a(i, j) from i = j on, less a(T, j); without the last task",
     "Chaudhry et al. (ECCV 2018)", 0, 1, forgetting, NULL, true},
    {"backward_transfer", "Backward transfer", "a(T, j) less a(j, j); without the last task",
     "Lopez-Paz and Ranzato (NeurIPS 2017)", 0, 1, backward_transfer, NULL, false},
    {"forward_transfer", "Forward transfer", "a(j - 1, j) less zero-shot CLIP's accuracy; without the first task",
     "Lopez-Paz and Ranzato (NeurIPS 2017)", 1, 0, forward_transfer, NULL, false},
    {"gain", "Gain", "a(T, j) less zero-shot CLIP's accuracy", "", 0, 0, gain, gain_of_images, false},
    {"zero_shot", "Zero-shot", "zero-shot CLIP's accuracy", "", 0, 0, zero_shot, zero_shot_of_images, false},
};

const struct metric *metric_list(size_t *count)
{
    *count = sizeof metrics / sizeof *metrics;
    return metrics;
}

const struct metric *metric_find(const char *name)
{
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return &metrics[i];
    return NULL;
}

double metric_of_task(const struct metric *metric, const struct accuracy_matrix *matrix, size_t task)
{
    assert(task < matrix->tasks);
    bool defined = task >= metric->skip_first && task + metric->skip_last < matrix->tasks;
    return defined ? metric->of_task(matrix, task) : (double)NAN;
}

double metric_mean(const struct metric *metric, const struct accuracy_matrix *matrix)
{
    double sum = 0;
    size_t count = 0;
    if (matrix->images != NULL && metric->of_images != NULL)
        return metric->of_images(matrix);
    for (size_t task = metric->skip_first; task + metric->skip_last < matrix->tasks; task++, count++)
        sum += metric->of_task(matrix, task);
    return count ? sum / (double)count : (double)NAN;
}

/* The accuracy matrix of one run with its metrics below. */
#include <math.h>

#include "results/query/internal.h"
#include "results/store/store_internal.h"

static void add_matrix_columns(struct table *table, const struct run_matrix *matrix)
{
    table_add_column(table, &(struct table_column){.title = "after", .align = ALIGN_LEFT});
    for (size_t task = 0; task < matrix->matrix.tasks; task++)
        table_add_column(table,
                         &(struct table_column){.title = matrix->names[task], .align = ALIGN_RIGHT, .decimals = 1});
    table_add_column(table, &(struct table_column){.title = "mean", .align = ALIGN_RIGHT, .decimals = 1});
}

static bool any_known(const double *accuracy, size_t tasks)
{
    for (size_t task = 0; task < tasks; task++)
        if (!isnan(accuracy[task]))
            return true;
    return false;
}

/* A row that was not evaluated at all is left out; one in part has no mean. */
static void add_matrix_row(struct table *table, const struct run_matrix *matrix, int64_t after_task)
{
    size_t tasks = matrix->matrix.tasks;
    const double *accuracy =
        after_task < 0 ? matrix->matrix.zero_shot : matrix->matrix.accuracy + (size_t)after_task * tasks;
    if (!any_known(accuracy, tasks))
        return;
    table_add_text(table, after_task < 0 ? "zero-shot" : matrix->names[after_task]);
    for (size_t task = 0; task < tasks; task++)
        table_add_real(table, accuracy[task]);
    table_add_real(table, accuracy_mean(&matrix->matrix, after_task));
}

static void add_metric_row(struct table *table, const char *name, const struct accuracy_matrix *matrix)
{
    const struct metric *metric = metric_find(name);
    bool known = false;
    for (size_t task = 0; task < matrix->tasks; task++)
        known |= !isnan(metric_of_task(metric, matrix, task));
    if (!known)
        return;
    table_add_text(table, metric->title);
    for (size_t task = 0; task < matrix->tasks; task++)
        table_add_real(table, metric_of_task(metric, matrix, task));
    table_add_real(table, metric_mean(metric, matrix));
}

status query_summary(struct store *store, int64_t run, struct table *table, struct error *error)
{
    struct run_matrix matrix;
    TRY(store_read_matrix(store, run, &matrix, error));
    bool sequence = matrix.matrix.tasks > 1; /* of one task the row above says it all */
    add_matrix_columns(table, &matrix);
    for (int64_t after_task = -1; after_task < (int64_t)matrix.matrix.tasks; after_task++)
        add_matrix_row(table, &matrix, after_task);
    if (sequence && matrix.matrix.images == NULL) /* class-incremental runs have none */
        add_metric_row(table, "transfer", &matrix.matrix);
    if (sequence) {
        add_metric_row(table, "average", &matrix.matrix);
        add_metric_row(table, "last", &matrix.matrix);
    }
    run_matrix_free(&matrix);
    return OK;
}

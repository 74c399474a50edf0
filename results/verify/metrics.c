/* Recomputes each run's metrics by metrics.c into the temporary table own_metrics (task -1: the run's), with which
 * results/checks/ compares the views; and checks which cells of the matrix a finished run has. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "results/verify/internal.h"

enum { METRICS_MOST = 16, TOGETHER = -1 };

/* Where classes accumulate, zero-shot CLIP is tested after every task, too. */
static bool has_cell(const struct accuracy_matrix *matrix, enum verify_cells cells, int64_t after_task, size_t task)
{
    if (after_task < 0)
        return cells != CELLS_TRAINED;
    if (cells == CELLS_DIAGONAL)
        return after_task == (int64_t)task;
    if (cells == CELLS_LAST)
        return after_task == (int64_t)matrix->tasks - 1;
    return (cells == CELLS_ALL || cells == CELLS_TRAINED || matrix->images != NULL) &&
           accuracy_expected(matrix, (size_t)after_task, task);
}

static void check_cells(const struct verifying *v, int64_t run, const char *method,
                        const struct accuracy_matrix *matrix)
{
    enum verify_cells cells = v->verification->cells ? v->verification->cells(method) : CELLS_ALL;
    for (int64_t after_task = -1; after_task < (int64_t)matrix->tasks; after_task++)
        for (size_t task = 0; task < matrix->tasks; task++) {
            double found =
                after_task < 0 ? matrix->zero_shot[task] : matrix->accuracy[(size_t)after_task * matrix->tasks + task];
            bool expected = has_cell(matrix, cells, after_task, task);
            char where[80];
            if (expected != isnan(found))
                continue;
            snprintf(where, sizeof where, "task %zu, after task %" PRId64, task, after_task);
            verify_fault(v, run, "matrix", where, expected ? "an accuracy" : "none with this method",
                         expected ? "none" : "an accuracy");
        }
}

static bool column_complete(const struct accuracy_matrix *matrix, size_t task)
{
    bool complete = true;
    for (size_t i = 0; i < matrix->tasks; i++)
        complete =
            complete && (!accuracy_expected(matrix, i, task) || !isnan(matrix->accuracy[i * matrix->tasks + task]));
    return complete;
}

/* NAN becomes null in the database. */
static status add_row(struct statement *insert, int64_t run, const struct accuracy_matrix *matrix, int64_t task,
                      struct error *error)
{
    size_t count;
    const struct metric *metrics = metric_list(&count);
    struct value values[METRICS_MOST + 2] = {value_integer(run), value_integer(task)};
    for (size_t i = 0; i < count; i++)
        values[i + 2] = value_real(task == TOGETHER ? metric_mean(&metrics[i], matrix)
                                                    : metric_of_task(&metrics[i], matrix, (size_t)task));
    return statement_run(insert, values, count + 2, error);
}

static status add_metrics(struct statement *insert, int64_t run, const struct accuracy_matrix *matrix,
                          struct error *error)
{
    size_t complete = 0;
    for (size_t task = 0; task < matrix->tasks; task++)
        if (column_complete(matrix, task)) {
            complete++;
            TRY(add_row(insert, run, matrix, (int64_t)task, error));
        }
    return complete == matrix->tasks ? add_row(insert, run, matrix, TOGETHER, error) : OK;
}

/* A row of: run, method, whether it is finished and its cells are to be checked. */
static status take_run(const struct verifying *v, struct statement *row, struct statement *insert, struct error *error)
{
    struct run_matrix matrix;
    int64_t run = statement_integer(row, 0);
    TRY(store_read_matrix(v->store, run, &matrix, error));
    if (statement_integer(row, 2) != 0)
        check_cells(v, run, statement_text(row, 1), &matrix.matrix);
    status result = add_metrics(insert, run, &matrix.matrix, error);
    run_matrix_free(&matrix);
    return result;
}

status verify_metrics(const struct verifying *v, struct error *error)
{
    struct statement *runs = NULL, *insert = NULL;
    struct database *database = v->store->database;
    status result = database_execute(database,
                                     "CREATE TEMP TABLE own_metrics (run INTEGER, task INTEGER, transfer, average, "
                                     "last, forgetting, backward_transfer, forward_transfer, gain, zero_shot, "
                                     "PRIMARY KEY (run, task)) WITHOUT ROWID",
                                     error);
    NEXT(result, statement_open(&insert, database,
                                "INSERT INTO own_metrics VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", error));
    NEXT(result,
         statement_open(&runs, database,
                        "SELECT run, method, status = 'finished' AND run IN looked_at FROM runs ORDER BY run", error));
    for (bool row; result == OK && (result = statement_step(runs, &row, error)) == OK && row;)
        result = take_run(v, runs, insert, error);
    statement_close(runs);
    statement_close(insert);
    return result;
}

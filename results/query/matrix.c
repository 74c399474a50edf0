/* The accuracy matrix: of chosen runs, and of one run with its metrics below. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "results/query/internal.h"
#include "results/store/store_internal.h"

/* What is shown of matrices: all tasks and their mean, or one dataset. */
struct view {
    const char *dataset; /* NULL: all */
    bool numbered;       /* with a column for the run */
};

static bool is_shown(const struct view *view, const struct run_matrix *matrix, size_t task)
{
    return !view->dataset || strcmp(view->dataset, matrix->names[task]) == 0;
}

static void add_matrix_columns(struct table *table, const struct view *view, const struct run_matrix *matrix)
{
    table_add_column(table, &(struct table_column){.title = "after", .align = ALIGN_LEFT});
    for (size_t task = 0; task < matrix->matrix.tasks; task++)
        if (is_shown(view, matrix, task))
            table_add_column(table,
                             &(struct table_column){.title = matrix->names[task], .align = ALIGN_RIGHT, .decimals = 1});
    if (!view->dataset)
        table_add_column(table, &(struct table_column){.title = "mean", .align = ALIGN_RIGHT, .decimals = 1});
}

static bool any_known(const struct view *view, const struct run_matrix *matrix, const double *accuracy)
{
    for (size_t task = 0; task < matrix->matrix.tasks; task++)
        if (is_shown(view, matrix, task) && !isnan(accuracy[task]))
            return true;
    return false;
}

/* A row that was not evaluated at all is left out; one in part has no mean. */
static void add_matrix_row(struct table *table, const struct view *view, const struct run_matrix *matrix, int64_t run,
                           int64_t after_task)
{
    size_t tasks = matrix->matrix.tasks;
    const double *accuracy =
        after_task < 0 ? matrix->matrix.zero_shot : matrix->matrix.accuracy + (size_t)after_task * tasks;
    if (!any_known(view, matrix, accuracy))
        return;
    if (view->numbered)
        table_add_integer(table, run);
    table_add_text(table, after_task < 0 ? "zero-shot" : matrix->names[after_task]);
    for (size_t task = 0; task < tasks; task++)
        if (is_shown(view, matrix, task))
            table_add_real(table, accuracy[task]);
    if (!view->dataset)
        table_add_real(table, accuracy_mean(&matrix->matrix, after_task));
}

static void add_matrix_rows(struct table *table, const struct view *view, const struct run_matrix *matrix, int64_t run)
{
    for (int64_t after_task = -1; after_task < (int64_t)matrix->matrix.tasks; after_task++)
        add_matrix_row(table, view, matrix, run, after_task);
}

static bool same_columns(const struct table *table, const struct view *view, const struct run_matrix *matrix)
{
    size_t column = 2; /* behind run and after */
    for (size_t task = 0; task < matrix->matrix.tasks; task++)
        if (is_shown(view, matrix, task) &&
            (column >= table->columns || strcmp(table->column[column++].title, matrix->names[task]) != 0))
            return false;
    return column + (view->dataset ? 0 : 1) == table->columns;
}

static status add_run(struct store *store, const struct view *view, int64_t run, struct table *table,
                      struct error *error)
{
    struct run_matrix matrix;
    TRY(store_read_matrix(store, run, &matrix, error));
    if (table->columns == 1)
        add_matrix_columns(table, view, &matrix);
    bool fits = table->failed || same_columns(table, view, &matrix);
    if (fits) {
        table_begin_block(table);
        add_matrix_rows(table, view, &matrix, run);
    }
    run_matrix_free(&matrix);
    if (fits && table->count <= QUERY_CELLS_LIMIT)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "%s: run %" PRId64 " %s; choose runs by number, suite or setting",
                     store_path(store), run,
                     fits ? "makes the answer too long" : "has other tasks than those before it");
}

status query_matrix(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    struct view view = {.dataset = filter->dataset, .numbered = true};
    table_add_column(table, &(struct table_column){.title = "run", .once = true});
    struct statement *statement;
    TRY(statement_open(&statement, store->database, CHOSEN "SELECT run FROM chosen ORDER BY run", error));
    bool row = true;
    status result = query_bind_filter(statement, filter, error);
    while (result == OK && (result = statement_step(statement, &row, error)) == OK && row)
        result = add_run(store, &view, statement_integer(statement, 0), table, error);
    statement_close(statement);
    return result;
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
    struct view view = {.numbered = false};
    struct run_matrix matrix;
    TRY(store_read_matrix(store, run, &matrix, error));
    add_matrix_columns(table, &view, &matrix);
    add_matrix_rows(table, &view, &matrix, run);
    bool sequence = matrix.matrix.tasks > 1;      /* of one task the row above says it all */
    if (sequence && matrix.matrix.images == NULL) /* class-incremental runs have none */
        add_metric_row(table, "transfer", &matrix.matrix);
    if (sequence) {
        add_metric_row(table, "average", &matrix.matrix);
        add_metric_row(table, "last", &matrix.matrix);
    }
    run_matrix_free(&matrix);
    return OK;
}

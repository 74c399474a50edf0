/* Which classes which expert serves: every count, or for a dataset a row per block and class with a column per expert. */
#include <stdio.h>
#include <stdlib.h>

#include "results/query/internal.h"

enum { COLUMN_RUN, COLUMN_BLOCK, COLUMN_CLASS, COLUMN_NAME, KEYS, COLUMN_EXPERT = KEYS, COLUMN_SHARE };

static int64_t integer_at(const struct table *rows, size_t row, size_t column)
{
    return table_cell_at(rows, row, column)->integer;
}

static bool same(const struct table *rows, size_t a, size_t b, size_t columns)
{
    for (size_t column = 0; column < columns; column++)
        if (integer_at(rows, a, column) != integer_at(rows, b, column))
            return false;
    return true;
}

static size_t count_experts(const struct table *rows)
{
    int64_t most = -1;
    for (size_t row = 0; row < table_rows(rows); row++)
        most = integer_at(rows, row, COLUMN_EXPERT) > most ? integer_at(rows, row, COLUMN_EXPERT) : most;
    return (size_t)(most + 1);
}

static void add_columns(struct table *table, size_t experts)
{
    static const char *const keys[KEYS] = {"run", "block", "class", "class_name"};
    for (size_t i = 0; i < KEYS; i++)
        table_add_column(table, &(struct table_column){.title = keys[i], .once = i <= COLUMN_BLOCK});
    for (size_t expert = 0; expert < experts; expert++) {
        char title[24];
        snprintf(title, sizeof title, "%zu", expert);
        table_add_column(table, &(struct table_column){.title = title, .align = ALIGN_RIGHT, .decimals = 1});
    }
}

/* Rows [first, end) are of one class. shares [experts]: room. */
static void add_class(struct table *table, const struct table *rows, size_t first, size_t end, double *shares,
                      size_t experts)
{
    const struct table_cell *name = table_cell_at(rows, first, COLUMN_NAME);
    for (size_t expert = 0; expert < experts; expert++)
        shares[expert] = 0;
    for (size_t row = first; row < end; row++)
        shares[integer_at(rows, row, COLUMN_EXPERT)] = table_cell_at(rows, row, COLUMN_SHARE)->real;
    for (size_t column = 0; column < COLUMN_NAME; column++)
        table_add_integer(table, integer_at(rows, first, column));
    table_add_text(table, name->kind == CELL_TEXT ? name->text : NULL);
    for (size_t expert = 0; expert < experts; expert++)
        table_add_real(table, shares[expert]);
}

static status spread(const struct table *rows, struct table *table, struct error *error)
{
    size_t experts = count_experts(rows), count = table_rows(rows);
    double *shares = calloc(experts + 1, sizeof *shares);
    if (shares == NULL)
        return error_set(error, ERROR_MEMORY, "results: no memory for %zu experts", experts);
    add_columns(table, experts);
    for (size_t first = 0, end = 0; first < count; first = end) {
        for (end = first + 1; end < count && same(rows, first, end, COLUMN_NAME); end++)
            ;
        if (first > 0 && !same(rows, first, first - 1, COLUMN_CLASS))
            table_begin_block(table);
        add_class(table, rows, first, end, shares, experts);
    }
    free(shares);
    return OK;
}

status query_class_experts(struct store *store, const struct query_filter *filter, struct table *table,
                           struct error *error)
{
    if (filter->dataset == NULL)
        return query_answer_sql(store,
                                CHOSEN
                                "SELECT run, task, name, block, class, class_name, expert, count, share, mean_gate "
                                "FROM chosen JOIN class_usage USING (run) "
                                "ORDER BY run, task, block, class, expert",
                                filter, table, error);
    struct table rows = {0};
    status result = query_answer_sql(store,
                                     CHOSEN "SELECT run, block, class, class_name, expert, share FROM chosen "
                                            "JOIN class_usage USING (run) WHERE name = ?11 "
                                            "ORDER BY run, block, class, expert",
                                     filter, &rows, error);
    NEXT(result, spread(&rows, table, error));
    table_free(&rows);
    return result;
}

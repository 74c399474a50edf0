#include "harness/sweep/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/scope.h"
#include "core/text.h"
#include "results/metrics.h"
#include "results/query.h"

static bool varies(const struct grid_axis *axis)
{
    return !axis->seeds && axis->values.count > 1;
}

static void add_axis_columns(const struct sweep *sweep, struct table *table)
{
    for (size_t i = 0; i < sweep->grid.count; i++)
        if (varies(&sweep->grid.axes[i]))
            table_add_column(table, &(struct table_column){.title = sweep->grid.axes[i].name});
}

static void add_axis_cells(const struct sweep *sweep, size_t configuration, struct table *table)
{
    for (size_t i = 0; i < sweep->grid.count; i++)
        if (varies(&sweep->grid.axes[i]))
            table_add_text(table, sweep_value(sweep, i, configuration));
}

/* --- The plan --- */

static void add_duration(struct table *table, double seconds)
{
    SCOPED(text_free) struct text text = {0};
    if (!isnan(seconds))
        text_add_duration(&text, seconds);
    table_add_text(table, text.data);
}

void sweep_tables_plan(const struct sweep *sweep, const struct placement *placement, struct table *table)
{
    static const char *const titles[] = {"runs", "finished", "to resume", "missing"};
    bool elsewhere = sweep_count(sweep, SWEEP_ELSEWHERE) > 0;
    add_axis_columns(sweep, table);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(table, &(struct table_column){.title = titles[i]});
    if (elsewhere)
        table_add_column(table, &(struct table_column){.title = "elsewhere"});
    table_add_column(table, &(struct table_column){.title = "time of a run", .align = ALIGN_RIGHT});
    double speed = placement_speed(placement);
    for (size_t i = 0; i < sweep->configuration_count; i++) {
        const struct sweep_configuration *c = &sweep->configurations[i];
        int64_t counts[SWEEP_STANDINGS] = {0};
        for (size_t k = c->first; k < c->first + c->runs; k++)
            counts[sweep->runs[k].standing]++;
        add_axis_cells(sweep, i, table);
        table_add_integer(table, (int64_t)c->runs);
        table_add_integer(table, counts[SWEEP_FINISHED]);
        table_add_integer(table, counts[SWEEP_UNFINISHED]);
        table_add_integer(table, counts[SWEEP_MISSING]);
        if (elsewhere)
            table_add_integer(table, counts[SWEEP_ELSEWHERE]);
        add_duration(table, c->cost.core_seconds / speed);
    }
}

/* --- The results --- */

/* The last row of the matrix is there even of methods that train once, which have no sequence to measure. */
static const char results_sql[] = "SELECT configuration, count(asked.run) AS seeds\n"
                                  "-- each main: , avg({name}) AS {name}, half_width({name}) AS \"{name} ±\"\n"
                                  "FROM asked LEFT JOIN (SELECT run\n"
                                  "-- each main: , iif(metrics.run IS NULL, {latest}, {name}) AS {name}\n"
                                  "FROM (SELECT run, 0 AS task, after_task, accuracy FROM runs JOIN mean_accuracy "
                                  "USING (run) WHERE after_task = tasks - 1) "
                                  "LEFT JOIN metrics USING (run)) USING (run) GROUP BY configuration ORDER BY 1";

static void add_results(const struct sweep *sweep, const struct table *rows, struct table *table)
{
    add_axis_columns(sweep, table);
    for (size_t column = 1; column < rows->columns; column++) {
        struct table_column about = rows->column[column];
        about.decimals = 1;
        table_add_column(table, &about);
    }
    for (size_t row = 0; row < table_rows(rows); row++) {
        add_axis_cells(sweep, (size_t)table_cell_at(rows, row, 0)->integer, table);
        table_add_integer(table, table_cell_at(rows, row, 1)->integer);
        for (size_t column = 2; column < rows->columns; column++)
            table_add_real(table, table_cell_real(table_cell_at(rows, row, column)));
    }
}

/* Whether the runs differ in their rows, and at most in the dataset besides. */
static bool is_table_of_rows(const struct sweep *sweep)
{
    bool rows = false;
    for (size_t i = 0; i < sweep->grid.count; i++) {
        const struct grid_axis *axis = &sweep->grid.axes[i];
        bool row = strcmp(axis->key, "run.row") == 0;
        if (varies(axis) && !row && strcmp(axis->key, "data.order") != 0)
            return false;
        rows |= varies(axis) && row;
    }
    return rows;
}

/* The rows of a paper's table of classifiers, which have no sequence of tasks to measure. */
static status add_classifiers(const struct sweep *sweep, struct store *store, struct table *table, bool *added,
                              struct error *error)
{
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    *added = false;
    if (!is_table_of_rows(sweep) || sweep_count(sweep, SWEEP_FINISHED) == 0)
        return OK;
    TRY(sweep_suite(sweep, 0, &suite, error));
    const struct query_filter filter = {.suite = suite_name(suite), .method = "supervised"};
    *added = strcmp(options_text(suite_options(suite, "method"), "name"), filter.method) == 0;
    if (*added)
        TRY(query_named(store, "paper-table", &filter, table, error));
    return OK;
}

status sweep_tables_results(const struct sweep *sweep, struct store *store, struct table *table, struct error *error)
{
    bool classifiers;
    SCOPED(text_free) struct text script = {0}, sql = {0};
    SCOPED(table_free) struct table rows = {0};
    TRY(add_classifiers(sweep, store, table, &classifiers, error));
    if (classifiers)
        return OK;
    text_add(&script, "WITH asked (configuration, run) AS (VALUES (0, NULL)");
    for (size_t i = 1; i < sweep->configuration_count; i++)
        text_add(&script, ", (%zu, NULL)", i);
    for (const struct sweep_run *run = sweep->runs; run < sweep->runs + sweep->run_count; run++)
        if (run->standing == SWEEP_FINISHED)
            text_add(&script, ", (%zu, %" PRId64 ")", run->configuration, run->row);
    text_add(&script, ")\n%s", results_sql);
    metrics_expand(&sql, script.data, NULL);
    TRY(query_sql(store, sql.data, &rows, error));
    add_results(sweep, &rows, table);
    return OK;
}

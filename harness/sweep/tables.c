#include "harness/sweep/tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "results/query.h"

static bool varies(const struct grid_axis *axis)
{
    return !axis->seeds && axis->count > 1;
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
        if (varies(&sweep->grid.axes[i])) {
            const char *value = sweep_value(sweep, i, configuration);
            value != NULL ? table_add_text(table, value) : table_add_empty(table);
        }
}

/* --- The plan --- */

static void add_duration(struct table *table, double seconds)
{
    struct text text = {0};
    if (isnan(seconds)) {
        table_add_empty(table);
        return;
    }
    text_add_duration(&text, seconds);
    table_add_text(table, text.data);
    text_free(&text);
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

static const char *const shown_metrics[] = {"transfer", "average", "last"};
enum { METRICS = sizeof shown_metrics / sizeof *shown_metrics };

/* The last row of the matrix is there even of methods that train once, which have no sequence to measure. */
static const char results_sql[] =
    " SELECT configuration, count(asked.run), avg(transfer), half_width(transfer), avg(average), half_width(average), "
    "avg(accuracy), half_width(accuracy) FROM asked LEFT JOIN runs USING (run) LEFT JOIN metrics USING (run) LEFT JOIN "
    "mean_accuracy ON mean_accuracy.run = runs.run AND after_task = tasks - 1 GROUP BY configuration ORDER BY 1";

struct results {
    const struct sweep *sweep;
    struct table *table;
};

static status take_results(void *context, struct statement *row, struct error *error)
{
    const struct results *results = context;
    (void)error;
    add_axis_cells(results->sweep, (size_t)statement_integer(row, 0), results->table);
    table_add_integer(results->table, statement_integer(row, 1));
    for (size_t column = 2; column < 2 + 2 * METRICS; column++) {
        struct value value = statement_value(row, column);
        table_add_real(results->table, value.kind == VALUE_REAL ? value.real : NAN);
    }
    return OK;
}

static void add_result_columns(const struct sweep *sweep, struct table *table)
{
    add_axis_columns(sweep, table);
    table_add_column(table, &(struct table_column){.title = "seeds"});
    for (size_t m = 0; m < METRICS; m++) {
        struct text title = {0};
        text_add(&title, "%s ±", shown_metrics[m]);
        table_add_column(table, &(struct table_column){.title = shown_metrics[m], .decimals = 1, .best = BEST_HIGHEST});
        table_add_column(table, &(struct table_column){.title = title.data, .decimals = 1});
        text_free(&title);
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
    struct suite *suite;
    *added = false;
    if (!is_table_of_rows(sweep) || sweep_count(sweep, SWEEP_FINISHED) == 0)
        return OK;
    TRY(sweep_suite(sweep, 0, &suite, error));
    const struct query_filter filter = {.suite = suite_name(suite), .method = "supervised"};
    *added = strcmp(options_text(suite_options(suite, "method"), "name"), filter.method) == 0;
    status result = *added ? query_named(store, "paper-table", &filter, table, error) : OK;
    suite_destroy(suite);
    return result;
}

status sweep_tables_results(const struct sweep *sweep, struct store *store, struct table *table, struct error *error)
{
    bool classifiers;
    struct text sql = {0};
    TRY(add_classifiers(sweep, store, table, &classifiers, error));
    if (classifiers)
        return OK;
    add_result_columns(sweep, table);
    text_add(&sql, "WITH asked (configuration, run) AS (VALUES (0, NULL)");
    for (size_t i = 1; i < sweep->configuration_count; i++)
        text_add(&sql, ", (%zu, NULL)", i);
    for (const struct sweep_run *run = sweep->runs; run < sweep->runs + sweep->run_count; run++)
        if (run->standing == SWEEP_FINISHED)
            text_add(&sql, ", (%zu, %" PRId64 ")", run->configuration, run->row);
    text_add(&sql, ")%s", results_sql);
    status result =
        database_each(store_database(store), sql.data, NO_VALUES, take_results, &(struct results){sweep, table}, error);
    text_free(&sql);
    return result;
}

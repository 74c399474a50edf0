#include "harness/sweep/tables.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "results/metrics.h"
#include "results/query.h"
#include "results/statistics/statistics.h"

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

/* Running mean and sum of squared differences from it (Welford). */
struct spread {
    size_t count;
    double mean, squares;
};

static void spread_add(struct spread *spread, double value)
{
    double difference = value - spread->mean;
    spread->mean += difference / (double)++spread->count;
    spread->squares += difference * (value - spread->mean);
}

static status read_configuration(const struct sweep *sweep, const struct sweep_configuration *c, struct store *store,
                                 struct spread spreads[METRICS], int64_t *finished, struct error *error)
{
    *finished = 0;
    for (size_t i = c->first; i < c->first + c->runs; i++) {
        struct run_matrix read;
        if (sweep->runs[i].standing != SWEEP_FINISHED)
            continue;
        TRY(store_read_matrix(store, sweep->runs[i].row, &read, error));
        for (size_t m = 0; m < METRICS; m++) {
            double value = metric_mean(metric_find(shown_metrics[m]), &read.matrix);
            if (!isnan(value)) /* methods that train every task alone have no sequence to measure */
                spread_add(&spreads[m], value);
        }
        run_matrix_free(&read);
        ++*finished;
    }
    return OK;
}

/* Of Student's 95% interval of the mean. */
static double half_width(const struct spread *spread)
{
    if (spread->count < 2)
        return (double)NAN;
    double sd = sqrt(spread->squares / (double)(spread->count - 1));
    return statistics_mean_interval(spread->mean, sd, spread->count, 0.95).high - spread->mean;
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
    TRY(add_classifiers(sweep, store, table, &classifiers, error));
    if (classifiers)
        return OK;
    add_result_columns(sweep, table);
    for (size_t i = 0; i < sweep->configuration_count; i++) {
        struct spread spreads[METRICS] = {{0}};
        int64_t finished;
        TRY(read_configuration(sweep, &sweep->configurations[i], store, spreads, &finished, error));
        add_axis_cells(sweep, i, table);
        table_add_integer(table, finished);
        for (size_t m = 0; m < METRICS; m++) {
            const struct spread *s = &spreads[m];
            table_add_real(table, s->count > 0 ? s->mean : NAN);
            table_add_real(table, half_width(s));
        }
    }
    return OK;
}

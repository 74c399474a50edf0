/* What became of merges: each of them, or summed up by settings, with what it has to do with Transfer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/query/internal.h"
#include "results/statistics/statistics.h"
#include "results/store/store_internal.h"

/* The numbers of a run, which are the last columns of an answer; the columns before them are its group. */
enum {
    RUN_MERGES,
    RUN_FOLLOWED,
    RUN_USE,
    RUN_UNUSED,
    RUN_OVERWRITTEN,
    RUN_NEXT_USE,
    RUN_BEFORE,
    RUN_AFTER,
    RUN_DISTANCE,
    RUN_TRANSFER,
    RUN_NUMBERS
};

/* Losses are of the same merges, those that iterations of their task followed. */
#define PER_RUN                                                                                                        \
    "count(*) AS merges, count(use) AS followed, avg(use) AS use, 100.0 * avg(use = 0) AS unused, "                    \
    "100.0 * avg(overwritten) AS overwritten, avg(next_use) FILTER (WHERE NOT overwritten) AS next_use, "              \
    "avg(loss_before) FILTER (WHERE loss_after IS NOT NULL) AS loss_before, avg(loss_after) AS loss_after, "           \
    "avg(distance) AS distance, max(transfer) AS transfer "                                                            \
    "FROM chosen JOIN merge_use USING (run) LEFT JOIN metrics USING (run) WHERE ?11 IS NULL OR name = ?11 "            \
    "GROUP BY chosen.run ORDER BY "

static const struct table_column columns[] = {
    {.title = "runs"},
    {.title = "merges", .decimals = 1},
    {.title = "followed", .decimals = 1},
    {.title = "use", .decimals = 3},
    {.title = "unused", .decimals = 1},
    {.title = "overwritten", .decimals = 1},
    {.title = "next_use", .decimals = 3},
    {.title = "loss_before", .decimals = 3},
    {.title = "loss_after", .decimals = 3},
    {.title = "distance", .decimals = 3},
    {.title = "transfer", .decimals = 1},
    {.title = "r", .decimals = 2}, /* of use and Transfer over the runs, with its interval */
    {.title = "r_low", .decimals = 2},
    {.title = "r_high", .decimals = 2},
    {.title = "r_next", .decimals = 2}, /* the same of next_use */
    {.title = "r_next_low", .decimals = 2},
    {.title = "r_next_high", .decimals = 2},
};

static double number(const struct table *runs, size_t row, size_t column)
{
    const struct table_cell *cell = table_cell_at(runs, row, runs->columns - RUN_NUMBERS + column);
    return cell->kind == CELL_REAL ? cell->real : cell->kind == CELL_INTEGER ? (double)cell->integer : (double)NAN;
}

static bool same_cell(const struct table_cell *a, const struct table_cell *b)
{
    if (a->kind != b->kind || a->kind == CELL_EMPTY)
        return a->kind == b->kind;
    return a->kind == CELL_TEXT      ? strcmp(a->text, b->text) == 0
           : a->kind == CELL_INTEGER ? a->integer == b->integer
                                     : a->real == b->real;
}

static bool same_group(const struct table *runs, size_t a, size_t b)
{
    for (size_t column = 0; column < runs->columns - RUN_NUMBERS; column++)
        if (!same_cell(table_cell_at(runs, a, column), table_cell_at(runs, b, column)))
            return false;
    return true;
}

static void copy_cell(struct table *table, const struct table_cell *cell)
{
    if (cell->kind == CELL_INTEGER)
        table_add_integer(table, cell->integer);
    else if (cell->kind == CELL_REAL)
        table_add_real(table, cell->real);
    else
        table_add_text(table, cell->kind == CELL_TEXT ? cell->text : NULL);
}

static double mean_of(const struct table *runs, size_t first, size_t end, size_t column)
{
    double sum = 0, count = 0;
    for (size_t row = first; row < end; row++) {
        double value = number(runs, row, column);
        sum += isnan(value) ? 0 : value;
        count += isnan(value) ? 0 : 1;
    }
    return count > 0 ? sum / count : (double)NAN;
}

static void add_correlation(struct table *table, const double *use, const double *transfer, size_t n, size_t controlled)
{
    double r = n > controlled + 2 ? statistics_correlation(use, transfer, n) : (double)NAN;
    struct interval interval = statistics_correlation_interval(r, n, controlled, 0.95);
    table_add_real(table, r);
    table_add_real(table, interval.low);
    table_add_real(table, interval.high);
}

/* What may go with Transfer. */
static const int measures[] = {RUN_USE, RUN_NEXT_USE};
enum { MEASURES = sizeof measures / sizeof *measures };

/* Of one measure: runs with both numbers, as distances from the means of their groups, which say nothing about what use
 * does. */
struct pairs {
    double *use, *transfer;
    size_t count, groups;
};

static void add_pairs(struct pairs *pairs, const struct table *runs, size_t first, size_t end, size_t measure)
{
    size_t start = pairs->count;
    for (size_t row = first; row < end; row++) {
        double use = number(runs, row, measure), transfer = number(runs, row, RUN_TRANSFER);
        if (isnan(use) || isnan(transfer))
            continue;
        pairs->use[pairs->count] = use;
        pairs->transfer[pairs->count++] = transfer;
    }
    size_t n = pairs->count - start;
    double mean_use = statistics_mean(pairs->use + start, n),
           mean_transfer = statistics_mean(pairs->transfer + start, n);
    for (size_t i = start; i < pairs->count; i++) {
        pairs->use[i] -= mean_use;
        pairs->transfer[i] -= mean_transfer;
    }
    pairs->groups += n > 0;
}

static void add_group(struct table *table, const struct table *runs, size_t first, size_t end,
                      struct pairs pairs[MEASURES])
{
    for (size_t column = 0; column < runs->columns - RUN_NUMBERS; column++)
        copy_cell(table, table_cell_at(runs, first, column));
    table_add_integer(table, (int64_t)(end - first));
    for (size_t column = 0; column < RUN_NUMBERS; column++)
        table_add_real(table, mean_of(runs, first, end, column));
    for (size_t i = 0; i < MEASURES; i++) {
        size_t start = pairs[i].count;
        add_pairs(&pairs[i], runs, first, end, (size_t)measures[i]);
        add_correlation(table, pairs[i].use + start, pairs[i].transfer + start, pairs[i].count - start, 0);
    }
}

static void add_groups(struct table *table, const struct table *runs, struct pairs pairs[MEASURES])
{
    size_t rows = table_rows(runs), groups = 0;
    for (size_t column = 0; column < runs->columns - RUN_NUMBERS; column++)
        table_add_column(table, &runs->column[column]);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(table, &columns[i]);
    for (size_t first = 0, end = 0; first < rows; first = end, groups++) {
        for (end = first + 1; end < rows && same_group(runs, first, end); end++)
            ;
        add_group(table, runs, first, end, pairs);
    }
    if (groups < 2)
        return;
    table_begin_block(table);
    table_add_text(table, "within groups");
    for (size_t column = 1; column < runs->columns - RUN_NUMBERS; column++)
        table_add_empty(table);
    table_add_integer(table, (int64_t)rows);
    for (size_t column = 0; column < RUN_NUMBERS; column++)
        table_add_empty(table);
    for (size_t i = 0; i < MEASURES; i++)
        add_correlation(table, pairs[i].use, pairs[i].transfer, pairs[i].count,
                        pairs[i].groups > 0 ? pairs[i].groups - 1 : 0);
}

static status sum_up(const struct table *runs, struct table *table, struct error *error)
{
    size_t rows = table_rows(runs);
    double *room = calloc(2 * MEASURES * rows + 1, sizeof *room);
    if (room == NULL)
        return error_set(error, ERROR_MEMORY, "results: no memory for %zu runs", rows);
    struct pairs pairs[MEASURES] = {0};
    for (size_t i = 0; i < MEASURES; i++) {
        pairs[i].use = room + 2 * i * rows;
        pairs[i].transfer = pairs[i].use + rows;
    }
    add_groups(table, runs, pairs);
    free(room);
    return OK;
}

/* Columns: suite, the settings, and the run's numbers; sorted by suite and settings. */
static status answer_groups(struct store *store, const struct query_filter *filter, struct table *table,
                            struct error *error)
{
    struct text sql = {0};
    struct table runs = {0};
    size_t keys = 1;
    text_add(&sql, CHOSEN "SELECT max(suite) AS suite, ");
    status result = query_add_settings(store, filter->by, &sql, error);
    for (const char *by = filter->by; *by != 0; keys++) {
        by += strcspn(by, ", ");
        by += strspn(by, ", ");
    }
    text_add(&sql, PER_RUN);
    for (size_t i = 1; i <= keys; i++)
        text_add(&sql, "%zu, ", i);
    text_add(&sql, "chosen.run");
    if (result == OK && sql.failed)
        result = error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    NEXT(result, query_answer_sql(store, sql.data, filter, &runs, error));
    NEXT(result, sum_up(&runs, table, error));
    table_free(&runs);
    text_free(&sql);
    return result;
}

status query_merges(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    if (filter->by != NULL)
        return answer_groups(store, filter, table, error);
    return query_answer_sql(
        store,
        CHOSEN "SELECT run, task, name, iteration, encoder, block, target, t1, t2, iterations, use, "
               "overwritten, next_use, loss_before, loss_after, distance FROM chosen JOIN merge_use USING (run) "
               "WHERE ?11 IS NULL OR name = ?11 ORDER BY run, task, iteration, encoder, block, position",
        filter, table, error);
}

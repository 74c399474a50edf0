/* The table of classifiers: each row's accuracy, and whether it is above or below the baseline's. */
#include <math.h>
#include <string.h>

#include "core/embedded.h"
#include "results/query/internal.h"
#include "results/statistics/statistics.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(classifier_files);

/* As queries/paper_table_classifiers.sql gives them; what ends in ± is a variance there. */
enum column {
    SUITE,
    DATASET,
    CLASSIFIER,
    SEEDS,
    PARAMETERS,
    ACCURACY,
    ACCURACY_SPREAD,
    PAIRS,
    DIFFERENCE,
    DIFFERENCE_SPREAD,
    DIRECTION,
    COLUMNS
};

/* Half of Student's 95% interval of a mean of n values; NAN where n is too small. */
static double half_width(const struct table_cell *variance, const struct table_cell *n)
{
    if (variance->kind != CELL_REAL || n->kind != CELL_INTEGER || n->integer < 2)
        return NAN;
    double sd = sqrt(fmax(variance->real, 0)); /* rounding can leave a little below 0 */
    return statistics_mean_interval(0, sd, (size_t)n->integer, 0.95).high;
}

/* NULL: there is no interval. Differences that are the same to the last image, but for rounding, say nothing of how far
 * others would be apart. */
static const char *direction(double difference, double half)
{
    if (isnan(half))
        return NULL;
    if (fabs(difference) <= half || half < 1e-5)
        return "not established";
    return difference > 0 ? "above" : "below";
}

static void add_cell(struct table *table, const struct table_cell *cell)
{
    if (cell->kind == CELL_INTEGER)
        table_add_integer(table, cell->integer);
    else if (cell->kind == CELL_REAL)
        table_add_real(table, cell->real);
    else
        table_add_text(table, cell->kind == CELL_TEXT ? cell->text : NULL);
}

static void add_row(const struct table *rows, size_t row, struct table *table)
{
    const struct table_cell *cell = table_cell_at(rows, row, 0);
    double spread = half_width(&cell[DIFFERENCE_SPREAD], &cell[PAIRS]);
    for (size_t column = 0; column < COLUMNS; column++)
        if (column == ACCURACY_SPREAD)
            table_add_real(table, half_width(&cell[ACCURACY_SPREAD], &cell[SEEDS]));
        else if (column == DIFFERENCE_SPREAD)
            table_add_real(table, spread);
        else if (column == DIRECTION)
            table_add_text(table, direction(cell[DIFFERENCE].real, spread));
        else
            add_cell(table, &cell[column]);
}

static bool begins_block(const struct table *rows, size_t row)
{
    const struct table_cell *cell = table_cell_at(rows, row, 0), *before = row ? table_cell_at(rows, row - 1, 0) : NULL;
    return before != NULL &&
           (strcmp(cell[SUITE].text, before[SUITE].text) != 0 || strcmp(cell[DATASET].text, before[DATASET].text) != 0);
}

static status check_baseline(const struct store *store, const struct query_filter *filter, const struct table *rows,
                             struct error *error)
{
    for (size_t row = 0; row < table_rows(rows); row++)
        if (filter->baseline == NULL || table_cell_at(rows, row, DIFFERENCE)->kind != CELL_EMPTY)
            return OK;
    return filter->baseline == NULL
               ? OK
               : error_set(
                     error, ERROR_ARGUMENT,
                     "%s: baseline \"%.60s\": expected the row of one configuration of a suite, with others beside "
                     "it on the same images and seeds; found none",
                     store_path(store), filter->baseline);
}

status query_paper_table_classifiers(struct store *store, const struct query_filter *filter, struct table *table,
                                     struct error *error)
{
    struct text sql = {0};
    struct table rows = {0};
    text_add(&sql, "%s%s", CHOSEN, (const char *)classifier_files[0].data);
    status result = sql.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store))
                               : query_answer_sql(store, sql.data, filter, &rows, error);
    NEXT(result, check_baseline(store, filter, &rows, error));
    for (size_t column = 0; column < rows.columns; column++)
        table_add_column(
            table, &(struct table_column){.title = rows.column[column].title,
                                          .decimals = 2,
                                          .once = column <= DATASET,
                                          .best = column == ACCURACY && !filter->published ? BEST_HIGHEST : BEST_NONE});
    for (size_t row = 0; result == OK && row < table_rows(&rows); row++) {
        if (begins_block(&rows, row))
            table_begin_block(table);
        add_row(&rows, row, table);
    }
    text_free(&sql);
    table_free(&rows);
    return result;
}

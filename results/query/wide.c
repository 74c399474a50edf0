/* Answers whose columns are datasets: the table of a paper, and where the routers sent the images of each task. Their SQL
 * (queries/) gives rows (block, width, keys…, title, value): each row of the answer is `width` of them, in the order of
 * its columns, and the title is that column's. */
#include <math.h>
#include <string.h>

#include "core/embedded.h"
#include "results/query/internal.h"
#include "results/query/published.h"
#include "results/statistics/statistics.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(query_files); /* in the order of enum wide_query */

enum wide_query { WIDE_PAPER_TABLE, WIDE_PAPER_TABLE_CLASSES, WIDE_ROUTERS, WIDE_MATRIX };

enum { COLUMN_BLOCK, COLUMN_WIDTH, COLUMN_KEYS }; /* then title, value */

/* How a wide answer is shown. */
struct wide {
    size_t once; /* leading keys that people see once per block */
    enum table_best best;
    const char *interval; /* end of the titles of variances over `seeds`, which become 95% half-widths; NULL: none */
};

static void add_copy(struct table *table, const struct table_cell *cell)
{
    switch (cell->kind) {
    case CELL_INTEGER:
        table_add_integer(table, cell->integer);
        break;
    case CELL_REAL:
        table_add_real(table, cell->real);
        break;
    case CELL_TEXT:
        table_add_text(table, cell->text);
        break;
    case CELL_EMPTY:
        table_add_empty(table);
        break;
    }
}

static bool is_interval(const struct wide *wide, const char *title)
{
    size_t length = strlen(title), end = wide->interval != NULL ? strlen(wide->interval) : length + 1;
    return length >= end && strcmp(title + length - end, wide->interval) == 0;
}

static void add_columns(const struct table *rows, const struct wide *wide, size_t width, struct table *table)
{
    size_t title = rows->columns - 2;
    for (size_t key = COLUMN_KEYS; key < title; key++)
        table_add_column(
            table, &(struct table_column){.title = rows->column[key].title, .once = key - COLUMN_KEYS < wide->once});
    for (size_t i = 0; i < width; i++) {
        struct table_column column = {
            .title = table_cell_at(rows, i, title)->text, .align = ALIGN_RIGHT, .decimals = 1, .best = wide->best};
        if (is_interval(wide, column.title))
            column.best = BEST_NONE;
        table_add_column(table, &column);
    }
}

/* Student's interval of a mean over seeds. */
static void add_half_width(struct table *table, const struct table_cell *variance, const struct table_cell *seeds)
{
    size_t n = seeds->kind == CELL_INTEGER ? (size_t)seeds->integer : 0;
    if (variance->kind != CELL_REAL || n < 2) {
        table_add_empty(table);
        return;
    }
    double sd = sqrt(fmax(variance->real, 0)); /* rounding can leave a little below 0 */
    table_add_real(table, statistics_mean_interval(0, sd, n, 0.95).high);
}

static void add_row(const struct table *rows, const struct wide *wide, size_t first, size_t width, struct table *table)
{
    size_t seeds = rows->columns - 3; /* the last key, where there are intervals */
    const struct table_cell *block = table_cell_at(rows, first, COLUMN_BLOCK);
    if (first > 0 && block->integer != table_cell_at(rows, first - 1, COLUMN_BLOCK)->integer)
        table_begin_block(table);
    for (size_t key = COLUMN_KEYS; key < rows->columns - 2; key++)
        add_copy(table, table_cell_at(rows, first, key));
    for (size_t i = 0; i < width; i++) {
        const struct table_cell *value = table_cell_at(rows, first + i, rows->columns - 1);
        if (is_interval(wide, table_cell_at(rows, first + i, rows->columns - 2)->text))
            add_half_width(table, value, table_cell_at(rows, first, seeds));
        else
            add_copy(table, value);
    }
}

static status widen(const struct store *store, const struct table *rows, const struct wide *wide, struct table *table,
                    struct error *error)
{
    size_t count = table_rows(rows), width = count ? (size_t)table_cell_at(rows, 0, COLUMN_WIDTH)->integer : 0;
    if (count && (width == 0 || count % width != 0))
        return error_set(error, ERROR_FORMAT, "%s: expected rows of %zu values, found %zu values", store_path(store),
                         width, count);
    add_columns(rows, wide, width, table);
    for (size_t first = 0; first < count && !table->failed; first += width)
        add_row(rows, wide, first, width, table);
    return OK;
}

static status answer(struct store *store, enum wide_query query, const struct wide *wide,
                     const struct query_filter *filter, struct table *table, struct error *error)
{
    struct text sql = {0};
    struct table rows = {0};
    text_add(&sql, "%s%s", CHOSEN, (const char *)query_files[query].data);
    status result = sql.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store))
                               : query_answer_sql(store, sql.data, filter, &rows, error);
    if (result == OK)
        result = widen(store, &rows, wide, table, error);
    text_free(&sql);
    table_free(&rows);
    return result;
}

/* Whose table it is: all chosen runs are class-incremental, or the filter asks for them; or all are classifiers. */
static status find_kind(struct store *store, const struct query_filter *filter, bool *classes, bool *classifiers,
                        struct error *error)
{
    struct table counts = {0};
    status result = query_answer_sql(
        store,
        CHOSEN
        "SELECT count(*) > 0 AND sum(setting <> 'class_incremental') = 0, count(*) > 0 AND count(*) = sum(run IN "
        "(SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear')) FROM chosen "
        "WHERE status = 'finished'",
        filter, &counts, error);
    *classes = result == OK && table_cell_at(&counts, 0, 0)->integer != 0;
    *classes |= filter->setting != NULL && strcmp(filter->setting, "class_incremental") == 0;
    *classifiers = result == OK && table_cell_at(&counts, 0, 1)->integer != 0;
    table_free(&counts);
    return result;
}

status query_paper_table(struct store *store, const struct query_filter *filter, struct table *table,
                         struct error *error)
{
    TRY(published_attach(store, error));
    /* Best of what can be compared: printed numbers have other data, or other seeds. */
    struct wide wide = {.once = 1, .best = filter->published ? BEST_NONE : BEST_HIGHEST, .interval = "±"};
    bool classes, classifiers;
    TRY(find_kind(store, filter, &classes, &classifiers, error));
    if (classifiers)
        return query_paper_table_classifiers(store, filter, table, error);
    if (filter->baseline != NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: --baseline is for the table of classifiers; with runs of other kinds in the database, "
                         "choose them with --method supervised",
                         store_path(store));
    wide.once = classes ? 0 : wide.once;
    return answer(store, classes ? WIDE_PAPER_TABLE_CLASSES : WIDE_PAPER_TABLE, &wide, filter, table, error);
}

status query_routers(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    return answer(store, WIDE_ROUTERS, &(struct wide){.once = 2}, filter, table, error);
}

status query_matrix(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    return answer(store, WIDE_MATRIX, &(struct wide){.once = 5}, filter, table, error);
}

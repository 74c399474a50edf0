/* Answers whose columns are datasets: the table of a paper, and where the routers sent the images of each task. Their SQL
 * (queries/) gives rows (block, width, keys…, title, value): each row of the answer is `width` of them, in the order of
 * its columns, and the title is that column's. */
#include "core/embedded.h"
#include "results/query/internal.h"
#include "results/query/published.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(query_files); /* in the order of enum wide_query */

enum wide_query { WIDE_PAPER_TABLE, WIDE_SELECTOR };

enum { COLUMN_BLOCK, COLUMN_WIDTH, COLUMN_KEYS }; /* then title, value */

/* How a wide answer is shown. */
struct wide {
    size_t once; /* leading keys that people see once per block */
    enum table_best best;
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

static void add_columns(const struct table *rows, const struct wide *wide, size_t width, struct table *table)
{
    size_t title = rows->columns - 2;
    for (size_t key = COLUMN_KEYS; key < title; key++)
        table_add_column(
            table, &(struct table_column){.title = rows->column[key].title, .once = key - COLUMN_KEYS < wide->once});
    for (size_t i = 0; i < width; i++)
        table_add_column(table, &(struct table_column){.title = table_cell_at(rows, i, title)->text,
                                                       .align = ALIGN_RIGHT,
                                                       .decimals = 1,
                                                       .best = wide->best});
}

static void add_row(const struct table *rows, size_t first, size_t width, struct table *table)
{
    const struct table_cell *block = table_cell_at(rows, first, COLUMN_BLOCK);
    if (first > 0 && block->integer != table_cell_at(rows, first - 1, COLUMN_BLOCK)->integer)
        table_begin_block(table);
    for (size_t key = COLUMN_KEYS; key < rows->columns - 2; key++)
        add_copy(table, table_cell_at(rows, first, key));
    for (size_t i = 0; i < width; i++)
        add_copy(table, table_cell_at(rows, first + i, rows->columns - 1));
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
        add_row(rows, first, width, table);
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

status query_paper_table(struct store *store, const struct query_filter *filter, struct table *table,
                         struct error *error)
{
    TRY(published_attach(store, error));
    return answer(store, WIDE_PAPER_TABLE, &(struct wide){.once = 1, .best = BEST_HIGHEST}, filter, table, error);
}

status query_selector(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    return answer(store, WIDE_SELECTOR, &(struct wide){.once = 2}, filter, table, error);
}

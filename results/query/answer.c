/* Answers of SQL as tables. */
#include <string.h>

#include "core/text.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

#define BYTES_LIMIT ((size_t)256 << 20)

/* How the numbers of a column are shown; others with all their digits. */
static const struct table_column shown[] = {
    {.title = "transfer", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "average", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "last", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "forgetting", .decimals = 1, .best = BEST_LOWEST},
    {.title = "backward_transfer", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "forward_transfer", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "gain", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "zero_shot", .decimals = 1},
    {.title = "right_router", .decimals = 1},
    {.title = "unseen_zero_shot", .decimals = 1},
    {.title = "share", .decimals = 1},
    {.title = "seconds", .decimals = 1},
    {.title = "seconds_per_iteration", .decimals = 3},
    {.title = "images_per_second", .decimals = 1},
};

static void add_titles(const struct statement *statement, struct table *table)
{
    for (size_t column = 0; column < statement_columns(statement); column++) {
        struct table_column about = {.title = statement_title(statement, column), .decimals = DECIMALS_ALL};
        for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
            if (strcmp(shown[i].title, about.title) == 0)
                about = shown[i];
        table_add_column(table, &about);
    }
}

static void add_blob(struct table *table, const uint8_t *data, size_t size)
{
    struct text text = {0};
    text_add(&text, "x'");
    for (size_t i = 0; i < size; i++)
        text_add(&text, "%02x", data[i]);
    text_add(&text, "'");
    table->failed |= text.failed;
    table_add_text(table, text.data);
    text_free(&text);
}

static void add_value(struct table *table, const struct value *value)
{
    switch (value->kind) {
    case VALUE_INTEGER:
        table_add_integer(table, value->integer);
        break;
    case VALUE_REAL:
        table_add_real(table, value->real);
        break;
    case VALUE_TEXT:
        table_add_text_bytes(table, value->bytes.data, value->bytes.size);
        break;
    case VALUE_BLOB:
        add_blob(table, value->bytes.data, value->bytes.size);
        break;
    case VALUE_NULL:
        table_add_empty(table);
        break;
    }
}

/* What a value takes as text; blobs become hexadecimal. */
static size_t text_size(const struct value *value)
{
    if (value->kind == VALUE_TEXT)
        return value->bytes.size;
    return value->kind == VALUE_BLOB ? 2 * value->bytes.size + 3 : 0;
}

static status add_row(const struct store *store, struct statement *statement, struct table *table, size_t *bytes,
                      struct error *error)
{
    for (size_t column = 0; column < table->columns; column++) {
        struct value value = statement_value(statement, column);
        *bytes += text_size(&value);
        if (table->count >= QUERY_CELLS_LIMIT || *bytes > BYTES_LIMIT)
            return error_set(error, ERROR_ARGUMENT,
                             "%s: the answer has more than %d cells or %zu bytes; ask for less, for example with LIMIT",
                             store_path(store), QUERY_CELLS_LIMIT, BYTES_LIMIT);
        add_value(table, &value);
    }
    if (table->failed)
        return error_set(error, ERROR_MEMORY, "%s: out of memory after %zu rows", store_path(store), table_rows(table));
    return OK;
}

/* Appends the answer of a statement that is bound. */
static status fill(const struct store *store, struct statement *statement, struct table *table, struct error *error)
{
    add_titles(statement, table);
    size_t bytes = 0;
    for (bool row;;) {
        TRY(statement_step(statement, &row, error));
        if (!row)
            return OK;
        TRY(add_row(store, statement, table, &bytes, error));
    }
}

status query_answer_sql(struct store *store, const char *sql, const struct query_filter *filter, struct table *table,
                        struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, sql, error));
    status result = query_bind_filter(statement, filter, error);
    if (result == OK)
        result = fill(store, statement, table, error);
    statement_close(statement);
    return result;
}

status query_check_chosen(struct store *store, const struct query_filter *filter, struct error *error)
{
    struct table table = {0};
    status result = query_answer_sql(store, CHOSEN "SELECT run FROM chosen LIMIT 1", filter, &table, error);
    bool none = table_rows(&table) == 0;
    table_free(&table);
    if (result == OK && none)
        return error_set(error, ERROR_ARGUMENT, "%s: no run is chosen; `mtil query runs` lists those there are",
                         store_path(store));
    return result;
}

status query_sql(struct store *store, const char *sql, struct table *table, struct error *error)
{
    struct statement *statement;
    TRY(statement_open_reader(&statement, store->database, sql, error));
    status result = fill(store, statement, table, error);
    statement_close(statement);
    return result;
}

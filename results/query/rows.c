/* The rows of a statement, to which the texts of a filter are bound, as a table, as they come. */
#include <stddef.h>

#include "results/query/internal.h"
#include "results/query/question.h"
#include "results/store/store_internal.h"

#define BYTES_LIMIT ((size_t)256 << 20)

/* Parameters of SQL; the first ones are filters. */
static const struct filter {
    const char *parameter;
    size_t at;
} filters[] = {
#define TEXT(name) ":" #name, offsetof(struct query_filter, name)
    {TEXT(runs)},     {TEXT(seed)},   {TEXT(where)},   {TEXT(suite)}, {TEXT(setting)}, {TEXT(method)},   {TEXT(policy)},
    {TEXT(selector)}, {TEXT(status)}, {TEXT(dataset)}, {TEXT(since)}, {TEXT(before)},  {TEXT(baseline)}, {TEXT(by)},
#undef TEXT
};
enum { TEXTS = sizeof filters / sizeof *filters, FILTERS = TEXTS - 2 };

const char *query_filter_name(size_t place)
{
    return place == 0 ? "run" : place < FILTERS ? filters[place].parameter + 1 : NULL;
}

const char **query_filter_text(struct query_filter *filter, size_t place)
{
    return (const char **)((char *)filter + filters[place].at);
}

status query_bind(struct statement *statement, const struct query_filter *filter, struct error *error)
{
    struct query_filter copy = *filter;
    struct named_value values[TEXTS + 2] = {{":run", value_count(filter->run)},
                                            {":published", value_integer(filter->published)}};
    for (size_t i = 0; i < TEXTS; i++)
        values[i + 2] = (struct named_value){filters[i].parameter, value_text(*query_filter_text(&copy, i))};
    return statement_bind_named(statement, values, TEXTS + 2, error);
}

static void add_blob(struct table *table, const uint8_t *data, size_t size)
{
    struct text text = {0};
    text_add(&text, "x'");
    for (size_t i = 0; i < size; i++)
        text_add(&text, "%02x", data[i]);
    text_add(&text, "'");
    table_add_text(table, text.data);
    text_free(&text);
}

static void add_value(struct table *table, const struct value *value)
{
    if (value->kind == VALUE_INTEGER)
        table_add_integer(table, value->integer);
    else if (value->kind == VALUE_REAL)
        table_add_real(table, value->real);
    else if (value->kind == VALUE_TEXT)
        table_add_text_bytes(table, value->bytes.data, value->bytes.size);
    else if (value->kind == VALUE_BLOB)
        add_blob(table, value->bytes.data, value->bytes.size);
    else
        table_add_empty(table);
}

/* What a value takes as text; blobs become hexadecimal. */
static size_t text_size(const struct value *value)
{
    if (value->kind == VALUE_TEXT)
        return value->bytes.size;
    return value->kind == VALUE_BLOB ? 2 * value->bytes.size + 3 : 0;
}

/* Appends the answer of a statement that is bound. */
static status fill(const struct store *store, struct statement *statement, struct table *table, struct error *error)
{
    size_t bytes = 0;
    for (size_t column = 0; column < statement_columns(statement); column++) {
        struct table_column about = *question_usual_column(statement_title(statement, column));
        about.title = statement_title(statement, column);
        table_add_column(table, &about);
    }
    for (bool row;;) {
        TRY(statement_step(statement, &row, error));
        for (size_t column = 0; row && column < table->columns; column++) {
            struct value value = statement_value(statement, column);
            bytes += text_size(&value);
            if (table->count >= QUERY_CELLS_LIMIT || bytes > BYTES_LIMIT)
                return error_set(error, ERROR_ARGUMENT,
                                 "%s: the answer has more than %d cells or %zu bytes; ask for less, for example with "
                                 "LIMIT",
                                 store_path(store), QUERY_CELLS_LIMIT, BYTES_LIMIT);
            add_value(table, &value);
        }
        if (!row)
            return OK;
    }
}

status query_rows(struct store *store, const char *sql, const struct query_filter *filter, struct table *table,
                  struct error *error)
{
    struct statement *statement;
    TRY(statement_open_reader(&statement, store->database, sql, error));
    status result = query_bind(statement, filter, error);
    NEXT(result, fill(store, statement, table, error));
    statement_close(statement);
    return result;
}

status query_sql(struct store *store, const char *sql, struct table *table, struct error *error)
{
    return query_rows(store, sql, &(struct query_filter){0}, table, error);
}

/* Filters: their texts as parameters of SQL, the table `chosen`, and what a filter names and no run has. */
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/query/question.h"
#include "results/store/live.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(filter_scripts);

/* --- Rows of a statement, to which the texts of a filter are bound, as they come --- */

#define CELLS_LIMIT 10000000 /* of an answer */
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

/* The filter's texts as parameters of a statement: :policy and so on. */
static status bind_filter(struct statement *statement, const struct query_filter *filter, struct error *error)
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
    SCOPED(text_free) struct text text = {0};
    text_add(&text, "x'");
    for (size_t i = 0; i < size; i++)
        text_add(&text, "%02x", data[i]);
    text_add(&text, "'");
    table_add_text(table, text.data);
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
        struct table_column about = question_usual_column(statement_title(statement, column));
        about.title = statement_title(statement, column);
        table_add_column(table, &about);
    }
    for (bool row;;) {
        TRY(statement_step(statement, &row, error));
        for (size_t column = 0; row && column < table->columns; column++) {
            struct value value = statement_value(statement, column);
            bytes += text_size(&value);
            if (table->count >= CELLS_LIMIT || bytes > BYTES_LIMIT)
                return error_set(error, ERROR_ARGUMENT,
                                 "%s: the answer has more than %d cells or %zu bytes; ask for less, for example with "
                                 "LIMIT",
                                 store_path(store), CELLS_LIMIT, BYTES_LIMIT);
            add_value(table, &value);
        }
        if (!row)
            return OK;
    }
}

status query_rows(struct store *store, const char *sql, const struct query_filter *filter, struct table *table,
                  struct error *error)
{
    SCOPED(statement_close_at) struct statement *statement = NULL;
    TRY(statement_open_reader(&statement, store->database, sql, error));
    TRY(bind_filter(statement, filter, error));
    return fill(store, statement, table, error);
}

status query_sql(struct store *store, const char *sql, struct table *table, struct error *error)
{
    return query_rows(store, sql, &(struct query_filter){0}, table, error);
}

/* Words of --by beside settings, and what they stand for: whole: settings of any kind; section: what else belongs to them. */
#define DIMENSION                                                                                                      \
    "CREATE TEMP VIEW IF NOT EXISTS dimension (name, key, section, whole) AS VALUES ('policy', 'merge.policy', "       \
    "'merge', 0), ('method', 'method.name', 'method', 0), ('selector', 'selector.kind', 'selector', 0), "              \
    "('setting', 'data.shots', 'data', 0), ('setting', 'evaluation.label_space', NULL, 0), ('order', 'data.order', "   \
    "'data', 0), ('model', 'model.weights', 'model', 0), ('model', 'model.configuration', NULL, 0), ('model', "        \
    "'model.vocabulary', NULL, 0), ('model', 'model.heads', NULL, 0), ('model', 'model.activation', NULL, 0), "        \
    "('suite', 'suite', NULL, 1), ('row', 'run.row', NULL, 1)"

/* --- What a filter names and no run has --- */

enum { EXPECTED, KIND, NAME, KNOWN, NAMES_LIMIT = 64 /* that a message lists */ };

static const char *text_at(const struct table *rows, size_t row, size_t column)
{
    const struct table_cell *cell = table_cell_at(rows, row, column);
    return cell->kind == CELL_TEXT ? cell->text : NULL;
}

/* Rows as filter.sql has them behind "refuse"; none: nothing is wrong. */
static status refuse(struct store *store, const char *sql, const struct query_filter *filter, struct error *error)
{
    SCOPED(table_free) struct table rows = {0};
    status result = query_rows(store, sql, filter, &rows, error);
    size_t count = 0;
    OWNED const char **names = xcalloc(table_rows(&rows) + 1, sizeof *names);
    for (size_t row = 0; row < table_rows(&rows); row++)
        if ((names[count] = text_at(&rows, row, KNOWN)) != NULL)
            count++;
    const char *expected = table_rows(&rows) > 0 ? text_at(&rows, 0, EXPECTED) : NULL;
    if (result == OK && table_rows(&rows) > 0 && text_at(&rows, 0, KIND) == NULL) {
        result = error_set(error, ERROR_ARGUMENT, "%s: %s", store_path(store), expected);
    } else if (result == OK && table_rows(&rows) > 0) {
        const char *name = text_at(&rows, 0, NAME);
        bool numbers = count > 0 && isdigit((unsigned char)*names[0]); /* none is near another */
        result = error_unknown_word_near(error, store_path(store), text_at(&rows, 0, KIND), name,
                                         numbers ? NULL : nearest_word(name, names, count),
                                         expected != NULL ? &expected : names,
                                         expected != NULL      ? 1
                                         : count < NAMES_LIMIT ? count
                                                               : NAMES_LIMIT);
    }
    return result;
}

status query_check_filter(struct store *store, const struct query_filter *filter, struct error *error)
{
    SCOPED(question_free) struct question question = {0};
    TRY(question_parse(&question, "filter", "filter", embedded_text(filter_scripts, "filter.sql"), error));
    return refuse(store, question.refuse, filter, error);
}

#define UNKNOWN_BY                                                                                                     \
    "WITH words AS (SELECT DISTINCT name FROM dimension WHERE name NOT IN ('suite', :by)) "                            \
    "SELECT (SELECT group_concat(name, ', ') FROM words) || ', a key of the suite such as merge.every', "              \
    "'setting of --by', coalesce((SELECT group_concat(key, '|') FROM dimension WHERE name = :by), :by), name "         \
    "FROM (SELECT name FROM words UNION SELECT key FROM settings)"

status query_ask_key(struct store *store, const char *key, struct error *error)
{
    TRY(database_run(
        store->database,
        "INSERT OR REPLACE INTO temp.asked (key) SELECT key FROM (SELECT key FROM dimension WHERE name = ?1 UNION ALL "
        "SELECT ?1 WHERE ?1 NOT IN (SELECT name FROM dimension)) AS word "
        "WHERE EXISTS (SELECT 1 FROM settings WHERE settings.key = word.key)",
        VALUES(value_text(key)), error));
    return database_changes(store->database) > 0 ? OK
                                                 : refuse(store, UNKNOWN_BY, &(struct query_filter){.by = key}, error);
}

/* --- Choosing --- */

static void is_gone(void *store, const char *run, const char *host, struct text *answer)
{
    int64_t number;
    text_add(answer, "%d", parse_integer(run, &number) && live_is_gone(store, number, host));
}

static void live(void *store, const char *run, const char *host, struct text *answer)
{
    char text[LIVE_SIZE] = "";
    int64_t number;
    if (parse_integer(run, &number))
        live_text(store, number, text);
    text_add(answer, "%s", text);
}

static void is_incidental(void *filter, const char *key, const char *value, struct text *answer)
{
    const struct query_filter *of = filter;
    text_add(answer, "%d", of->incidental != NULL && of->incidental(key, value));
}

static status fill_chosen(struct store *store, const char *answer, const struct query_filter *filter,
                          struct error *error)
{
    SCOPED(text_free) struct text sql = {0};
    SCOPED(statement_close_at) struct statement *statement = NULL;
    bool row;
    text_add(&sql, "CREATE TEMP TABLE chosen AS %s", answer);
    TRY(statement_open(&statement, store->database, sql.data, error));
    TRY(bind_filter(statement, filter, error));
    return statement_step(statement, &row, error);
}

status query_choose(struct store *store, const struct query_filter *filter, struct error *error)
{
    SCOPED(question_free) struct question question = {0};
    TRY(database_add_function(store->database, "live", live, store, error));
    TRY(database_add_function(store->database, "is_gone", is_gone, store, error));
    TRY(database_add_function(store->database, "is_incidental", is_incidental, (void *)filter, error));
    TRY(database_execute(store->database,
                         "DROP TABLE IF EXISTS temp.chosen; DROP TABLE IF EXISTS temp.asked; "
                         "CREATE TEMP TABLE asked (place INTEGER PRIMARY KEY, key TEXT UNIQUE); " DIMENSION,
                         error));
    TRY(question_parse(&question, "filter", "filter", embedded_text(filter_scripts, "filter.sql"), error));
    TRY(fill_chosen(store, question.answer, filter, error));
    return database_execute(store->database, "CREATE UNIQUE INDEX temp.chosen_run ON chosen (run); ANALYZE temp.chosen",
                            error);
}

status query_check_chosen(struct store *store, const struct query_filter *filter, struct error *error)
{
    int64_t runs = 0;
    TRY(query_choose(store, filter, error));
    TRY(database_integer(store->database, "SELECT count(*) FROM temp.chosen", &runs, error));
    if (runs == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: no run is chosen; `mtil query runs` lists those there are",
                         store_path(store));
    return OK;
}

status query_contents(struct store *store, const char *runs, struct error *error)
{
    SCOPED(text_free) struct text script = {0};
    text_add(&script,
             "DROP TABLE IF EXISTS temp.valued; CREATE TEMP TABLE valued (place INTEGER PRIMARY KEY, run INTEGER);"
             " INSERT INTO valued %s; %s",
             runs, embedded_text(filter_scripts, "contents.sql"));
    return database_execute(store->database, script.data, error);
}

status query_label(struct store *store, struct error *error)
{
    TRY(database_execute(store->database, embedded_text(filter_scripts, "labels.sql"), error));
    TRY(query_contents(store, "SELECT place, run FROM alike ORDER BY place", error));
    return database_execute(store->database, embedded_text(filter_scripts, "labels-told.sql"), error);
}

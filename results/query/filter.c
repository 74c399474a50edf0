/* Filters: as parameters of SQL, and whether they can choose anything: names that runs have, dates that are dates. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/store/live.h"
#include "results/store/store_internal.h"

/* known: where runs have names as these; NULL: they are not checked by it. */
static const struct filter {
    const char *name;
    size_t at;
    const char *known;
} filters[] = {
#define FIELD(name) #name, offsetof(struct query_filter, name)
    {FIELD(runs), "CAST(run AS TEXT) FROM runs"},
    {FIELD(seed), "CAST(seed AS TEXT) FROM runs"},
    {FIELD(where), NULL},
    {FIELD(suite), "suite FROM runs"},
    {FIELD(setting), "setting FROM runs"},
    {FIELD(method), "method FROM runs"},
    {FIELD(policy), "policy FROM runs"},
    {FIELD(selector), "selector FROM runs"},
    {FIELD(status), NULL},
    {FIELD(dataset), "name FROM tasks"},
    {FIELD(since), NULL},
    {FIELD(before), NULL},
#undef FIELD
};
enum { FILTERS = sizeof filters / sizeof *filters };

const char *query_filter_name(size_t place)
{
    return place == 0 ? "run" : place < FILTERS ? filters[place].name : NULL;
}

const char **query_filter_text(struct query_filter *filter, size_t place)
{
    return (const char **)((char *)filter + filters[place].at);
}

static const char *text_of(const struct query_filter *filter, size_t place)
{
    return *query_filter_text((struct query_filter *)filter, place);
}

/* The settings that a filter asks for; words without "=" continue the list before them. */
static const char wanted_sql[] =
    "CREATE TEMP TABLE wanted AS WITH words (place, word) AS ("
    "SELECT key, value FROM json_each('[' || replace(json_quote(:where), ',', '\",\"') || ']') WHERE :where IS NOT NULL"
    "), conditions (condition) AS (SELECT group_concat(word, ',') FROM ("
    "SELECT word, (SELECT max(place) FROM words AS first WHERE first.place <= words.place AND instr(first.word, '=')) "
    "AS begin FROM words ORDER BY place) GROUP BY begin) "
    "SELECT trim(substr(condition, 1, instr(condition, '=') - 1)) AS key, "
    "trim(substr(condition, instr(condition, '=') + 1)) AS value FROM conditions";

/* Numbers match in any notation, lists with commas, blanks or both between their words. */
#define WORDS_OF(list)                                                                                                 \
    "trim(replace(replace(replace(replace(replace(" list ", '[', ''), ']', ''), ',', ' '), '  ', ' '), '  ', ' '))"
#define HAS_WANTED                                                                                                     \
    "settings.key = wanted.key AND (settings.value = wanted.value OR "                                                 \
    "settings.value = iif(json_valid(wanted.value), json_extract(wanted.value, '$'), NULL) OR "                        \
    "settings.type = 'list' AND " WORDS_OF("settings.value") " = " WORDS_OF("wanted.value") ")"

#define IS_ONE_OF(column, list)                                                                                        \
    " AND (" list " IS NULL OR " column " IN (SELECT value FROM json_each('[' || " list " || ']')))"

static const char chosen_sql[] =
    "CREATE TEMP TABLE chosen AS SELECT * FROM runs WHERE run = coalesce(:run, run)" IS_ONE_OF("run", ":runs")
        IS_ONE_OF("seed",
                  ":seed") " AND suite = coalesce(:suite, suite) AND setting = coalesce(:setting, setting)"
                           " AND method = coalesce(:method, method) AND policy = coalesce(:policy, policy)"
                           " AND selector = coalesce(:selector, selector) AND status = coalesce(:status, status)"
                           " AND (:since IS NULL OR started >= :since) AND (:before IS NULL OR started < :before)"
                           " AND (:dataset IS NULL OR EXISTS (SELECT 1 FROM tasks WHERE tasks.run = runs.run AND name "
                           "= :dataset))"
                           " AND NOT EXISTS (SELECT 1 FROM wanted WHERE NOT EXISTS ("
                           "SELECT 1 FROM settings WHERE settings.run = runs.run AND " HAS_WANTED ")) ORDER BY run";

status query_bind(struct statement *statement, const struct query_filter *filter, struct error *error)
{
    struct named_value values[FILTERS + 3] = {{":run", value_count(filter->run)},
                                              {":baseline", value_text(filter->baseline)},
                                              {":published", value_integer(filter->published)}};
    char names[FILTERS][16];
    for (size_t i = 0; i < FILTERS; i++) {
        snprintf(names[i], sizeof names[i], ":%s", filters[i].name);
        values[i + 3] = (struct named_value){names[i], value_text(text_of(filter, i))};
    }
    return statement_bind_named(statement, values, sizeof values / sizeof *values, error);
}

static status run_filtered(struct store *store, const char *sql, const struct query_filter *filter, struct error *error)
{
    struct statement *statement;
    bool row;
    TRY(statement_open(&statement, store->database, sql, error));
    status result = query_bind(statement, filter, error);
    NEXT(result, statement_step(statement, &row, error));
    statement_close(statement);
    return result;
}

static status find_wanted(struct store *store, const struct query_filter *filter, struct error *error)
{
    TRY(database_execute(store->database, "DROP TABLE IF EXISTS temp.wanted", error));
    return run_filtered(store, wanted_sql, filter, error);
}

const struct query_word query_words[QUERY_WORDS] = {
    {"policy", "merge.policy"},
    {"method", "method.name"},
    {"selector", "selector.kind"},
    {"setting", "data.shots|evaluation.label_space"},
    {"order", "data.order"},
    {"model", "model.weights|model.configuration|model.vocabulary|model.heads|model.activation"},
    {"suite", "*"},
    {"row", "*"},
};

const struct query_word *query_word_find(const char *name)
{
    for (size_t i = 0; i < QUERY_WORDS; i++)
        if (strcmp(query_words[i].name, name) == 0)
            return &query_words[i];
    return NULL;
}

/* --- Whether a filter can choose anything --- */

enum { NAMES_LIMIT = 64 }; /* that a message lists */

/* Names that runs have. */
struct known {
    const char *kind, *sql;
    const char *expected; /* of a message; NULL: the names */
    bool words;           /* query_words are known, too */
    bool numbers;         /* no number is near another */
};

static status check_known(struct store *store, const struct known *known, const char *name, struct error *error)
{
    struct table table = {0};
    status result = query_sql(store, known->sql, &table, error);
    const char **names = xcalloc(table.count + QUERY_WORDS, sizeof *names), *expected = known->expected;
    size_t count = 0;
    bool found = table.count == 0 && expected == NULL;
    for (size_t i = 0; i < table.count; i++)
        if (table.cell[i].kind == CELL_TEXT)
            found |= strcmp(names[count++] = table.cell[i].text, name) == 0;
    for (size_t i = 0; known->words && i < QUERY_WORDS; i++)
        if (strcmp(query_words[i].name, name) != 0)
            names[count++] = query_words[i].name;
    const char *nearest = known->numbers ? NULL : nearest_word(name, names, count);
    size_t listed = expected != NULL ? 1 : count < NAMES_LIMIT ? count : NAMES_LIMIT;
    if (result == OK && !found)
        result = error_unknown_word_near(error, store_path(store), known->kind, name, nearest,
                                         expected != NULL ? &expected : names, listed);
    free(names);
    table_free(&table);
    return result;
}

/* Each word of a list of numbers, or the name. */
static status check_words(struct store *store, size_t filter, const char *text, struct error *error)
{
    char sql[80];
    bool list = filter < 2;
    snprintf(sql, sizeof sql, "SELECT DISTINCT %s ORDER BY 1", filters[filter].known);
    const struct known known = {.kind = query_filter_name(filter), .sql = sql, .numbers = list};
    for (size_t size; *text != 0; text += size + strspn(text + size, ", ")) {
        size = list ? strcspn(text, ", ") : strlen(text);
        char *word = xstrndup(text, size);
        status result = check_known(store, &known, word, error);
        free(word);
        TRY(result);
    }
    return OK;
}

/* A run has a hundred keys, too many for a message. */
#define KEYS "SELECT DISTINCT key FROM settings ORDER BY key"
static const struct known where_keys = {.kind = "setting of --where",
                                        .sql = KEYS,
                                        .expected = "a key of the suite such as merge.every"},
                          by_keys = {
                              .kind = "setting of --by",
                              .sql = KEYS,
                              .expected =
                                  "policy, method, selector, setting, order, model, row, a key of the suite such as "
                                  "merge.every",
                              .words = true};

status query_ask_key(struct store *store, const char *key, struct error *error)
{
    const struct query_word *word = query_word_find(key);
    const char *keys = word == NULL                   ? key
                       : strcmp(word->keys, "*") != 0 ? word->keys
                       : strcmp(key, "row") == 0      ? "run.row"
                                                      : key;
    TRY(database_run(store->database,
                     "INSERT INTO temp.asked (key) SELECT word.value "
                     "FROM json_each('[' || replace(json_quote(?1), '|', '\",\"') || ']') AS word "
                     "WHERE EXISTS (SELECT 1 FROM settings WHERE settings.key = word.value)",
                     VALUES(value_text(keys)), error));
    return database_changes(store->database) > 0 ? OK : check_known(store, &by_keys, keys, error);
}

/* "2026" is no time, so that a seed or a run is not mistaken for one. */
static status check_time(struct store *store, const char *option, const char *time, struct error *error)
{
    int64_t is_time = 1;
    if (time != NULL)
        TRY(database_ask(
            store->database,
            "SELECT substr(strftime('%Y-%m-%dT%H:%M:%SZ', ?1 || iif(length(?1) = 7, '-01', ''), '+0 days'), 1, "
            "length(?1)) = ?1",
            VALUES(value_text(time)), &is_time, error));
    return is_time ? OK
                   : error_set(error, ERROR_ARGUMENT,
                               "--%s: expected a time like 2026-01-31 or 2026-01-31T12:00 (UTC), found \"%.40s\"",
                               option, time);
}

/* A setting that is asked for; a row has its key, its value, whether a run has it so, and the values that runs have. */
static status check_wanted(void *store, struct statement *row, struct error *error)
{
    const char *key = statement_text(row, 0);
    TRY(check_known(store, &where_keys, key, error));
    return statement_integer(row, 2)
               ? OK
               : error_set(error, ERROR_ARGUMENT, "%s: --where: no run has %s = %.60s; expected one of: %.300s",
                           store_path(store), key, statement_text(row, 1), statement_text(row, 3));
}

static status check_where(struct store *store, const struct query_filter *filter, struct error *error)
{
    int64_t without_key = 0;
    TRY(find_wanted(store, filter, error));
    TRY(database_integer(store->database, "SELECT count(*) FROM temp.wanted WHERE key = ''", &without_key, error));
    if (without_key > 0)
        return error_set(error, ERROR_ARGUMENT, "--where: expected key=value, found \"%.60s\"", filter->where);
    return database_each(store->database,
                         "SELECT key, value, EXISTS (SELECT 1 FROM settings WHERE " HAS_WANTED "), "
                         "(SELECT group_concat(DISTINCT value) FROM settings WHERE settings.key = wanted.key) "
                         "FROM temp.wanted",
                         NO_VALUES, check_wanted, store, error);
}

status query_check_filter(struct store *store, const struct query_filter *filter, struct error *error)
{
    TRY(check_time(store, "since", filter->since, error));
    TRY(check_time(store, "before", filter->before, error));
    TRY(check_where(store, filter, error));
    for (size_t i = 0; i < FILTERS; i++)
        if (filters[i].known != NULL && text_of(filter, i) != NULL)
            TRY(check_words(store, i, text_of(filter, i), error));
    return OK;
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
    (void)host;
    if (parse_integer(run, &number))
        live_text(store, number, text);
    text_add(answer, "%s", text);
}

static void is_incidental(void *filter, const char *key, const char *value, struct text *answer)
{
    const struct query_filter *of = filter;
    text_add(answer, "%d", of->incidental != NULL && of->incidental(key, value));
}

status query_choose(struct store *store, const struct query_filter *filter, struct error *error)
{
    TRY(database_add_function(store->database, "live", live, store, error));
    TRY(database_add_function(store->database, "is_gone", is_gone, store, error));
    TRY(database_add_function(store->database, "is_incidental", is_incidental, (void *)filter, error));
    TRY(find_wanted(store, filter, error));
    TRY(database_execute(store->database,
                         "DROP TABLE IF EXISTS temp.chosen; DROP TABLE IF EXISTS temp.asked; "
                         "CREATE TEMP TABLE asked (place INTEGER PRIMARY KEY, key TEXT)",
                         error));
    TRY(run_filtered(store, chosen_sql, filter, error));
    return database_execute(store->database, "CREATE UNIQUE INDEX temp.chosen_run ON chosen (run)", error);
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

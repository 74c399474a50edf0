/* Filters: as parameters of SQL, and whether they can choose anything: names that runs have, dates that are dates. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/query/internal.h"
#include "results/store/live.h"
#include "results/store/store_internal.h"

/* The settings that a filter asks for; words without "=" continue the list before them. Numbers match in any notation,
 * lists with commas, blanks or both between their words. */
#define WANTED                                                                                                         \
    "WITH words(place, word) AS (SELECT key, value FROM json_each('[' || replace(json_quote(?13), ',', '\",\"') || "   \
    "']') "                                                                                                            \
    "WHERE ?13 IS NOT NULL), conditions(condition) AS (SELECT group_concat(word, ',') FROM (SELECT word, (SELECT "     \
    "max(place) FROM words AS first WHERE first.place <= words.place AND instr(first.word, '=')) AS begin FROM words " \
    "ORDER BY place) GROUP BY begin), "                                                                                \
    "wanted(key, value) AS MATERIALIZED (SELECT trim(substr(condition, 1, instr(condition, '=') - 1)), "               \
    "trim(substr(condition, instr(condition, '=') + 1)) FROM conditions)"
#define WORDS_OF(list)                                                                                                 \
    "trim(replace(replace(replace(replace(replace(" list ", '[', ''), ']', ''), ',', ' '), '  ', ' '), '  ', ' '))"
#define HAS_WANTED                                                                                                     \
    "settings.key = wanted.key AND (settings.value = wanted.value OR "                                                 \
    "settings.value = iif(json_valid(wanted.value), json_extract(wanted.value, '$'), NULL) OR "                        \
    "settings.type = 'list' AND " WORDS_OF("settings.value") " = " WORDS_OF("wanted.value") ")"

/* The beginning of a statement that reads the runs of a filter; parameters by bind_filter. */
#define CHOSEN                                                                                                         \
    WANTED                                                                                                             \
    ", chosen AS (SELECT * FROM runs WHERE (?1 IS NULL OR run = ?1) AND (?2 IS NULL OR suite = ?2)"                    \
    " AND (?3 IS NULL OR setting = ?3) AND (?4 IS NULL OR method = ?4) AND (?5 IS NULL OR policy = ?5)"                \
    " AND (?6 IS NULL OR selector = ?6) AND (?7 IS NULL OR status = ?7) AND (?8 IS NULL OR seed = ?8)"                 \
    " AND (?9 IS NULL OR started >= ?9) AND (?10 IS NULL OR started < ?10)"                                            \
    " AND (?11 IS NULL OR EXISTS (SELECT 1 FROM tasks WHERE tasks.run = runs.run AND name = ?11))"                     \
    " AND NOT EXISTS (SELECT 1 FROM wanted WHERE NOT EXISTS (SELECT 1 FROM settings WHERE settings.run = runs.run"     \
    " AND " HAS_WANTED "))) "

#define NAMES_LIMIT 64  /* that a message lists */
#define KEYS_LIMIT 4096 /* of settings among which the nearest is looked for */

static status bind_filter(struct statement *statement, const struct query_filter *filter, struct error *error)
{
    return statement_bind(statement,
                          VALUES(filter->run ? value_integer(filter->run) : value_null(), value_text(filter->suite),
                                 value_text(filter->setting), value_text(filter->method), value_text(filter->policy),
                                 value_text(filter->selector), value_text(filter->status),
                                 filter->has_seed ? value_integer(filter->seed) : value_null(),
                                 value_text(filter->since), value_text(filter->before), value_text(filter->dataset),
                                 value_null(), value_text(filter->where)),
                          error);
}

/* ?1: the name that is looked for; it comes first. */
static status read_names(struct store *store, const char *sql, const char *name, size_t limit, char **names,
                         size_t *count, struct error *error)
{
    struct statement *statement;
    *count = 0;
    TRY(statement_open(&statement, store->database, sql, error));
    status result = statement_bind(statement, VALUES(value_text(name)), error);
    for (bool row; result == OK && *count < limit; (*count)++) {
        result = statement_step(statement, &row, error);
        if (result != OK || !row)
            break;
        names[*count] = strdup(statement_text(statement, 0));
        if (!names[*count])
            result = error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    }
    statement_close(statement);
    return result;
}

/* table.column is where the names are; column may be an expression. */
static status check_name(struct store *store, const char *kind, const char *table, const char *column, const char *name,
                         struct error *error)
{
    char *names[NAMES_LIMIT] = {0}, sql[256];
    size_t count;
    if (!name)
        return OK;
    snprintf(sql, sizeof sql, "SELECT DISTINCT %s FROM %s ORDER BY %s = ?1 DESC, %s", column, table, column, column);
    status result = read_names(store, sql, name, NAMES_LIMIT, names, &count, error);
    if (result == OK && count > 0 && strcmp(names[0], name) != 0)
        result = error_unknown_word(error, store_path(store), kind, name, (const char *const *)names, count);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    return result;
}

static bool is_within(const char *digits, size_t size, int least, int most)
{
    int number = 0;
    for (size_t i = 0; i < size; i++)
        number = number * 10 + digits[i] - '0';
    return number >= least && number <= most;
}

/* Of a time that has the form: "2026-13-01" is no date. */
static bool is_in_calendar(const char *time)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    size_t size = strlen(time);
    if (!is_within(time + 5, 2, 1, 12))
        return false;
    int month = (time[5] - '0') * 10 + time[6] - '0';
    return (size < 10 || is_within(time + 8, 2, 1, days[month - 1])) &&
           (size < 16 || (is_within(time + 11, 2, 0, 23) && is_within(time + 14, 2, 0, 59))) &&
           (size < 19 || is_within(time + 17, 2, 0, 60));
}

/* The forms of a time, 9 for a digit; "2026" is none, so that a seed or a run is not mistaken for one. */
static status check_time(const char *option, const char *time, struct error *error)
{
    static const char *const forms[] = {"9999-99", "9999-99-99", "9999-99-99T99:99", "9999-99-99T99:99:99",
                                        "9999-99-99T99:99:99Z"};
    if (!time)
        return OK;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t at = 0;
        while (time[at] && (forms[i][at] == '9' ? time[at] >= '0' && time[at] <= '9' : time[at] == forms[i][at]))
            at++;
        if (!time[at] && !forms[i][at] && is_in_calendar(time))
            return OK;
    }
    return error_set(error, ERROR_ARGUMENT,
                     "--%s: expected a time like 2026-01-31 or 2026-01-31T12:00 (UTC), found \"%.40s\"", option, time);
}

static status check_run(struct store *store, int64_t run, struct error *error)
{
    if (run == 0)
        return OK;
    struct statement *statement;
    TRY(statement_open(&statement, store->database, "SELECT 1 FROM runs WHERE run = ?1", error));
    bool row = false;
    status result = statement_bind(statement, VALUES(value_integer(run)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    statement_close(statement);
    if (result != OK || row)
        return result;
    return error_set(error, ERROR_ARGUMENT, "%s: there is no run %" PRId64 "; the query `runs` lists those there are",
                     store_path(store), run);
}

static status check_seed(struct store *store, const struct query_filter *filter, struct error *error)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRId64, filter->seed);
    return filter->has_seed ? check_name(store, "seed", "runs", "CAST(seed AS TEXT)", seed, error) : OK;
}

/* A run has a hundred keys, too many for a message. What could end a name in SQL is none. */
status query_check_key(struct store *store, const char *option, const char *key, struct error *error)
{
    size_t count;
    char **names = calloc(KEYS_LIMIT, sizeof *names);
    if (!names)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    status result = read_names(store, "SELECT DISTINCT key FROM settings ORDER BY key = ?1 DESC, key", key, KEYS_LIMIT,
                               names, &count, error);
    if (result == OK && (count == 0 || strcmp(names[0], key) != 0 || strpbrk(key, "'\"%") != NULL)) {
        const char *nearest = nearest_word(key, (const char *const *)names, count);
        result = error_set(error, ERROR_ARGUMENT,
                           "%s: --%s: no run has a setting \"%.60s\"%s%s%s; expected a key of the suite such as "
                           "merge.every",
                           store_path(store), option, key, nearest ? " (did you mean \"" : "", nearest ? nearest : "",
                           nearest ? "\"?)" : "");
    }
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return result;
}

static const char wanted_sql[] =
    WANTED "SELECT key, value, EXISTS (SELECT 1 FROM settings WHERE " HAS_WANTED "), "
           "(SELECT group_concat(DISTINCT value) FROM settings WHERE settings.key = wanted.key) FROM wanted";

static status check_where(struct store *store, const struct query_filter *filter, struct error *error)
{
    struct statement *wanted;
    if (!filter->where)
        return OK;
    TRY(statement_open(&wanted, store->database, wanted_sql, error));
    status result = bind_filter(wanted, filter, error);
    for (bool row; result == OK && (result = statement_step(wanted, &row, error)) == OK && row;) {
        const char *key = statement_text(wanted, 0);
        result = *key == 0
                     ? error_set(error, ERROR_ARGUMENT, "--where: expected key=value, found \"%.60s\"", filter->where)
                     : query_check_key(store, "where", key, error);
        if (result == OK && !statement_integer(wanted, 2))
            result = error_set(error, ERROR_ARGUMENT, "%s: --where: no run has %s = %.60s; expected one of: %.300s",
                               store_path(store), key, statement_text(wanted, 1), statement_text(wanted, 3));
    }
    statement_close(wanted);
    return result;
}

status query_check_filter(struct store *store, const struct query_filter *filter, struct error *error)
{
    TRY(check_time("since", filter->since, error));
    TRY(check_time("before", filter->before, error));
    TRY(check_run(store, filter->run, error));
    TRY(check_where(store, filter, error));
    TRY(check_seed(store, filter, error));
    TRY(check_name(store, "suite", "runs", "suite", filter->suite, error));
    TRY(check_name(store, "setting", "runs", "setting", filter->setting, error));
    TRY(check_name(store, "method", "runs", "method", filter->method, error));
    TRY(check_name(store, "policy", "runs", "policy", filter->policy, error));
    TRY(check_name(store, "selector", "runs", "selector", filter->selector, error));
    return check_name(store, "dataset", "tasks", "name", filter->dataset, error);
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
    struct statement *statement;
    TRY(database_add_function(store->database, "live", live, store, error));
    TRY(database_add_function(store->database, "is_gone", is_gone, store, error));
    TRY(database_add_function(store->database, "is_incidental", is_incidental, (void *)filter, error));
    TRY(database_execute(store->database,
                         "DROP TABLE IF EXISTS temp.chosen; DROP TABLE IF EXISTS temp.asked; "
                         "CREATE TEMP TABLE asked (place INTEGER PRIMARY KEY, key TEXT)",
                         error));
    TRY(statement_open(&statement, store->database,
                       "CREATE TEMP TABLE chosen AS " CHOSEN "SELECT * FROM chosen ORDER BY run", error));
    status result = bind_filter(statement, filter, error);
    bool row;
    NEXT(result, statement_step(statement, &row, error));
    statement_close(statement);
    NEXT(result, database_execute(store->database, "CREATE UNIQUE INDEX temp.chosen_run ON chosen (run)", error));
    return result;
}

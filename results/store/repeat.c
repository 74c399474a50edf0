#include "results/store/repeat.h"

#include <stdio.h>

#include "results/store/run_rows.h"
#include "results/store/store_internal.h"

static status count_rows(struct store *store, const char *table, int64_t run, int64_t *rows, struct error *error)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE run = ?1", table);
    return database_ask(store->database, sql, VALUES(value_integer(run)), rows, error);
}

static const char *words_of(const struct row_difference *difference)
{
    const struct text *texts[] = {&difference->contradiction, &difference->only_first, &difference->only_second};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i]->size > 0)
            return texts[i]->data;
    return NULL;
}

static status compare_table(struct repeat *repeat, struct run_rows *sides, size_t index, struct table *table,
                            struct error *error)
{
    const struct store_table *compared = &store_tables[index];
    int64_t rows[2];
    struct row_difference difference = {0};
    TRY(count_rows(repeat->first, compared->name, repeat->first_run, &rows[0], error));
    TRY(count_rows(repeat->second, compared->name, repeat->second_run, &rows[1], error));
    if (rows[0] == 0 && rows[1] == 0)
        return OK;
    status result =
        run_rows_compare_table(&sides[0], repeat->first_run, &sides[1], repeat->second_run, index, &difference, error);
    if (result == OK) {
        bool absent = (rows[0] == 0 || rows[1] == 0) && compared->optional;
        const char *words = absent ? "kept in one of them alone" : words_of(&difference);
        table_add_text(table, compared->name);
        table_add_integer(table, rows[0]);
        table_add_integer(table, rows[1]);
        table_add_text(table, words ? words : "the same");
        repeat->agrees = repeat->agrees && (absent || words == NULL);
    }
    row_difference_free(&difference);
    return result;
}

/* Possible causes of a difference, newest session first. Inputs are compared by content, not by path. */
static const char machine_sql[] =
    "SELECT 0, 'program', program_version FROM runs WHERE run = ?1 UNION ALL "
    "SELECT 1, 'backend', backend || ' ' || \"precision\" FROM runs WHERE run = ?1 UNION ALL "
    "SELECT 2, 'host', host FROM runs WHERE run = ?1 UNION ALL "
    "SELECT 3, name, value FROM (SELECT max(session) AS session FROM sessions WHERE run = ?1) "
    "JOIN (SELECT session, 'commit' AS name, program_commit AS value FROM sessions UNION ALL "
    "SELECT session, 'compiler', compiler FROM sessions UNION ALL SELECT session, 'libraries', libraries FROM sessions "
    "UNION ALL SELECT session, 'CPU', cpu FROM sessions UNION ALL SELECT session, 'GPU', gpu FROM sessions) "
    "USING (session) UNION ALL "
    "SELECT 4, kind || iif(task < 0, '', ' of task ' || task), digest FROM inputs WHERE run = ?1 ORDER BY 1, 2";

struct machine_row {
    const char *name; /* borrowed */
    struct text value;
};

/* The value that the other run has under the same name. */
static status find_value(void *context, struct statement *row, struct error *error)
{
    struct machine_row *wanted = context;
    (void)error;
    if (wanted->value.size == 0 && strcmp(statement_text(row, 1), wanted->name) == 0)
        text_add(&wanted->value, "%s", statement_text(row, 2));
    return OK;
}

static status compare_value(void *context, struct statement *row, struct error *error)
{
    struct repeat *repeat = context;
    struct text *words = &repeat->machines;
    struct machine_row other = {.name = statement_text(row, 1)};
    status result = database_each(repeat->second->database, machine_sql, VALUES(value_integer(repeat->second_run)),
                                  find_value, &other, error);
    if (result == OK && other.value.data && strcmp(other.value.data, statement_text(row, 2)) != 0)
        text_add(words, "%s%s: %.60s then, %.60s now", words->size ? "; " : "", other.name, statement_text(row, 2),
                 other.value.data);
    bool failed = other.value.failed || words->failed;
    text_free(&other.value);
    return result == OK && failed ? error_set(error, ERROR_MEMORY, "out of memory") : result;
}

status repeat_compare(struct repeat *repeat, struct table *table, struct error *error)
{
    static const char *const titles[] = {"table", "rows", "repeated", "first difference"};
    struct run_rows sides[2] = {{.database = repeat->first->database, .name = "the first"},
                                {.database = repeat->second->database, .name = "its repetition"}};
    status result = OK;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(table, &(struct table_column){.title = titles[i]});
    repeat->agrees = true;
    for (size_t i = 0; i < STORE_TABLES; i++)
        if (!store_tables[i].local)
            NEXT(result, compare_table(repeat, sides, i, table, error));
    run_rows_close(&sides[0]);
    run_rows_close(&sides[1]);
    NEXT(result, database_each(repeat->first->database, machine_sql, VALUES(value_integer(repeat->first_run)),
                               compare_value, repeat, error));
    return result;
}

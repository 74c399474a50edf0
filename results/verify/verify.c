#include "results/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "results/query.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(check_files);
EMBEDDED_FILES(check_tables);

struct verifying {
    struct store *store;
    struct database *database;
    struct verification *verification;
};

/* --- Functions of the checks, of two texts; some need only the first --- */

static void cells_of(void *context, const char *method, const char *unused, struct text *answer)
{
    const struct verification *asked = context;
    text_add(answer, "%s", asked->cells != NULL ? asked->cells(method) : "all");
}

/* file_state(path, bytes): "missing", its digest if it has that size, or what it is instead. */
static void file_state(void *context, const char *path, const char *bytes, struct text *answer)
{
    struct stat information;
    struct error error;
    char digest[DIGEST_SIZE];
    int64_t expected = 0;
    if (stat(path, &information) != 0)
        text_add(answer, "missing");
    else if (!S_ISREG(information.st_mode))
        text_add(answer, "no file");
    else if (!parse_integer(bytes, &expected) || information.st_size != expected)
        text_add(answer, "%lld bytes", (long long)information.st_size);
    else
        text_add(answer, "%s", digest_file(path, digest, &error) == OK ? digest : error.message);
}

/* Behind blanks and comments. */
static const char *skip_gap(const char *sql)
{
    for (;;) {
        sql += strspn(sql, " \t\n");
        const char *end = strncmp(sql, "--", 2) == 0   ? sql + strcspn(sql, "\n")
                          : strncmp(sql, "/*", 2) == 0 ? strstr(sql, "*/")
                                                       : NULL;
        if (end == NULL)
            return sql;
        sql = *end == '*' ? end + 2 : end;
    }
}

/* bare(sql, ''): without comments, which later programs may change, and blanks outside of strings and names. */
static void bare(void *context, const char *sql, const char *unused, struct text *answer)
{
    char quote = 0;
    for (;; sql++) {
        if (quote == 0)
            sql = skip_gap(sql);
        if (*sql == 0)
            return;
        text_add_bytes(answer, sql, 1);
        if (*sql == quote)
            quote = 0;
        else if (quote == 0 && (*sql == '\'' || *sql == '"'))
            quote = *sql;
    }
}

/* Where nobody is given who reads suites. */
static void say_nothing(void *context, const char *a, const char *b, struct text *answer)
{
}

static status add_functions(const struct verifying *v, struct error *error)
{
    database_function *said = v->verification->suite_said;
    const struct {
        const char *name;
        database_function *call;
    } functions[] = {{"cells_of", cells_of},
                     {"file_state", file_state},
                     {"bare", bare},
                     {"suite_said", said != NULL ? said : say_nothing}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        TRY(database_add_function(v->database, functions[i].name, functions[i].call, v->verification, error));
    return OK;
}

/* --- Tables of the checks --- */

static status want_runs(const struct verifying *v, struct error *error)
{
    const struct verification *asked = v->verification;
    TRY(database_execute(v->database, "CREATE TEMP TABLE looked_at (run INTEGER PRIMARY KEY)", error));
    if (asked->count == 0)
        return database_execute(v->database, "INSERT INTO looked_at SELECT run FROM runs", error);
    for (size_t i = 0; i < asked->count; i++) {
        struct run_row row;
        status result = store_read_run(v->store, asked->runs[i], &row, error);
        run_row_free(&row);
        TRY(result);
        TRY(database_run(v->database, "INSERT OR IGNORE INTO looked_at VALUES (?1)",
                         VALUES(value_integer(asked->runs[i])), error));
    }
    return OK;
}

static status take_definition(void *context, struct statement *row, struct error *error)
{
    return database_run(context, "INSERT INTO own_schema VALUES (?1, bare(?2, ''))",
                        VALUES(statement_value(row, 0), statement_value(row, 1)), error);
}

/* Tables, views, indices and triggers as they are (found_schema) and as this program makes them (own_schema). Views in temp
 * replaced older ones for this connection (results/store/store.c). */
static status read_schema(const struct verifying *v, struct error *error)
{
    struct store *model;
    TRY(database_execute(
        v->database,
        "CREATE TEMP TABLE own_schema (name TEXT PRIMARY KEY, sql); CREATE TEMP TABLE found_schema AS SELECT name, "
        "bare(sql, '') AS sql FROM temp.sqlite_schema WHERE type = 'view' UNION ALL SELECT name, bare(sql, '') FROM "
        "main.sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND name NOT IN (SELECT name FROM "
        "temp.sqlite_schema WHERE type = 'view')",
        error));
    TRY(store_open(&model, "schema", STORE_MEMORY, error));
    status result = database_each(
        model->database, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'",
        NO_VALUES, take_definition, v->database, error);
    store_close(model);
    return result;
}

/* Columns of the table `facts`: a setting for each that the SQL names in double quotes, "adapter.top_k". */
static void add_settings(const char *sql, struct text *columns)
{
    for (const char *at = sql; (at = strchr(at, '"')) != NULL; at++) {
        size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_.");
        char key[80];
        if (at[length + 1] != '"' || memchr(at + 1, '.', length) == NULL || length >= sizeof key - 8)
            continue;
        snprintf(key, sizeof key, " AS \"%.*s\"", (int)length, at + 1);
        if (strstr(columns->data, key) == NULL)
            text_add(columns, ", (SELECT value FROM settings WHERE settings.run = runs.run AND key = '%.*s')%s",
                     (int)length, at + 1, key);
    }
}

static status make_tables(const struct verifying *v, struct error *error)
{
    struct text sql = {0};
    text_add(
        &sql,
        "CREATE TEMP TABLE facts AS SELECT run, trainable_parameters IS NOT NULL AND cells <> 'own' AS trained, cells, "
        "cells = 'last' AS joint, cells = 'diagonal' AS alone");
    for (const struct embedded_file *file = check_files; file->name != NULL; file++)
        add_settings((const char *)file->data, &sql);
    add_settings((const char *)check_tables[0].data, &sql);
    text_add(&sql,
             " FROM (SELECT *, cells_of(method, '') AS cells FROM runs) AS runs; "
             "CREATE UNIQUE INDEX temp.facts_run ON facts (run); %s",
             (const char *)check_tables[0].data);
    status result = database_execute(v->database, sql.data, error);
    text_free(&sql);
    return result;
}

/* --- Checks --- */

/* Columns: what, run (0: the whole database), where, expected, found. */
static status take_fault(void *context, struct statement *row, struct error *error)
{
    struct table *faults = context;
    int64_t run = statement_integer(row, 1);
    run > 0 ? table_add_integer(faults, run) : table_add_empty(faults);
    table_add_text(faults, statement_text(row, 0));
    for (size_t column = 2; column < 5; column++)
        table_add_text(faults, statement_text(row, column));
    return OK;
}

/* Names up to a thousand of its faults. */
static status run_check(const struct verifying *v, const struct embedded_file *file, struct error *error)
{
    struct text sql = {0};
    text_add(&sql, "SELECT * FROM (%s) %s LIMIT 1000", (const char *)file->data,
             v->verification->count > 0 ? "WHERE run <= 0 OR run IN looked_at" : "");
    status result = database_each(v->database, sql.data, NO_VALUES, take_fault, &v->verification->faults, error);
    text_free(&sql);
    return result == OK ? OK : error_context(error, "%s", file->name);
}

static bool is_of_schema(const struct embedded_file *file)
{
    return strcmp(file->name, "schema.sql") == 0;
}

static status count_checked(const struct verifying *v, size_t checks, struct error *error)
{
    struct text sql = {0};
    int64_t missing;
    TRY(database_integer(v->database, "SELECT count(*) FROM kept_files WHERE state = 'missing'", &missing, error));
    v->verification->missing_files = (size_t)missing;
    text_add(
        &sql,
        "SELECT what, checked, %zu AS faults FROM (SELECT 'tables and views' AS what, count(*) AS checked FROM (SELECT "
        "name FROM own_schema UNION SELECT name FROM found_schema) UNION ALL SELECT 'runs', count(*) FROM runs UNION "
        "ALL SELECT 'evaluations with images', count(*) FROM tested UNION ALL SELECT 'checks', %zu UNION ALL SELECT "
        "'files', count(*) FROM kept_files WHERE state <> 'missing')",
        table_rows(&v->verification->faults), checks);
    status result = query_sql(v->store, sql.data, &v->verification->checked, error);
    text_free(&sql);
    return result;
}

/* The schema first: a missing table ends the checks that read it. */
static status check_all(const struct verifying *v, struct error *error)
{
    size_t checks = 0;
    TRY(add_functions(v, error));
    TRY(want_runs(v, error));
    TRY(read_schema(v, error));
    for (const struct embedded_file *file = check_files; file->name != NULL; file++, checks++)
        if (is_of_schema(file))
            TRY(run_check(v, file, error));
    TRY(make_tables(v, error));
    for (const struct embedded_file *file = check_files; file->name != NULL; file++)
        if (!is_of_schema(file))
            TRY(run_check(v, file, error));
    return count_checked(v, checks, error);
}

status verify_database(struct store *store, struct verification *verification, struct error *error)
{
    const struct verifying v = {store, store->database, verification};
    struct table *faults = &verification->faults;
    static const char *const titles[] = {"run", "what", "where", "expected", "found"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(faults, &(struct table_column){.title = titles[i]});
    TRY(database_execute(store->database, "BEGIN", error)); /* one state, though runs may go on */
    status result = check_all(&v, error);
    database_rollback(store->database);
    if ((result == ERROR_FORMAT || (result != OK && result != ERROR_STOPPED && table_rows(faults) > 0)) &&
        error != NULL) {
        table_add_empty(faults);
        const char *const cells[] = {"readable", "the rest", "checked, too", error->message};
        for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
            table_add_text(faults, cells[i]);
        result = OK;
    }
    return result;
}

void verification_free(struct verification *verification)
{
    table_free(&verification->faults);
    table_free(&verification->checked);
}

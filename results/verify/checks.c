/* Conditions between rows: the questions of results/checks/, each row of whose answers is a fault. */
#include <stdio.h>
#include <sys/stat.h>

#include "core/digest.h"
#include "core/embedded.h"
#include "results/query/question.h"
#include "results/verify/internal.h"

EMBEDDED_FILES(check_files);
EMBEDDED_FILES(check_tables);

void verify_fault(const struct verifying *v, int64_t run, const char *what, const char *where, const char *expected,
                  const char *found)
{
    struct table *table = &v->verification->faults;
    if (run > 0)
        table_add_integer(table, run);
    else
        table_add_empty(table);
    table_add_text(table, what);
    table_add_text(table, where);
    table_add_text(table, expected);
    table_add_text(table, found);
}

/* --- Functions of the checks --- */

/* has_cells(method, 'last' or 'diagonal'): null when it has others. */
static void has_cells(void *context, const char *method, const char *which, struct text *answer)
{
    const struct verification *asked = context;
    if (asked->cells != NULL && asked->cells(method) == (*which == 'l' ? CELLS_LAST : CELLS_DIAGONAL))
        text_add(answer, "yes");
}

/* file_state(path, bytes): "missing", its digest if it has that size, or what it is instead. */
static void file_state(void *context, const char *path, const char *bytes, struct text *answer)
{
    struct stat information;
    struct error error;
    char digest[DIGEST_SIZE];
    int64_t expected = 0;
    (void)context;
    if (stat(path, &information) != 0)
        text_add(answer, "missing");
    else if (!S_ISREG(information.st_mode))
        text_add(answer, "no file");
    else if (!parse_integer(bytes, &expected) || information.st_size != expected)
        text_add(answer, "%lld bytes", (long long)information.st_size);
    else
        text_add(answer, "%s", digest_file(path, digest, &error) == OK ? digest : error.message);
}

/* --- Tables of the checks --- */

/* The table facts: run, trained, joint (one training on all tasks), alone (a model per task), and a column for each
 * setting that a check names in double quotes, "adapter.top_k". */
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

status verify_tables(const struct verifying *v, struct error *error)
{
    struct text sql = {0};
    struct database *database = v->store->database;
    TRY(database_add_function(database, "has_cells", has_cells, v->verification, error));
    TRY(database_add_function(database, "file_state", file_state, NULL, error));
    text_add(&sql,
             "CREATE TEMP TABLE facts AS SELECT run, trainable_parameters IS NOT NULL AS trained, has_cells(method, "
             "'last') IS NOT NULL AS joint, has_cells(method, 'diagonal') IS NOT NULL AS alone");
    for (const struct embedded_file *file = check_files; file->name != NULL; file++)
        add_settings((const char *)file->data, &sql);
    add_settings((const char *)check_tables[0].data, &sql);
    text_add(&sql, " FROM runs; CREATE UNIQUE INDEX temp.facts_run ON facts (run); %s",
             (const char *)check_tables[0].data);
    status result = database_execute(database, sql.data, error);
    text_free(&sql);
    return result;
}

/* --- Checks --- */

static status take_fault(void *context, struct statement *row, struct error *error)
{
    (void)error;
    verify_fault(context, statement_integer(row, 1), statement_text(row, 0), statement_text(row, 2),
                 statement_text(row, 3), statement_text(row, 4));
    return OK;
}

/* Names up to a thousand of its faults. */
static status run_check(const struct verifying *v, const struct embedded_file *file, struct error *error)
{
    struct question check;
    struct text sql = {0};
    TRY(question_parse(&check, file->name, file->name, (const char *)file->data, error));
    text_add(&sql, "SELECT * FROM (%s) %s LIMIT 1000", check.answer,
             v->verification->count > 0 ? "WHERE run <= 0 OR run IN looked_at" : "");
    status result = check.expects_none
                        ? database_each(v->store->database, sql.data, NO_VALUES, take_fault, (void *)v, error)
                        : error_set(error, ERROR_ARGUMENT, "expected \"-- expect: no rows\"");
    text_free(&sql);
    question_free(&check);
    return result == OK ? OK : error_context(error, "%s", file->name);
}

status verify_checks(const struct verifying *v, bool of_schema, struct error *error)
{
    for (const struct embedded_file *file = check_files; file->name != NULL; file++)
        if ((strcmp(file->name, "schema.sql") == 0) == of_schema)
            TRY(run_check(v, file, error));
    return OK;
}

int64_t verify_check_count(void)
{
    int64_t count = 0;
    while (check_files[count].name != NULL)
        count++;
    return count;
}

#include "results/verify.h"

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

static status make_tables(const struct verifying *v, struct error *error)
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

static status want_runs(const struct verifying *v, struct error *error)
{
    const struct verification *asked = v->verification;
    struct database *database = v->store->database;
    TRY(database_execute(database, "CREATE TEMP TABLE wanted (run INTEGER PRIMARY KEY)", error));
    if (asked->count == 0)
        return database_execute(database, "INSERT INTO wanted SELECT run FROM runs", error);
    for (size_t i = 0; i < asked->count; i++) {
        struct run_record record;
        TRY(store_read_record(v->store, asked->runs[i], &record, error));
        run_record_free(&record);
        TRY(database_run(database, "INSERT OR IGNORE INTO wanted VALUES (?1)", VALUES(value_integer(asked->runs[i])),
                         error));
    }
    return OK;
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
             v->verification->count > 0 ? "WHERE run <= 0 OR run IN wanted" : "");
    status result = check.expects_none
                        ? database_each(v->store->database, sql.data, NO_VALUES, take_fault, (void *)v, error)
                        : error_set(error, ERROR_ARGUMENT, "expected \"-- expect: no rows\"");
    text_free(&sql);
    question_free(&check);
    return result == OK ? OK : error_context(error, "%s", file->name);
}

/* The schema's comes first: a missing table ends the checks that read it. */
static status run_checks(const struct verifying *v, bool of_schema, struct error *error)
{
    for (const struct embedded_file *file = check_files; file->name != NULL; file++)
        if ((strcmp(file->name, "schema.sql") == 0) == of_schema)
            TRY(run_check(v, file, error));
    return OK;
}

/* A row of: what, checked, faults; the last is of files that are missing. */
static status take_count(void *context, struct statement *row, struct error *error)
{
    struct verification *verification = context;
    (void)error;
    if (statement_value(row, 0).kind == VALUE_NULL) {
        verification->missing_files = (size_t)statement_integer(row, 1);
        return OK;
    }
    table_add_text(&verification->checked, statement_text(row, 0));
    table_add_integer(&verification->checked, statement_integer(row, 1));
    table_add_integer(&verification->checked, (int64_t)table_rows(&verification->faults));
    return OK;
}

static const char counts_sql[] =
    "SELECT 'tables and views', count(*) FROM (SELECT name FROM own_schema UNION SELECT name FROM found_schema) "
    "UNION ALL SELECT 'runs', count(*) FROM runs UNION ALL SELECT 'evaluations with images', count(*) FROM tested "
    "UNION ALL SELECT 'checks', ?1 UNION ALL SELECT 'files', count(*) FROM kept_files WHERE state <> 'missing' "
    "UNION ALL SELECT NULL, count(*) FROM kept_files WHERE state = 'missing'";

static status check_all(const struct verifying *v, struct error *error)
{
    int64_t checks = 0;
    TRY(want_runs(v, error));
    TRY(verify_schema(v, error));
    TRY(run_checks(v, true, error));
    TRY(verify_suites(v, error));
    TRY(verify_metrics(v, error));
    TRY(make_tables(v, error));
    TRY(run_checks(v, false, error));
    while (check_files[checks].name != NULL)
        checks++;
    return database_each(v->store->database, counts_sql, VALUES(value_integer(checks)), take_count, v->verification,
                         error);
}

static void add_titles(struct table *table, const char *const *titles)
{
    for (; *titles != NULL; titles++)
        table_add_column(table, &(struct table_column){.title = *titles});
}

status verify_database(struct store *store, struct verification *verification, struct error *error)
{
    struct verifying v = {store, verification};
    add_titles(&verification->faults, (const char *const[]){"run", "what", "where", "expected", "found", NULL});
    add_titles(&verification->checked, (const char *const[]){"what", "checked", "faults", NULL});
    TRY(database_execute(store->database, "BEGIN", error)); /* one state, though runs may go on */
    status result = check_all(&v, error);
    database_rollback(store->database);
    bool found = table_rows(&verification->faults) > 0;
    if ((result == ERROR_FORMAT || (result != OK && result != ERROR_STOPPED && found)) && error != NULL) {
        verify_fault(&v, 0, "readable", "the rest", "checked, too", error->message);
        result = OK;
    }
    return result;
}

void verification_free(struct verification *verification)
{
    table_free(&verification->faults);
    table_free(&verification->checked);
}

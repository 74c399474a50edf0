/* Checks tables and views against this program's own, and rows against one another. */
#include <stdlib.h>

#include "core/embedded.h"
#include "results/store/schema.h"
#include "results/verify/internal.h"

EMBEDDED_FILES(verify_checks);

enum { FAULTS_MOST = 1000 }; /* most faults named per check */

static status run_check(const struct verifying *v, const char *sql, struct error *error)
{
    enum { WHAT, RUN, WHERE, EXPECTED, FOUND };
    struct statement *rows;
    TRY(statement_open(&rows, v->store->database, sql, error));
    status result;
    int named = 0;
    for (bool row; (result = statement_step(rows, &row, error)) == OK && row && named < FAULTS_MOST;)
        named += verify_fault(v, &(struct verify_fault){.run = statement_integer(rows, RUN),
                                                        .what = statement_text(rows, WHAT),
                                                        .where = statement_text(rows, WHERE),
                                                        .expected = statement_text(rows, EXPECTED),
                                                        .found = statement_text(rows, FOUND)});
    statement_close(rows);
    return result;
}

/* Statement after statement of queries/verify.sql. */
static status run_checks(const struct verifying *v, struct error *error)
{
    const char *at = (const char *)verify_checks[0].data, *end;
    status result = OK;
    for (; result == OK && (end = strstr(at, ";\n")) != NULL; at = end + 2) {
        char *sql = strndup(at, (size_t)(end - at));
        result =
            sql ? run_check(v, sql, error) : error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(v->store));
        free(sql);
    }
    return result;
}

/* Behind blanks and comments. */
static const char *skip_gap(const char *sql)
{
    for (;;) {
        sql += strspn(sql, " \t\n");
        if (strncmp(sql, "--", 2) == 0) {
            sql += strcspn(sql, "\n");
        } else if (strncmp(sql, "/*", 2) == 0) {
            const char *end = strstr(sql + 2, "*/");
            sql = end != NULL ? end + 2 : sql + strlen(sql);
        } else {
            return sql;
        }
    }
}

/* Equal but for comments, which later programs may change. */
static bool same_definition(const char *a, const char *b)
{
    char quote = 0; /* the one that a string or a name is in */
    for (;; a++, b++) {
        if (quote == 0) {
            a = skip_gap(a);
            b = skip_gap(b);
        }
        if (*a != *b || *a == 0)
            return *a == *b;
        if (*a == quote)
            quote = 0;
        else if (quote == 0 && (*a == '\'' || *a == '"'))
            quote = *a;
    }
}

/* Reports a table or view of this program that the file has in another form. Older views were replaced for this
 * connection (schema.h); any other change of a view changes the answers of queries. */
static status compare_object(const struct verifying *v, struct statement *object, struct error *error)
{
    struct statement *own;
    struct value name = value_text(statement_text(object, 1));
    bool row = false;
    TRY(statement_open(&own, v->store->database,
                       "SELECT sql FROM (SELECT sql, name, 0 AS rank FROM temp.sqlite_schema UNION ALL "
                       "SELECT sql, name, 1 FROM main.sqlite_schema) WHERE name = ?1 ORDER BY rank",
                       error));
    status result = statement_bind(own, &name, 1, error);
    if (result == OK)
        result = statement_step(own, &row, error);
    const char *expected = statement_text(object, 2), *found = row ? statement_text(own, 0) : "";
    if (result == OK && !same_definition(found, expected))
        verify_fault(v, &(struct verify_fault){0, "schema", name.bytes.data, "this program's",
                                               row ? "another definition" : "none"});
    statement_close(own);
    return result;
}

static status compare_schema(const struct verifying *v, struct store *model, struct error *error)
{
    struct statement *objects;
    TRY(statement_open(&objects, model->database,
                       "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('table', 'view', 'index') AND sql IS "
                       "NOT NULL",
                       error));
    status result;
    int64_t count = 0;
    for (bool row; (result = statement_step(objects, &row, error)) == OK && row; count++) {
        result = compare_object(v, objects, error);
        if (result != OK)
            break;
    }
    statement_close(objects);
    if (result == OK)
        verify_checked(v, "tables and views", count);
    return result;
}

status verify_schema(const struct verifying *v, struct error *error)
{
    struct store *model;
    TRY(store_open_memory(&model, "schema", error));
    status result = compare_schema(v, model, error);
    store_close(model);
    return result;
}

status verify_rows(const struct verifying *v, struct error *error)
{
    int64_t rows;
    TRY(run_checks(v, error));
    TRY(database_integer(v->store->database,
                         "SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM evaluations) + "
                         "(SELECT count(*) FROM router_choices) + (SELECT count(*) FROM class_experts) + "
                         "(SELECT count(*) FROM patch_experts) + (SELECT count(*) FROM expert_counts) + "
                         "(SELECT count(*) FROM expert_events) + (SELECT count(*) FROM merge_effects) + "
                         "(SELECT count(*) FROM selector_thresholds) + (SELECT count(*) FROM steps) + "
                         "(SELECT count(*) FROM task_classes) + (SELECT count(*) FROM test_labels)",
                         &rows, error));
    verify_checked(v, "rows", rows);
    return OK;
}

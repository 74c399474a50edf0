/* Tables, views, indices and triggers as this program makes them (own_schema) and as they are (found_schema). */
#include "results/verify/internal.h"

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

/* bare(sql, ''): without comments, which later programs may change, and blanks outside of strings and names. */
static void bare(void *context, const char *sql, const char *unused, struct text *answer)
{
    char quote = 0;
    (void)context, (void)unused;
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

static status take_definition(void *context, struct statement *row, struct error *error)
{
    const struct verifying *v = context;
    return database_run(v->store->database, "INSERT INTO own_schema VALUES (?1, bare(?2, ''))",
                        VALUES(statement_value(row, 0), statement_value(row, 1)), error);
}

/* Views in temp replaced older ones for this connection (results/store/store.c). */
status verify_schema(const struct verifying *v, struct error *error)
{
    struct store *model;
    TRY(database_add_function(v->store->database, "bare", bare, NULL, error));
    TRY(database_execute(
        v->store->database,
        "CREATE TEMP TABLE own_schema (name TEXT PRIMARY KEY, sql); CREATE TEMP TABLE found_schema AS SELECT name, "
        "bare(sql, '') AS sql FROM temp.sqlite_schema WHERE type = 'view' UNION ALL SELECT name, bare(sql, '') FROM "
        "main.sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND name NOT IN (SELECT name FROM "
        "temp.sqlite_schema WHERE type = 'view')",
        error));
    TRY(store_open_memory(&model, "schema", error));
    status result = database_each(model->database,
                                  "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE "
                                  "'sqlite_%'",
                                  NO_VALUES, take_definition, (void *)v, error);
    store_close(model);
    return result;
}

/* Checks tables, views, indices and triggers against this program's own. */
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

/* The definitions of a file by name; those in temp replaced older views for this connection (schema.h). */
static status open_definitions(struct statement **rows, struct store *store, struct error *error)
{
    return statement_open(rows, store->database,
                          "SELECT name, sql FROM temp.sqlite_schema WHERE type = 'view' UNION ALL "
                          "SELECT name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' "
                          "AND name NOT IN (SELECT name FROM temp.sqlite_schema WHERE type = 'view') ORDER BY name",
                          error);
}

/* Both in the order of their names. */
static status compare(const struct verifying *v, struct statement *model, struct statement *found, struct error *error)
{
    bool expected, row;
    int64_t count = 0;
    TRY(statement_step(model, &expected, error));
    TRY(statement_step(found, &row, error));
    for (; expected || row; count++) {
        int order = !expected ? 1 : !row ? -1 : strcmp(statement_text(model, 0), statement_text(found, 0));
        if (order != 0 || !same_definition(statement_text(model, 1), statement_text(found, 1)))
            verify_fault(v, &(struct verify_fault){0, "schema", statement_text(order <= 0 ? model : found, 0),
                                                   order <= 0 ? "this program's" : "none",
                                                   order < 0   ? "none"
                                                   : order > 0 ? "one"
                                                               : "another definition"});
        if (order <= 0)
            TRY(statement_step(model, &expected, error));
        if (order >= 0)
            TRY(statement_step(found, &row, error));
    }
    verify_checked(v, "tables and views", count);
    return OK;
}

status verify_schema(const struct verifying *v, struct error *error)
{
    struct store *store;
    struct statement *model = NULL, *found = NULL;
    TRY(store_open_memory(&store, "schema", error));
    status result = open_definitions(&model, store, error);
    NEXT(result, open_definitions(&found, v->store, error));
    NEXT(result, compare(v, model, found, error));
    statement_close(model);
    statement_close(found);
    store_close(store);
    return result;
}

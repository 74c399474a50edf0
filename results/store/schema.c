#include "results/store/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/embedded.h"
#include "core/text.h"

#define VIEW_START "\nCREATE VIEW "

EMBEDDED_FILES(schema_files); /* the tables, then the views */

static const char *views_sql(void)
{
    return (const char *)schema_files[1].data;
}

/* The message names a table of the file, so that its reader recognises the foreign database. */
static status take_foreign(void *database, struct statement *row, struct error *error)
{
    return error_set(error, ERROR_FORMAT,
                     "%s: expected a results database (application id %#x), found one of another program "
                     "(application id %#" PRIx64 ", table \"%.60s\"); name another file",
                     database_path(database), SCHEMA_APPLICATION, statement_integer(row, 0), statement_text(row, 1));
}

struct marks {
    int64_t application, version, objects;
};

static status read_marks(struct database *database, struct marks *marks, struct error *error)
{
    TRY(database_integer(database, "PRAGMA application_id", &marks->application, error));
    TRY(database_integer(database, "PRAGMA user_version", &marks->version, error));
    return database_integer(database, "SELECT count(*) FROM sqlite_schema", &marks->objects, error);
}

status schema_recognise(struct database *database, int64_t *version, struct error *error)
{
    struct marks marks;
    TRY(database_execute(database, "BEGIN", error)); /* one state, though another process may be creating the schema */
    status result = read_marks(database, &marks, error);
    database_rollback(database);
    TRY(result);
    *version = marks.version;
    bool empty = marks.application == 0 && marks.version == 0 && marks.objects == 0;
    if (marks.application == SCHEMA_BEFORE_RELEASE)
        return error_set(
            error, ERROR_FORMAT,
            "%s: written by a version of mtil from before its first release; run its suites again, or read "
            "it with that version",
            database_path(database));
    if (!empty && marks.application != SCHEMA_APPLICATION)
        return database_each(database, "SELECT ?1, (SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1)",
                             VALUES(value_integer(marks.application)), take_foreign, database, error);
    if (!empty && marks.version != SCHEMA_VERSION)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected schema %d, found %" PRId64 ": a newer version of mtil wrote it, or another "
            "program changed PRAGMA user_version; use that version, set it back, or take the file from a backup",
            database_path(database), SCHEMA_VERSION, marks.version);
    return OK;
}

status schema_create(struct database *database, struct error *error)
{
    int64_t version;
    bool began;
    TRY(database_begin(database, &began, error));
    status result = database_integer(database, "PRAGMA user_version", &version, error);
    if (result == OK && version == 0) {
        char marks[96];
        snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d", SCHEMA_APPLICATION,
                 SCHEMA_VERSION);
        result = database_execute(database, (const char *)schema_files[0].data, error);
        NEXT(result, database_execute(database, marks, error));
    }
    return database_end(database, began, result, error);
}

/* With drops the views of the file are replaced, else they are hidden on this connection. */
static void write_views(struct text *script, bool drops)
{
    const char *at = views_sql(), *next;
    for (; (next = strstr(at, VIEW_START)); at = next + strlen(VIEW_START)) {
        const char *name = next + strlen(VIEW_START);
        text_add(script, "%.*s\n", (int)(next - at), at);
        if (drops)
            text_add(script, "DROP VIEW IF EXISTS \"%.*s\";\n", (int)strcspn(name, " "), name);
        text_add(script, "CREATE %s ", drops ? "VIEW" : "TEMP VIEW");
    }
    text_add(script, "%s", at);
}

status schema_use_views(struct database *database, bool replace, struct error *error)
{
    char digest[DIGEST_SIZE];
    int64_t same;
    bool began = false;
    struct text script = {0};
    digest_text(views_sql(), digest);
    TRY(database_ask(database, "SELECT value = ?1 FROM properties WHERE name = 'views'", VALUES(value_text(digest)),
                     &same, error));
    if (same)
        return OK;
    write_views(&script, replace);
    if (replace)
        text_add(&script, ";\nINSERT OR REPLACE INTO properties VALUES ('views', '%s')", digest);
    status result = script.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", database_path(database)) : OK;
    if (replace)
        NEXT(result, database_begin(database, &began, error));
    NEXT(result, database_execute(database, script.data, error));
    text_free(&script);
    return database_end(database, began, result, error);
}

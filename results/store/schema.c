#include "results/store/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/embedded.h"
#include "core/text.h"

EMBEDDED_FILES(schema_files); /* the tables, then the views */

static const char *views_sql(void)
{
    return (const char *)schema_files[1].data;
}

/* The message names a table of the file, so that its reader recognises the foreign database. */
static status refuse_foreign(struct database *database, int64_t application, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, database, "SELECT name FROM sqlite_schema WHERE type = 'table'", error));
    bool row;
    status result = statement_step(statement, &row, error);
    if (result == OK)
        result = error_set(error, ERROR_FORMAT,
                           "%s: expected a results database (application id %#x), found one of another program "
                           "(application id %#" PRIx64 ", table \"%.60s\"); name another file",
                           database_path(database), SCHEMA_APPLICATION, application,
                           row ? statement_text(statement, 0) : "");
    statement_close(statement);
    return result;
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
        return refuse_foreign(database, marks.application, error);
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

#define VIEW_START "\nCREATE VIEW "

/* Appends a statement per view of views_sql that drops it. */
static void add_drops(struct text *script)
{
    for (const char *at = views_sql(); (at = strstr(at, VIEW_START)); at++) {
        const char *name = at + strlen(VIEW_START);
        text_add(script, "DROP VIEW IF EXISTS \"%.*s\";\n", (int)strcspn(name, " "), name);
    }
}

static status execute_text(struct database *database, struct text *script, struct error *error)
{
    status result = script->failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", database_path(database))
                                   : database_execute(database, script->data, error);
    text_free(script);
    return result;
}

static status views_differ(struct database *database, bool *differ, struct error *error)
{
    char digest[DIGEST_SIZE];
    digest_text(views_sql(), digest);
    struct statement *statement;
    TRY(statement_open(&statement, database, "SELECT value FROM properties WHERE name = 'views'", error));
    bool row;
    status result = statement_step(statement, &row, error);
    *differ = result == OK && (!row || strcmp(statement_text(statement, 0), digest) != 0);
    statement_close(statement);
    return result;
}

status schema_replace_views(struct database *database, struct error *error)
{
    bool differ, began;
    TRY(views_differ(database, &differ, error));
    if (!differ)
        return OK;
    char digest[DIGEST_SIZE];
    digest_text(views_sql(), digest);
    struct text script = {0};
    add_drops(&script);
    text_add(&script, "%s;\nINSERT OR REPLACE INTO properties VALUES ('views', '%s');", views_sql(), digest);
    status result = database_begin(database, &began, error);
    if (result != OK) {
        text_free(&script);
        return result;
    }
    return database_end(database, began, execute_text(database, &script, error), error);
}

status schema_overlay_views(struct database *database, struct error *error)
{
    bool differ;
    TRY(views_differ(database, &differ, error));
    if (!differ)
        return OK;
    struct text script = {0};
    const char *at = views_sql(), *next;
    for (; (next = strstr(at, VIEW_START)); at = next + strlen(VIEW_START)) {
        text_add_bytes(&script, at, (size_t)(next - at));
        text_add(&script, "\nCREATE TEMP VIEW ");
    }
    text_add(&script, "%s", at);
    return execute_text(database, &script, error);
}

#include "results/store/schema.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/text.h"

EMBEDDED_FILES(views_files);

static const char *views_sql(void)
{
    return (const char *)views_files[0].data;
}

int64_t schema_version(void)
{
    int64_t version = 0;
    while (schema_files[version].name)
        version++;
    return version;
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

/* user_version says of what schema a file is; somebody else set it. */
static status refuse_version(const char *what, int64_t version, struct error *error)
{
    return error_set(error, ERROR_FORMAT,
                     "%s; its user_version is %" PRId64
                     ", but its tables are not of such a schema: another program changed one or the other; set PRAGMA "
                     "user_version back (this version of mtil writes %" PRId64 "), or take the file from a backup",
                     what, version, schema_version());
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
    if (!empty && marks.application != SCHEMA_APPLICATION)
        return refuse_foreign(database, marks.application, error);
    if (!empty && marks.version < 1) {
        struct error found;
        error_set(&found, ERROR_FORMAT, "%s: expected a schema from 1 on", database_path(database));
        return refuse_version(found.message, marks.version, error);
    }
    if (marks.version > schema_version())
        return error_set(error, ERROR_FORMAT,
                         "%s: written by a newer version of this program: expected schema %" PRId64
                         " or older, found %" PRId64 "; use that version or another file",
                         database_path(database), schema_version(), marks.version);
    return OK;
}

static status run_file(struct database *database, const struct embedded_file *file, int64_t version,
                       struct error *error)
{
    struct text script = {0};
    text_add(&script, "%s;\nPRAGMA application_id = %d; PRAGMA user_version = %" PRId64, (const char *)file->data,
             SCHEMA_APPLICATION, version);
    status result = script.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", database_path(database))
                                  : database_execute(database, script.data, error);
    text_free(&script);
    if (result != ERROR_ARGUMENT) /* of SQL itself, which fits the schema before */
        return result;
    struct error found;
    error_set(&found, ERROR_FORMAT, "%s (%s)", error->message, file->name);
    return refuse_version(found.message, version - 1, error);
}

status schema_upgrade(struct database *database, const struct embedded_file *files, struct error *error)
{
    int64_t version;
    TRY(database_integer(database, "PRAGMA user_version", &version, error));
    for (int64_t file = 0; files[file].name; file++) {
        bool began;
        if (file < version)
            continue;
        TRY(database_begin(database, &began, error));
        TRY(database_end(database, began, run_file(database, &files[file], file + 1, error), error));
    }
    return OK;
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

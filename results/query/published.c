/* Numbers that papers print: results/published/. */
#include "core/file.h"
#include "results/query.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(published_files);
EMBEDDED_FILES(published_views);

/* A file is a table, and the keys of its lines are the columns. */
#define LINES "CREATE TEMP TABLE published_lines (file, place, line, PRIMARY KEY (file, place)) WITHOUT ROWID"
#define ADD_LINES                                                                                                      \
    "INSERT INTO temp.published_lines SELECT replace(?1, '.jsonl', ''), key + 1, value "                               \
    "FROM json_each('[' || replace(rtrim(?2, char(10)), char(10), ',') || ']')"
#define TABLES                                                                                                         \
    "SELECT 'CREATE TEMP TABLE published_' || file || ' AS SELECT place AS row' || "                                   \
    "group_concat(', json_extract(line, ''$.' || key || ''') AS \"' || key || '\"', '') || "                           \
    "' FROM published_lines WHERE file = ''' || file || ''' '"                                                         \
    "FROM (SELECT file, key FROM published_lines, json_each(line) GROUP BY file, key ORDER BY min(place), min(id)) "   \
    "GROUP BY file"

static status make_table(void *database, struct statement *row, struct error *error)
{
    return database_execute(database, statement_text(row, 0), error);
}

static status attach(struct database *database, struct error *error)
{
    TRY(database_execute(database, LINES, error));
    for (const struct embedded_file *file = published_files; file->name != NULL; file++)
        if (database_run(database, ADD_LINES, VALUES(value_text(file->name), value_text((const char *)file->data)),
                         error) != OK)
            return error_context(error, "%s", file->name);
    TRY(database_each(database, TABLES, NO_VALUES, make_table, database, error));
    return database_execute(database, (const char *)published_views->data, error);
}

status published_attach(struct store *store, struct error *error)
{
    if (store->published)
        return OK;
    TRY(database_execute(store->database, "SAVEPOINT published", error));
    if (attach(store->database, error) != OK) {
        database_execute(store->database, "ROLLBACK TO published; RELEASE published", NULL);
        return error_context(error, "published numbers");
    }
    store->published = true;
    return database_execute(store->database, "RELEASE published", error);
}

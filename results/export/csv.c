#include "results/export/csv.h"

#include <stdlib.h>

#include "core/file.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

/* Views of this program, which stand over those of an older file, are temporary ones. */
static const char files_sql[] =
    "WITH relations(name) AS (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
    " UNION SELECT name FROM sqlite_temp_schema WHERE type = 'view') "
    "SELECT name FROM relations WHERE EXISTS (SELECT 1 FROM pragma_table_info(relations.name) AS about WHERE "
    "about.name = 'run')"
    " AND NOT EXISTS (SELECT 1 FROM pragma_table_info(relations.name) AS about WHERE about.type = 'BLOB') ORDER BY "
    "name";

static status write_file(struct store *store, const struct query_filter *filter, struct statement *file,
                         const char *folder, struct csv_counts *counts, struct error *error)
{
    struct text sql = {0}, csv = {0};
    struct table table = {0};
    char *path = path_format("%s/%s.csv", folder, statement_text(file, 0));
    text_add(&sql, CHOSEN "SELECT * FROM \"%s\" WHERE run IN (SELECT run FROM chosen) ORDER BY 1, 2, 3",
             statement_text(file, 0));
    status result = path == NULL || sql.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store))
                                               : query_answer_sql(store, sql.data, filter, &table, error);
    NEXT(result, table_render(&table, TABLE_CSV, false, &csv, error));
    NEXT(result, file_write(path, csv.data, csv.size, error));
    if (result == OK) {
        counts->files++;
        counts->rows += table_rows(&table);
    }
    table_free(&table);
    text_free(&csv);
    text_free(&sql);
    free(path);
    return result;
}

static status check_chosen(struct store *store, const struct query_filter *filter, struct error *error)
{
    struct table table = {0};
    status result = query_answer_sql(store, CHOSEN "SELECT run FROM chosen LIMIT 1", filter, &table, error);
    bool none = table_rows(&table) == 0;
    table_free(&table);
    if (result == OK && none)
        return error_set(error, ERROR_ARGUMENT, "%s: no run is chosen; `mtil query runs` lists those there are",
                         store_path(store));
    return result;
}

status csv_export(struct store *store, const struct query_filter *filter, const char *folder, struct csv_counts *counts,
                  struct error *error)
{
    *counts = (struct csv_counts){0};
    struct statement *file;
    TRY(check_chosen(store, filter, error));
    TRY(directory_create(folder, error));
    TRY(statement_open(&file, store->database, files_sql, error));
    bool row = true;
    status result = statement_bind(file, NO_VALUES, error);
    while (result == OK && (result = statement_step(file, &row, error)) == OK && row)
        result = write_file(store, filter, file, folder, counts, error);
    statement_close(file);
    return result;
}

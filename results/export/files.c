#include "results/export/files.h"

#include <stdlib.h>

#include "core/file.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

status export_files(struct export_files *files, const struct query_filter *filter, const char *folder, const char *sql,
                    row_taker *add, struct error *error)
{
    *files->counts = (struct export_counts){0};
    TRY(query_check_chosen(files->store, filter, error));
    status result = file_group_begin(&files->group, folder, error);
    NEXT(result, database_each(files->store->database, sql, NO_VALUES, add, files, error));
    NEXT(result, file_group_commit(&files->group, error));
    file_group_abandon(&files->group);
    return result;
}

/* Views of this program, which stand over those of an older file, are temporary ones. */
static const char tables_sql[] =
    "WITH relations(name) AS (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
    " UNION SELECT name FROM sqlite_temp_schema WHERE type = 'view') "
    "SELECT name FROM relations WHERE EXISTS (SELECT 1 FROM pragma_table_info(relations.name) AS about WHERE "
    "about.name = 'run')"
    " AND NOT EXISTS (SELECT 1 FROM pragma_table_info(relations.name) AS about WHERE about.type = 'BLOB') ORDER BY "
    "name";

static status add_table(void *context, struct statement *row, struct error *error)
{
    struct export_files *files = context;
    struct text csv = {0};
    struct table table = {0};
    char *name = path_format("%s.csv", statement_text(row, 0));
    char *sql = path_format("SELECT * FROM \"%s\" WHERE run IN (SELECT run FROM chosen) ORDER BY 1, 2, 3",
                            statement_text(row, 0));
    status result = query_sql(files->store, sql, &table, error);
    NEXT(result, table_render(&table, TABLE_CSV, false, &csv, error));
    NEXT(result, file_group_add(&files->group, name, csv.data, csv.size, error));
    files->counts->files++;
    files->counts->entries += table_rows(&table);
    table_free(&table);
    text_free(&csv);
    free(sql);
    free(name);
    return result;
}

status export_csv(struct store *store, const struct query_filter *filter, const char *folder,
                  struct export_counts *counts, struct error *error)
{
    struct export_files files = {.store = store, .counts = counts};
    return export_files(&files, filter, folder, tables_sql, add_table, error);
}

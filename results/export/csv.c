#include "results/export/csv.h"

#include <stdlib.h>

#include "core/file.h"
#include "core/file_group.h"
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

static status write_file(struct store *store, struct statement *file, struct file_group *group,
                         struct csv_counts *counts, struct error *error)
{
    struct text sql = {0}, csv = {0};
    struct table table = {0};
    char *name = path_format("%s.csv", statement_text(file, 0));
    text_add(&sql, "SELECT * FROM \"%s\" WHERE run IN (SELECT run FROM chosen) ORDER BY 1, 2, 3",
             statement_text(file, 0));
    status result = name == NULL || sql.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store))
                                               : query_sql(store, sql.data, &table, error);
    NEXT(result, table_render(&table, TABLE_CSV, false, &csv, error));
    NEXT(result, file_group_add(group, name, csv.data, csv.size, error));
    if (result == OK) {
        counts->files++;
        counts->rows += table_rows(&table);
    }
    table_free(&table);
    text_free(&csv);
    text_free(&sql);
    free(name);
    return result;
}

static status write_files(struct store *store, struct file_group *group, struct csv_counts *counts, struct error *error)
{
    struct statement *file;
    TRY(statement_open(&file, store->database, files_sql, error));
    bool row = true;
    status result = statement_bind(file, NO_VALUES, error);
    while (result == OK && (result = statement_step(file, &row, error)) == OK && row)
        result = write_file(store, file, group, counts, error);
    statement_close(file);
    return result;
}

status csv_export(struct store *store, const struct query_filter *filter, const char *folder, struct csv_counts *counts,
                  struct error *error)
{
    struct file_group group;
    *counts = (struct csv_counts){0};
    TRY(query_check_chosen(store, filter, error));
    status result = file_group_begin(&group, folder, error);
    NEXT(result, write_files(store, &group, counts, error));
    NEXT(result, file_group_commit(&group, error));
    file_group_abandon(&group);
    return result;
}

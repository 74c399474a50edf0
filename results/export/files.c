#include "results/export/files.h"

#include <stdlib.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

struct export_files {
    struct store *store;
    struct file_group group;
    struct export_counts *counts;
};

/* Tables and views that have a run. Tables of packed values are left out by their BLOBs; of views this would say nothing, whose
 * columns SQLite calls BLOB where it knows no type. Views of this program, which stand over those of an older file, are temporary
 * ones. */
static const char tables_sql[] =
    "WITH relations(name, type) AS (SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')"
    " UNION SELECT name, type FROM sqlite_temp_schema WHERE type = 'view') "
    "SELECT relations.name FROM relations JOIN pragma_table_info(relations.name) AS about GROUP BY relations.name "
    "HAVING max(about.name = 'run') AND NOT max(relations.type = 'table' AND about.type = 'BLOB') ORDER BY 1";

static status add_table(void *context, struct statement *row, struct error *error)
{
    struct export_files *files = context;
    SCOPED(text_free) struct text csv = {0};
    SCOPED(table_free) struct table table = {0};
    OWNED char *name = path_format("%s.csv", statement_text(row, 0));
    OWNED char *sql = path_format("SELECT * FROM \"%s\" WHERE run IN (SELECT run FROM chosen) ORDER BY 1, 2, 3",
                                  statement_text(row, 0));
    TRY(query_sql(files->store, sql, &table, error));
    table_render(&table, TABLE_CSV, false, &csv);
    TRY(file_group_add(&files->group, name, csv.data, csv.size, error));
    files->counts->files++;
    files->counts->rows += table_rows(&table);
    return OK;
}

status export_csv(struct store *store, const struct query_filter *filter, const char *folder,
                  struct export_counts *counts, struct error *error)
{
    struct export_files files = {.store = store, .counts = counts};
    *counts = (struct export_counts){0};
    TRY(query_check_chosen(store, filter, error));
    status result = file_group_begin(&files.group, folder, error);
    NEXT(result, database_each(store->database, tables_sql, NO_VALUES, add_table, &files, error));
    NEXT(result, file_group_commit(&files.group, error));
    file_group_abandon(&files.group);
    return result;
}

#include "results/store/repeat.h"

#include <stdio.h>

#include "results/store/store_internal.h"

static status count_rows(struct store *store, const char *table, int64_t run, int64_t *rows, struct error *error)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE run = ?1", table);
    return database_ask(store->database, sql, VALUES(value_integer(run)), rows, error);
}

static status compare_table(struct repeat *repeat, struct run_rows *sides, size_t index, struct table *table,
                            struct error *error)
{
    const struct store_table *compared = &store_tables[index];
    int64_t rows[2];
    SCOPED(row_difference_free) struct row_difference difference = {0};
    TRY(count_rows(repeat->first, compared->name, repeat->first_run, &rows[0], error));
    TRY(count_rows(repeat->second, compared->name, repeat->second_run, &rows[1], error));
    if (rows[0] == 0 && rows[1] == 0)
        return OK;
    TRY(run_rows_compare_table(&sides[0], repeat->first_run, &sides[1], repeat->second_run, index, &difference, error));
    bool absent = (rows[0] == 0 || rows[1] == 0) && compared->optional;
    const char *words = absent                              ? "kept in one of them alone"
                        : difference.contradiction.size > 0 ? difference.contradiction.data
                        : difference.only_first.size > 0    ? difference.only_first.data
                                                            : difference.only_second.data;
    table_add_text(table, compared->name);
    table_add_integer(table, rows[0]);
    table_add_integer(table, rows[1]);
    table_add_text(table, words ? words : "the same");
    repeat->agrees = repeat->agrees && (absent || words == NULL);
    return OK;
}

/* Possible causes of a difference, of the newest session. Inputs are compared by content, not by path. */
static const char machine_sql[] =
    "SELECT json_patch(json_object('program', runs.program_version, 'backend', backend || ' ' || \"precision\", "
    "'host', runs.host, 'CPU', cpu, 'GPU', coalesce(gpu, ''), 'commit', coalesce(program_commit, ''), "
    "'compiler', compiler, 'libraries', libraries), "
    "(SELECT json_group_object(kind || iif(task < 0, '', ' of task ' || task), digest) FROM inputs WHERE run = ?1)) "
    "FROM runs LEFT JOIN sessions USING (run) WHERE run = ?1 ORDER BY session DESC LIMIT 1";

static const char unlike_sql[] =
    "SELECT group_concat(a.key || ': ' || substr(a.value, 1, 60) || ' then, ' || substr(b.value, 1, 60) || ' now', "
    "'; ') FROM json_each(?1) AS a JOIN json_each(?2) AS b ON b.key = a.key AND b.value <> a.value";

static status compare_machines(struct repeat *repeat, struct error *error)
{
    SCOPED(statement_close_at) struct statement *first = NULL, *second = NULL, *row = NULL;
    TRY(database_row(repeat->first->database, machine_sql, VALUES(value_integer(repeat->first_run)), &first, error));
    TRY(database_row(repeat->second->database, machine_sql, VALUES(value_integer(repeat->second_run)), &second, error));
    TRY(database_row(repeat->first->database, unlike_sql, VALUES(statement_value(first, 0), statement_value(second, 0)),
                     &row, error));
    text_add(&repeat->machines, "%s", statement_text(row, 0));
    return OK;
}

status repeat_compare(struct repeat *repeat, struct table *table, struct error *error)
{
    static const char *const titles[] = {"table", "rows", "repeated", "first difference"};
    struct run_rows sides[2] = {{.database = repeat->first->database, .name = "the first"},
                                {.database = repeat->second->database, .name = "its repetition"}};
    status result = OK;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(table, &(struct table_column){.title = titles[i]});
    repeat->agrees = true;
    for (size_t i = 0; i < STORE_TABLES; i++)
        if (!store_tables[i].local)
            NEXT(result, compare_table(repeat, sides, i, table, error));
    run_rows_close(&sides[0]);
    run_rows_close(&sides[1]);
    NEXT(result, compare_machines(repeat, error));
    return result;
}

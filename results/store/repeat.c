#include "results/store/repeat.h"

#include <inttypes.h>
#include <stdio.h>

#include "results/store/join_internal.h"
#include "results/store/store_internal.h"

static status count_rows(struct store *store, const char *name, int64_t run, int64_t *rows, struct error *error)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM \"%s\" WHERE run = %" PRId64, name, run);
    return database_integer(store->database, sql, rows, error);
}

static const char *words_of(const struct join_difference *difference)
{
    const struct text *texts[] = {&difference->contradiction, &difference->only_first, &difference->only_second};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i]->size > 0)
            return texts[i]->data;
    return NULL;
}

/* Earlier versions of the program did not keep these rows for all runs; merge effects and patches are optional
 * (merge.analysis, evaluation.patch_images). */
static bool may_be_absent(const char *table)
{
    return strcmp(table, "test_labels") == 0 || strcmp(table, "task_classes") == 0 ||
           strcmp(table, "merge_effects") == 0 || strcmp(table, "class_experts") == 0 ||
           strcmp(table, "patch_experts") == 0;
}

static status compare_table(struct repeat *repeat, struct join_side *sides, size_t index, struct table *table,
                            struct error *error)
{
    int64_t rows[2];
    struct join_difference difference = {0};
    const char *name = sides[0].layout->table[index].name;
    TRY(count_rows(repeat->first, name, repeat->first_run, &rows[0], error));
    TRY(count_rows(repeat->second, name, repeat->second_run, &rows[1], error));
    if (rows[0] == 0 && rows[1] == 0)
        return OK;
    status result =
        join_compare_table(&sides[0], repeat->first_run, &sides[1], repeat->second_run, index, &difference, error);
    if (result == OK) {
        bool absent = (rows[0] == 0 || rows[1] == 0) && may_be_absent(name);
        const char *words = absent ? "kept in one of them alone" : words_of(&difference);
        table_add_text(table, name);
        table_add_integer(table, rows[0]);
        table_add_integer(table, rows[1]);
        table_add_text(table, words ? words : "the same");
        repeat->agrees = repeat->agrees && (absent || words == NULL);
    }
    join_difference_free(&difference);
    return result;
}

/* Possible causes of a difference, newest session first. Inputs are compared by content, not by path. */
static const char machine_sql[] =
    "SELECT 0, 'program', program_version FROM runs WHERE run = ?1 UNION ALL "
    "SELECT 1, 'backend', backend || ' ' || \"precision\" FROM runs WHERE run = ?1 UNION ALL "
    "SELECT 2, 'host', host FROM runs WHERE run = ?1 UNION ALL "
    "SELECT 3, name, value FROM (SELECT max(session) AS session FROM sessions WHERE run = ?1) "
    "JOIN (SELECT session, 'commit' AS name, program_commit AS value FROM sessions UNION ALL "
    "SELECT session, 'compiler', compiler FROM sessions UNION ALL SELECT session, 'libraries', libraries FROM sessions "
    "UNION ALL SELECT session, 'CPU', cpu FROM sessions UNION ALL SELECT session, 'GPU', gpu FROM sessions) "
    "USING (session) UNION ALL "
    "SELECT 4, kind || iif(task < 0, '', ' of task ' || task), digest FROM inputs WHERE run = ?1 ORDER BY 1, 2";

/* The value that the other run has under the same name. */
static status find_value(struct store *store, int64_t run, const char *name, struct text *value, bool *found,
                         struct error *error)
{
    struct statement *rows;
    status result;
    *found = false;
    TRY(statement_open(&rows, store->database, machine_sql, error));
    result = statement_bind(rows, VALUES(value_integer(run)), error);
    for (bool row; result == OK && !*found && (result = statement_step(rows, &row, error)) == OK && row;)
        if (strcmp(statement_text(rows, 1), name) == 0) {
            *found = true;
            text_add(value, "%s", statement_text(rows, 2));
        }
    statement_close(rows);
    return result;
}

static status compare_machines(struct repeat *repeat, struct error *error)
{
    struct statement *rows;
    struct text other = {0};
    TRY(statement_open(&rows, repeat->first->database, machine_sql, error));
    status result = statement_bind(rows, VALUES(value_integer(repeat->first_run)), error);
    for (bool row, found; result == OK && (result = statement_step(rows, &row, error)) == OK && row;) {
        const char *name = statement_text(rows, 1), *value = statement_text(rows, 2);
        text_clear(&other);
        result = find_value(repeat->second, repeat->second_run, name, &other, &found, error);
        if (result == OK && found && other.data && strcmp(other.data, value) != 0)
            text_add(&repeat->machines, "%s%s: %.60s then, %.60s now", repeat->machines.size ? "; " : "", name, value,
                     other.data);
    }
    statement_close(rows);
    bool failed = other.failed || repeat->machines.failed;
    text_free(&other);
    return result == OK && failed ? error_set(error, ERROR_MEMORY, "out of memory") : result;
}

static status compare_tables(struct repeat *repeat, const struct join_layout *layout, struct table *table,
                             struct error *error)
{
    struct join_side sides[2] = {{0}};
    status result = join_side_open(&sides[0], layout, repeat->first->database, "the first", error);
    if (result == OK)
        result = join_side_open(&sides[1], layout, repeat->second->database, "its repetition", error);
    for (size_t i = 0; i < layout->count && result == OK; i++)
        if (layout->table[i].observed)
            result = compare_table(repeat, sides, i, table, error);
    join_side_close(&sides[0]);
    join_side_close(&sides[1]);
    return result;
}

status repeat_compare(struct repeat *repeat, struct table *table, struct error *error)
{
    static const char *const titles[] = {"table", "rows", "repeated", "first difference"};
    struct join_layout layout;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(table, &(struct table_column){.title = titles[i]});
    repeat->agrees = true;
    status result = join_layout_read(&layout, error);
    if (result == OK)
        result = compare_tables(repeat, &layout, table, error);
    join_layout_free(&layout);
    return result == OK ? compare_machines(repeat, error) : result;
}

/* The parts of a comparison as tables: each is a statement of parts.sql. */
#include <stdlib.h>
#include <string.h>

#include "core/embedded.h"
#include "results/compare/internal.h"

EMBEDDED_FILES(compare_parts);

/* Columns with "?" behind their title are shown where these count any. */
static const struct {
    const char *title, *sql;
} optional[] = {{"context", "SELECT max(number) > 1 FROM shown"},
                {"dataset", "SELECT count(*) FROM sample WHERE dataset > 0"},
                {"seeds_needed", "SELECT count(seeds_needed) FROM pair"},
                {"_errors", "SELECT count(router_a) + count(router_b) FROM imaged"}};

static status is_shown(const struct comparison *comparison, const char *title, bool *shown, struct error *error)
{
    int64_t count = 1;
    for (size_t i = 0; strchr(title, '?') && i < sizeof optional / sizeof *optional; i++)
        if (strstr(title, optional[i].title))
            TRY(database_integer(comparison->store->database, optional[i].sql, &count, error));
    *shown = count > 0;
    return OK;
}

/* Which end of a column of means is the better one; none where it is not the same for all metrics. */
static status best_of(const struct comparison *comparison, enum table_best *best, struct error *error)
{
    int64_t lower, count;
    struct database *database = comparison->store->database;
    static const char metrics[] = "FROM metric WHERE place IN (SELECT metric FROM sample JOIN shown USING (grp))";
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT total(lower) %s", metrics);
    TRY(database_integer(database, sql, &lower, error));
    snprintf(sql, sizeof sql, "SELECT count(*) %s", metrics);
    TRY(database_integer(database, sql, &count, error));
    *best = lower == 0 ? BEST_HIGHEST : lower == count ? BEST_LOWEST : BEST_NONE;
    return OK;
}

#define TEXTS "settings|baseline|by|metric|dataset|words|note"

enum { COLUMNS_MOST = 24 };

struct view {
    const struct comparison *comparison;
    struct statement *rows;
    size_t columns;
    bool shown[COLUMNS_MOST];
};

static status add_columns(struct view *view, struct table *table, struct error *error)
{
    view->columns = statement_columns(view->rows);
    for (size_t i = 0; i < view->columns; i++) {
        const char *title = statement_title(view->rows, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(title, "?"), title);
        struct table_column column = {.title = strcmp(name, "by") == 0 ? view->comparison->by : name,
                                      .decimals = *name == 'p'                 ? DECIMALS_ALL
                                                  : text_has_word(TEXTS, name) ? 0
                                                                               : 2};
        if (strcmp(name, "mean") == 0)
            TRY(best_of(view->comparison, &column.best, error));
        TRY(is_shown(view->comparison, title, &view->shown[i], error));
        if (view->shown[i])
            table_add_column(table, &column);
    }
    return OK;
}

static void add_row(const struct view *view, struct table *table)
{
    for (size_t i = 0; i < view->columns; i++) {
        struct value value = statement_value(view->rows, i);
        if (!view->shown[i])
            continue;
        if (value.kind == VALUE_INTEGER)
            table_add_integer(table, value.integer);
        else if (value.kind == VALUE_REAL)
            table_add_real(table, value.real);
        else
            table_add_text(table, value.kind == VALUE_TEXT ? value.bytes.data : NULL);
    }
}

/* Where the groups' context, metric or dataset changes, what is to be seen side by side ends. */
static bool begins_block(struct view *view, char last[static 200])
{
    char now[200];
    snprintf(now, sizeof now, "%s\n%.90s\n%.90s", statement_text(view->rows, 0), statement_text(view->rows, 2),
             statement_text(view->rows, 3));
    bool same = strcmp(now, last) == 0;
    snprintf(last, sizeof now, "%s", now);
    return !same;
}

static status fill(struct view *view, enum comparison_part part, struct table *table, struct error *error)
{
    char last[200] = "";
    TRY(add_columns(view, table, error));
    for (bool row;;) {
        TRY(statement_step(view->rows, &row, error));
        if (!row)
            break;
        if (part == COMPARE_GROUPS && begins_block(view, last))
            table_begin_block(table);
        add_row(view, table);
    }
    return table->failed ? error_set(error, ERROR_MEMORY, "compare: out of memory for a table") : OK;
}

status compare_table(const struct comparison *comparison, enum comparison_part part, struct table *table,
                     struct error *error)
{
    const char *at = (const char *)compare_parts[0].data;
    for (unsigned i = 0; i < part; i++)
        at = strstr(at, ";\n") + 2;
    char *sql = strndup(at, (size_t)(strstr(at, ";\n") - at));
    struct view view = {.comparison = comparison};
    status result = sql ? statement_open(&view.rows, comparison->store->database, sql, error)
                        : error_set(error, ERROR_MEMORY, "compare: out of memory for a table");
    NEXT(result, fill(&view, part, table, error));
    statement_close(view.rows);
    free(sql);
    return result;
}

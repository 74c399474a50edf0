/* The parts of a comparison as tables: each is a view of parts.sql. */
#include <string.h>

#include "results/compare/internal.h"

static const char *const views[] = {
    [COMPARE_CONTEXTS] = "contexts", [COMPARE_GROUPS] = "groups",    [COMPARE_PAIRS] = "pairs",
    [COMPARE_DETAILS] = "details",   [COMPARE_PER_IMAGE] = "images", [COMPARE_DISCORDANCE] = "discordance",
    [COMPARE_WORDS] = "words",       [COMPARE_NOTES] = "notes"};

/* Columns that are shown where any of their cells says something. */
#define OPTIONAL                                                                                                       \
    "context|contexts|factor|dataset|runs|low90|high90|tasks_low|tasks_high|above|below|median|effect|p_seeds|"        \
    "p_equal|p_wilcoxon|r|seeds_needed|seeds_low|seeds_high|router_errors_baseline|router_errors|class_errors_"        \
    "baseline|class_errors"
#define TEXTS "settings|factor|baseline|other|metric|dataset|words|note|verdict"

enum { COLUMNS_MOST = 40 };

struct view {
    const struct comparison *comparison;
    size_t columns;
    bool shown[COLUMNS_MOST];
    bool blocks;    /* groups: their blocks end where context, metric or dataset changes */
    char last[200]; /* block */
    struct table *table;
};

/* Finds out in one pass which optional columns have a cell. The mean over datasets says nothing without datasets beside it. */
static status find_shown(struct view *view, const char *name, const struct statement *rows, struct error *error)
{
    struct text sql = {0};
    struct statement *counts = NULL;
    bool row = false;
    for (size_t i = 0; i < view->columns; i++) {
        bool asks = text_has_word(OPTIONAL, statement_title(rows, i));
        text_add(&sql, asks ? "%s count(nullif(%s, 'mean'))" : "%s 1", i ? "," : "SELECT", statement_title(rows, i));
    }
    text_add(&sql, " FROM answer_%s", name);
    status result = statement_open(&counts, view->comparison->store->database, sql.data, error);
    NEXT(result, statement_step(counts, &row, error));
    for (size_t i = 0; result == OK && i < view->columns; i++)
        view->shown[i] = row && statement_integer(counts, i) > 0;
    statement_close(counts);
    text_free(&sql);
    return result;
}

/* Which end of a column of means is the better one; none where it is not the same for all metrics. */
static status best_of(const struct view *view, enum table_best *best, struct error *error)
{
    int64_t lower = 0; /* 0: none, 1: all, 2: some */
    status result = database_integer(view->comparison->store->database,
                                     "SELECT iif(min(lower) = max(lower), max(lower), 2) FROM metric "
                                     "WHERE place IN (SELECT metric FROM sample JOIN shown USING (grp))",
                                     &lower, error);
    *best = lower == 0 ? BEST_HIGHEST : lower == 1 ? BEST_LOWEST : BEST_NONE;
    return result;
}

static status add_columns(struct view *view, const char *name, struct statement *rows, struct error *error)
{
    view->columns = statement_columns(rows);
    TRY(find_shown(view, name, rows, error));
    for (size_t i = 0; i < view->columns; i++) {
        const char *title = statement_title(rows, i);
        int decimals = *title == 'p' ? DECIMALS_ALL : text_has_word(TEXTS, title) ? 0 : 2;
        struct table_column column = {.title = strcmp(title, "other") == 0 ? view->comparison->by : title,
                                      .decimals = decimals};
        if (strcmp(title, "mean") == 0)
            TRY(best_of(view, &column.best, error));
        if (view->shown[i])
            table_add_column(view->table, &column);
    }
    return OK;
}

static bool begins_block(struct view *view, struct statement *row)
{
    char now[200];
    snprintf(now, sizeof now, "%s\n%.90s\n%.90s", statement_text(row, 0), statement_text(row, 2),
             statement_text(row, 3));
    bool same = strcmp(now, view->last) == 0;
    snprintf(view->last, sizeof now, "%s", now);
    return view->blocks && !same;
}

static void add_row(struct view *view, struct statement *row)
{
    if (begins_block(view, row))
        table_begin_block(view->table);
    for (size_t i = 0; i < view->columns; i++) {
        struct value value = statement_value(row, i);
        if (!view->shown[i])
            continue;
        if (value.kind == VALUE_INTEGER)
            table_add_integer(view->table, value.integer);
        else if (value.kind == VALUE_REAL)
            table_add_real(view->table, value.real);
        else
            table_add_text(view->table, value.kind == VALUE_TEXT ? value.bytes.data : NULL);
    }
}

status compare_table(const struct comparison *comparison, enum comparison_part part, struct table *table,
                     struct error *error)
{
    char sql[80];
    struct view view = {.comparison = comparison, .blocks = part == COMPARE_GROUPS, .table = table};
    struct statement *rows;
    bool row = true;
    snprintf(sql, sizeof sql, "SELECT * FROM answer_%s", views[part]);
    TRY(statement_open(&rows, comparison->store->database, sql, error));
    status result = add_columns(&view, views[part], rows, error);
    while (result == OK && (result = statement_step(rows, &row, error)) == OK && row)
        add_row(&view, rows);
    statement_close(rows);
    return result;
}

/* The parts of a comparison as tables: each is a view of answers.sql, shown as a question's answer is. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "results/compare/internal.h"
#include "results/query/internal.h"
#include "results/query/question.h"

static const char *const views[] = {
    [COMPARE_CONTEXTS] = "contexts", [COMPARE_GROUPS] = "groups",    [COMPARE_PAIRS] = "pairs",
    [COMPARE_DETAILS] = "details",   [COMPARE_PER_IMAGE] = "images", [COMPARE_DISCORDANCE] = "discordance",
    [COMPARE_WORDS] = "words",       [COMPARE_NOTES] = "notes"};

#define HEAD                                                                                                           \
    "-- column: context,contexts,factor,dataset,runs,low90,high90,tasks_low,tasks_high,above,below,median,effect,r,"   \
    "seeds_needed,seeds_low,seeds_high,router_errors_baseline,router_errors,class_errors_baseline,class_errors "       \
    "optional 2\n"                                                                                                     \
    "-- column: p_seeds,p_equal,p_wilcoxon optional\n"                                                                 \
    "-- column: mean,difference,sd,low,high 2\n"                                                                       \
    "-- column: block hidden\n"

/* Which end of a column of means is the better one; none where it is not the same for all metrics. */
static status find_best(const struct comparison *comparison, enum table_best *best, struct error *error)
{
    int64_t lower = 0; /* 0: none, 1: all, 2: some */
    status result = database_integer(comparison->store->database,
                                     "SELECT iif(min(lower) = max(lower), max(lower), 2) FROM metric "
                                     "WHERE place IN (SELECT metric FROM sample)",
                                     &lower, error);
    *best = lower == 0 ? BEST_HIGHEST : lower == 1 ? BEST_LOWEST : BEST_NONE;
    return result;
}

/* The column "other" has the name of what is compared. */
static void name_column(struct table *rows, const char *by)
{
    size_t other = query_column(rows, "other");
    if (other != SIZE_MAX) {
        free((char *)rows->column[other].title);
        rows->column[other].title = xstrdup(by);
    }
}

status compare_table(const struct comparison *comparison, enum comparison_part part, struct table *table,
                     struct error *error)
{
    char sql[80];
    struct table rows = {0};
    struct question shown;
    snprintf(sql, sizeof sql, "SELECT * FROM answer_%s", views[part]);
    TRY(question_parse(&shown, views[part], views[part], part == COMPARE_GROUPS ? HEAD "-- block: block\n" : HEAD,
                       error));
    status result = query_sql(comparison->store, sql, &rows, error);
    if (result == OK)
        name_column(&rows, comparison->by);
    NEXT(result, query_show(&shown, &rows, 0, table_rows(&rows), NULL, table, error));
    size_t mean = query_column(table, "mean");
    if (mean != SIZE_MAX)
        NEXT(result, find_best(comparison, &table->column[mean].best, error));
    table_free(&rows);
    question_free(&shown);
    return result;
}

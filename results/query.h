/* Queries of a store, answered as tables.
 *
 *     struct table table = {0};
 *     struct query_filter filter = {.suite = "mini", .policy = "most_used"};
 *     TRY(query_named(store, "leaderboard", &filter, &table, error));
 *     TRY(query_sql(store, "SELECT suite, count(*) FROM runs GROUP BY suite", &other, error));
 *     TRY(query_named(store, "end-of-run", &(struct query_filter){.run = run}, &other, error));
 *     table_free(&table); ...
 *
 * The caller frees the tables, after a failure too. A named query is a part of a file of results/questions/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"
#include "results/store.h"
#include "results/table.h"

/* A choice of runs and tasks. A field that is NULL or 0 does not filter. */
struct query_filter {
    int64_t run;
    const char *runs, *seed; /* one of several: "1,4" */
    const char *where;       /* settings of the runs: "merge.every=50,training.batch=64" */
    const char *suite, *setting, *method, *policy, *selector, *status;
    const char *dataset;        /* a task's name */
    const char *since, *before; /* started in [since, before): "2026-01-31", or with a time "2026-01-31T12:00" in UTC */
    const char *by;             /* settings that stand beside configurations, or by which merges are summed up */
    /* As in comparison_request. */
    bool (*incidental)(const char *key, const char *value);
    const char *baseline; /* row of a suite that classifiers are compared with in the paper's table; NULL: "Dense" */
    bool published;       /* the paper's table begins with published numbers (published_attach) */
};

/* The name of the option of the filter's text at this place, "run", "seed" and so on, and the text; the name behind the last
 * one is NULL. */
const char *query_filter_name(size_t place);
const char **query_filter_text(struct query_filter *filter, size_t place);

/* ERROR_ARGUMENT for a missing run, for a suite, method, seed or other name that no run has (the message names the
 * nearest and all of them), and for an invalid time. A query with such a filter would have no rows. */
status query_check_filter(struct store *store, const struct query_filter *filter, struct error *error);

/* The answer of a question (results/query/question.h) and, unless note is NULL, its notes on what the answer leaves
 * out. */
struct questions;
struct question;
status query_ask(struct store *store, const struct questions *questions, const struct question *question,
                 const struct query_filter *filter, struct table *table, struct text *note, struct error *error);

/* An unknown name is ERROR_ARGUMENT, with all names and the nearest one. */
status query_unknown(const struct questions *questions, const char *name, struct error *error);

/* A question of the program. ERROR_ARGUMENT for a name that does not exist; without an answer the table has no rows. */
status query_named(struct store *store, const char *name, const struct query_filter *filter, struct table *table,
                   struct error *error);

/* One SELECT (or WITH, VALUES, EXPLAIN). A statement that would write, attach or configure is ERROR_ARGUMENT, also on a
 * store that is open for writing; so is an answer of more than ten million cells. */
status query_sql(struct store *store, const char *sql, struct table *table, struct error *error);

/* Adds numbers that papers print (results/published/, each row with its source) as tables of the connection, `published` and
 * `published_matrix`. They are never rows of `runs` or `evaluations`: no metric, leaderboard or comparison counts them, and
 * the file is not touched. Repeated calls do nothing. */
status published_attach(struct store *store, struct error *error);

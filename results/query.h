/* Questions to a store, answered as tables.
 *
 *     struct table table = {0};
 *     struct query_filter filter = {.suite = "mini", .policy = "most_used"};
 *     TRY(query_named(store, "leaderboard", &filter, &table, error));
 *     TRY(query_sql(store, "SELECT suite, count(*) FROM runs GROUP BY suite", &other, error));
 *     TRY(query_summary(store, run, &summary, error));           // what is shown when a run ends
 *     table_free(&table); ...
 *
 * The caller frees the tables, after a failure too. A named query is one entry of the table in query.c.
 */
#ifndef MTIL_RESULTS_QUERY_H
#define MTIL_RESULTS_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"
#include "results/store.h"
#include "results/table.h"

/* Which runs, and of them which tasks. A field that is NULL or 0 does not filter. */
struct query_filter {
    int64_t run;
    const char *suite, *setting, *method, *policy, *selector, *status;
    const char *dataset;        /* a task's name */
    const char *since, *before; /* started in [since, before): "2026-01-31", or with a time "2026-01-31T12:00" in UTC */
    bool has_seed;
    int64_t seed;
    const char *where; /* settings that they have: "merge.every=50,training.batch=64" */
    const char
        *by; /* settings: shown beside each configuration of the leaderboard, those by which merges are summed up */
    /* Whether a suite key with that value says how and not what is computed; NULL: none does. */
    bool (*incidental)(const char *key, const char *value);
    const char *baseline; /* row of a suite that classifiers are compared with in the paper's table; NULL: "Dense" */
    bool published;       /* the paper's table begins with the numbers that papers print (results/query/published.h) */
};

struct query {
    const char *name, *help;
};

/* The queries in order, NULL behind the last: runs, metrics, tasks, matrix, leaderboard, paper-table, experts,
 * class_experts, events,
 * merges, selector, digest, time. */
const struct query *query_at(size_t index);
bool query_exists(const char *name);

/* ERROR_ARGUMENT for a run that is not there, a suite, method, seed or other name that no run has (with the nearest and
 * all of them), and a time that is none. A query with such a filter would have no rows. */
status query_check_filter(struct store *store, const struct query_filter *filter, struct error *error);

/* ERROR_ARGUMENT for a name that does not exist (with the nearest); a query without an answer is a table without rows.
 * Leaderboard and paper's table have means over the chosen runs that are finished. With a dataset in the filter, metrics are those of that dataset. Matrices of
 * several runs stand below one another, with a column for each task of any of them. Configurations of the leaderboard that are
 * called the same have columns of the settings in which they differ. */
status query_named(struct store *store, const char *name, const struct query_filter *filter, struct table *table,
                   struct error *error);

/* Appends what the answer of a named query leaves out, and what to ask instead; nothing where there is nothing to say. */
status query_note(struct store *store, const char *name, const struct query_filter *filter, struct text *note,
                  struct error *error);

/* One SELECT (or WITH, VALUES, EXPLAIN). Whatever would write, attach or configure is ERROR_ARGUMENT, also on a store
 * that is open for writing; so is an answer of more than ten million cells. */
status query_sql(struct store *store, const char *sql, struct table *table, struct error *error);

/* The end of a run: a row per trained task with the zero-shot one first, then those of Transfer, Average and Last that have
 * a number, unless there is one task alone; a column per task and their mean; percent. */
status query_summary(struct store *store, int64_t run, struct table *table, struct error *error);

#endif

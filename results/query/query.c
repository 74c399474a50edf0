#include "results/query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

static query_function answer_leaderboard;

/* trial 0: the run's own. Shares are means over tasks in percent: of the images that took the router of their task (if that
 * was not trained yet: none), and of those that took none, after the last task; and of images of tasks not trained yet that
 * took none, after every task. Class-incremental runs, which have no other trial, have the Avg and Last of `metrics`. */
#define SELECTORS_SQL                                                                                                  \
    ", trials AS (SELECT run, 0 AS trial, selector, selection, tasks FROM chosen WHERE selector <> 'none' UNION ALL "  \
    "SELECT run, trial, selector_trials.selector, selector_trials.selection, tasks FROM chosen JOIN selector_trials "  \
    "USING (run)), answers AS (SELECT run, 0 AS trial, task, after_task, 100.0 * correct / images AS accuracy FROM "   \
    "evaluations WHERE after_task >= 0 UNION ALL "                                                                     \
    "SELECT run, trial, task, after_task, 100.0 * correct / images FROM trial_evaluations), "                          \
    "columns AS (SELECT run, trial, count(*) = tasks AS whole, avg(accuracy) FILTER (WHERE after_task < task) AS "     \
    "transfer, avg(accuracy) AS average, max(accuracy) FILTER (WHERE after_task = tasks - 1) AS last "                 \
    "FROM trials JOIN answers USING (run, trial) GROUP BY run, trial, task), "                                         \
    "means AS (SELECT run, trial, CASE WHEN min(whole) THEN avg(transfer) END AS transfer, "                           \
    "CASE WHEN min(whole) THEN avg(average) END AS average, avg(last) AS last FROM columns GROUP BY run, trial), "     \
    "choices AS (SELECT run, 0 AS trial, after_task, task, router, count FROM router_choices WHERE after_task >= 0 "   \
    "UNION ALL SELECT run, trial, after_task, task, router, count FROM trial_choices), "                               \
    "shares AS (SELECT run, trial, after_task, task, max(after_task) OVER (PARTITION BY run, trial) AS latest, "       \
    "100.0 * sum(count) FILTER (WHERE router = iif(task <= after_task, task, -1)) / sum(count) AS own, "               \
    "100.0 * sum(count) FILTER (WHERE router < 0) / sum(count) AS none FROM trials JOIN choices USING (run, trial) "   \
    "GROUP BY run, trial, after_task, task), "                                                                         \
    "routed AS (SELECT run, trial, avg(coalesce(own, 0)) FILTER (WHERE after_task = latest) AS own, "                  \
    "avg(coalesce(none, 0)) FILTER (WHERE after_task = latest) AS none, "                                              \
    "avg(coalesce(none, 0)) FILTER (WHERE task > after_task) AS unseen FROM shares GROUP BY run, trial) "              \
    "SELECT trials.run AS run, trial, selector, selection, own AS right_router, none AS zero_shot, unseen AS "         \
    "unseen_zero_shot, "                                                                                               \
    "means.transfer, coalesce(seen.average, means.average) AS average, coalesce(seen.last, means.last) AS last FROM "  \
    "trials "                                                                                                          \
    "LEFT JOIN means USING (run, trial) LEFT JOIN routed USING (run, trial) LEFT JOIN metrics AS seen ON "             \
    "seen.run = trials.run AND trial = 0 AND (SELECT setting FROM runs WHERE runs.run = seen.run) = "                  \
    "'class_incremental' "                                                                                             \
    "ORDER BY run, trial"

/* A query is SQL whose columns are the answer's, or a function that fills the table. */
static const struct named_query {
    struct query about;
    const char *sql, *sql_of_dataset; /* the second, if any, where the filter names a dataset */
    query_function *answer;
} queries[] = {
    {{"runs", "what has been run: suite, settings, seed, status, dates, folder of the adapters"},
     NULL,
     NULL,
     query_runs},
    {{"metrics", "transfer, average, last and more of each run whose matrix is complete"},
     CHOSEN "SELECT run, suite, method, policy, seed, transfer, average, last, forgetting, backward_transfer, "
            "forward_transfer, gain, zero_shot FROM chosen JOIN metrics USING (run) ORDER BY run",
     CHOSEN "SELECT run, suite, method, policy, seed, name, transfer, average, last, forgetting, backward_transfer, "
            "forward_transfer, gain, zero_shot FROM chosen JOIN task_metrics USING (run) JOIN tasks USING (run, task) "
            "WHERE name = ?11 "
            "ORDER BY run, task",
     NULL},
    {{"tasks", "the same per task, with its images and how many were missing or unreadable"},
     CHOSEN "SELECT run, suite, method, policy, seed, task, name, transfer, average, last, forgetting, "
            "backward_transfer, forward_transfer, gain, zero_shot, training_images, test_images, missing_images, "
            "unreadable_images FROM "
            "chosen JOIN task_metrics USING (run) JOIN tasks USING (run, task) WHERE ?11 IS NULL OR name = ?11 ORDER "
            "BY run, task",
     NULL,
     NULL},
    {{"classes", "accuracy on each class: zero-shot, right after its task, and after the last task tested"},
     NULL,
     NULL,
     query_classes},
    {{"confusion",
      "to which task's classes the images of each task were assigned, percent; with a dataset, to which class"},
     NULL,
     NULL,
     query_confusion},
    {{"similarity", "mean cosine between the class names of tasks that are parts of a dataset"},
     CHOSEN
     "SELECT chosen.run AS run, tasks.task AS task, tasks.name AS name, other, others.name AS other_name, cosine "
     "FROM chosen JOIN tasks USING (run) JOIN task_similarities USING (run, task) JOIN tasks AS others "
     "ON others.run = chosen.run AND others.task = other WHERE ?11 IS NULL OR tasks.name = ?11 "
     "ORDER BY chosen.run, tasks.task, other",
     NULL,
     NULL},
    {{"matrix", "accuracy on each task after each task, a row per trained task"}, NULL, NULL, query_matrix},
    {{"leaderboard", "configurations by their mean over seeds, best Last first"}, NULL, NULL, answer_leaderboard},
    {{"paper-table", "methods × datasets, a block for each of Transfer, Average and Last"},
     NULL,
     NULL,
     query_paper_table},
    {{"experts", "how often each expert was chosen, per task and block"},
     CHOSEN "SELECT run, task, name, encoder, block, expert, count, share, frozen FROM chosen JOIN expert_usage "
            "USING (run) WHERE ?11 IS NULL OR name = ?11 ORDER BY run, task, encoder, block, expert",
     NULL,
     NULL},
    {{"blocks",
      "where the experts lie that were frozen by the last task (with a dataset: by that one), block by block"},
     CHOSEN
     ", latest AS (SELECT run, max(task) AS task FROM chosen JOIN expert_counts USING (run) JOIN tasks USING (run, "
     "task) "
     "WHERE ?11 IS NULL OR name = ?11 GROUP BY run), "
     "blocks AS (SELECT run, task, encoder, block, ntile(3) OVER (PARTITION BY run, encoder ORDER BY block) AS third "
     "FROM latest JOIN expert_counts USING (run, task) GROUP BY run, encoder, block), "
     "found AS (SELECT run, encoder, block, count(*) AS frozen, "
     "count(*) FILTER (WHERE frozen_experts.task = latest.task) AS added "
     "FROM latest JOIN frozen_experts USING (run) WHERE frozen_experts.task <= latest.task GROUP BY run, encoder, "
     "block) "
     "SELECT run, name AS after, encoder, CASE third WHEN 1 THEN 'first' WHEN 2 THEN 'middle' ELSE 'last' END AS part, "
     "block, coalesce(frozen, 0) AS frozen, coalesce(added, 0) AS added, "
     "avg(coalesce(frozen, 0)) OVER (PARTITION BY run, encoder, third) AS part_mean "
     "FROM blocks JOIN tasks USING (run, task) LEFT JOIN found USING (run, encoder, block) ORDER BY run, encoder, "
     "block",
     NULL,
     NULL},
    {{"class-experts",
      "which classes which expert serves in the last test; with a dataset, block by block: class × expert"},
     NULL,
     NULL,
     query_class_experts},
    {{"events", "merges, skips and freezes in their order"},
     CHOSEN "SELECT run, task, name, iteration, encoder, block, event, t1, t2, target, reason FROM chosen JOIN events "
            "USING (run) WHERE ?11 IS NULL OR name = ?11 ORDER BY run, task, iteration, encoder, block, position",
     NULL,
     NULL},
    {{"merges", "what became of each merge: use of the merged expert, loss, distance; with --by, a row per setting"},
     NULL,
     NULL,
     query_merges},
    {{"selector", "selectors of each run, its own and those of mtil eval --selector, and what comes of them"},
     CHOSEN SELECTORS_SQL,
     NULL,
     NULL},
    {{"routers", "the router confusion after the last task: true task × chosen, percent"}, NULL, NULL, query_routers},
    {{"inputs", "what each run was computed from: files, their sizes and digests of their contents"},
     CHOSEN
     "SELECT run, task, name, kind, path, files, bytes, digest FROM chosen JOIN inputs USING (run) LEFT JOIN tasks "
     "USING (run, task) WHERE ?11 IS NULL OR name = ?11 ORDER BY run, task, kind",
     NULL,
     NULL},
    {{"sessions", "the processes that worked on each run: program, command line, libraries and machine"},
     CHOSEN "SELECT run, session, sessions.started AS started, sessions.host AS host, sessions.program_version AS "
            "program_version, program_commit, command_line, compiler, libraries, cpu, gpu, driver FROM chosen JOIN "
            "sessions USING (run) ORDER BY run, session",
     NULL,
     NULL},
    {{"digest", "one digest over the accuracies of the finished runs: whether two databases hold the same results"},
     NULL,
     NULL,
     query_digest},
    {{"time", "where the time of each run went, and how fast it was"},
     CHOSEN "SELECT run, phase, seconds, iterations, images, seconds_per_iteration, images_per_second, peak_bytes "
            "FROM chosen JOIN throughput USING (run) ORDER BY run, phase",
     NULL,
     NULL},
};

#define QUERIES (sizeof queries / sizeof *queries)

const struct query *query_at(size_t index)
{
    return index < QUERIES ? &queries[index].about : NULL;
}

bool query_exists(const char *name)
{
    for (size_t i = 0; i < QUERIES; i++)
        if (strcmp(name, queries[i].about.name) == 0)
            return true;
    return false;
}

static status unknown_query(const char *name, struct error *error)
{
    const char *names[QUERIES];
    struct text known = {0};
    for (size_t i = 0; i < QUERIES; i++) {
        names[i] = queries[i].about.name;
        text_add(&known, "%s%s", i ? ", " : "", names[i]);
    }
    const char *nearest = nearest_word(name, names, QUERIES);
    error_set(error, ERROR_ARGUMENT, "unknown query \"%.40s\"%s%s%s; expected one of: %s, or SQL", name,
              nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "",
              known.data ? known.data : "those of the list");
    text_free(&known);
    return ERROR_ARGUMENT;
}

status query_named(struct store *store, const char *name, const struct query_filter *filter, struct table *table,
                   struct error *error)
{
    for (size_t i = 0; i < QUERIES; i++) {
        const struct named_query *query = &queries[i];
        if (strcmp(name, query->about.name) != 0)
            continue;
        if (query->answer)
            return query->answer(store, filter, table, error);
        bool narrow = filter->dataset && query->sql_of_dataset;
        return query_answer_sql(store, narrow ? query->sql_of_dataset : query->sql, filter, table, error);
    }
    return unknown_query(name, error);
}

static bool ends_with(const char *string, const char *end)
{
    size_t size = strlen(string), length = strlen(end);
    return size >= length && strcmp(string + size - length, end) == 0;
}

/* SQLite may lack the square root, so the view has variances. */
static void take_roots(struct table *table)
{
    for (size_t column = 0; column < table->columns; column++) {
        if (!ends_with(table->column[column].title, "_sd"))
            continue;
        table->column[column].decimals = 2;
        for (size_t row = 0; row < table_rows(table); row++) {
            struct table_cell *cell = &table->cell[row * table->columns + column];
            if (cell->kind == CELL_REAL)
                cell->real = sqrt(fmax(cell->real, 0)); /* rounding can leave a little below 0 */
        }
    }
}

/* As the view of this name, over the chosen runs alone: unbiased variances under the names of their roots. */
#define SPREAD(metric)                                                                                                 \
    "avg(" metric ") AS " metric ", (avg(" metric " * " metric ") - avg(" metric ") * avg(" metric                     \
    ")) * count(*) / nullif(count(*) - 1, 0) AS " metric "_sd, "
#define LEADERBOARD                                                                                                    \
    "max(suite) AS suite, max(setting) AS setting, max(method) AS method, max(policy) AS policy, max(selector) AS "    \
    "selector, max(selection) AS selection, max(task_order) AS \"order\", max(model) AS model, "                       \
    "substr(suite_hash, 1, 8) AS configuration, count(*) AS runs, " SPREAD("transfer") SPREAD("average")               \
        SPREAD("last") "avg(forgetting) AS forgetting, avg(gain) AS gain "
#define BEST_FIRST "GROUP BY suite_hash ORDER BY avg(last) DESC, suite_hash"

/* Keys in which configurations that are called the same differ, with one of their values; a row's name first, for it says most. */
#define TWIN_KEYS                                                                                                      \
    ", called AS (SELECT min(run) AS run, json_array(suite, setting, method, policy, selector, selection, "            \
    "task_order, "                                                                                                     \
    "model) AS name FROM chosen WHERE status = 'finished' GROUP BY suite_hash), twins AS (SELECT name, count(*) AS "   \
    "configurations FROM called GROUP BY name HAVING count(*) > 1) SELECT DISTINCT key, value FROM (SELECT key, "      \
    "max(value) AS value FROM twins JOIN called USING (name) JOIN settings USING (run) GROUP BY name, key HAVING "     \
    "count(DISTINCT value) > 1 OR count(*) < configurations) GROUP BY key ORDER BY key <> 'run.row', key"

enum { TWIN_KEYS_MOST = 4 };

/* Where only contents differ, the paths lead to them. */
static bool tells_apart(const struct query_filter *filter, const char *key, const char *value)
{
    return strcmp(key, "run.row") == 0 || strncmp(key, "model.", 6) == 0 || strcmp(key, "data.root") == 0 ||
           filter->incidental == NULL || !filter->incidental(key, value);
}

/* The settings to show: those that were asked for, or what tells configurations apart. */
static status choose_settings(struct store *store, const struct query_filter *filter, struct text *by,
                              struct error *error)
{
    struct table keys = {0};
    size_t count = 0;
    if (filter->by != NULL) {
        text_add(by, "%s", filter->by);
        return OK;
    }
    status result = query_answer_sql(store, CHOSEN TWIN_KEYS, filter, &keys, error);
    for (size_t row = 0; result == OK && row < table_rows(&keys) && count < TWIN_KEYS_MOST; row++) {
        const char *key = table_cell_at(&keys, row, 0)->text;
        const struct table_cell *value = table_cell_at(&keys, row, 1);
        if (tells_apart(filter, key, value->kind == CELL_TEXT ? value->text : ""))
            text_add(by, "%s%s", count++ > 0 ? "," : "", key);
    }
    table_free(&keys);
    return result;
}

static status answer_leaderboard(struct store *store, const struct query_filter *filter, struct table *table,
                                 struct error *error)
{
    struct text sql = {0}, by = {0};
    status result = choose_settings(store, filter, &by, error);
    text_add(&sql, CHOSEN "SELECT %s", filter->dataset ? "name, " : "");
    NEXT(result, query_add_settings(store, by.data, &sql, error));
    text_add(&sql, LEADERBOARD "FROM chosen JOIN %s WHERE status = 'finished' %s " BEST_FIRST,
             filter->dataset ? "task_metrics USING (run) JOIN tasks USING (run, task)" : "metrics USING (run)",
             filter->dataset ? "AND name = ?11" : "");
    if (result == OK)
        result = sql.failed || by.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store))
                                         : query_answer_sql(store, sql.data, filter, table, error);
    text_free(&sql);
    text_free(&by);
    take_roots(table);
    return result;
}

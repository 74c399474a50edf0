#include "results/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "results/metrics.h"
#include "results/query/internal.h"
#include "results/query/question.h"
#include "results/statistics/bootstrap.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(compare_stages);

#define NAMES_SHOWN 12 /* groups that a message lists */

/* A comparison in the making. Parts of SQL files, in the order of work(), lead from the table `chosen` to the answer by temporary
 * tables. */
struct compare {
    struct store *store;
    const struct comparison_request *request;
    struct comparison *result;
    struct text metrics; /* "transfer|last" */
};

/* A part of stages.sql or answers.sql. */
static status run_stage(const struct compare *c, const char *name, struct error *error)
{
    SCOPED(text_free) struct text sql = {0};
    metrics_expand(&sql, embedded_text(compare_stages, name), c->metrics.data);
    return database_execute(c->store->database, sql.data, error);
}

/* --- What is asked --- */

/* What is asked twice would be tested twice, and the correction for the family would count it twice. */
static status check_once(const char *what, const char *const *words, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(words[i], words[k]) == 0)
                return error_set(error, ERROR_ARGUMENT, "compare: %s \"%s\" is named twice; expected each once", what,
                                 words[i]);
    return OK;
}

/* What is primary is asked for; effects of factors are of two, over seeds that all groups have. */
static status check_design(const struct comparison_request *request, struct error *error)
{
    bool asked = request->primary == NULL || request->metric_count == 0;
    for (size_t i = 0; i < request->metric_count; i++)
        asked |= request->primary != NULL && strcmp(request->primary, request->metrics[i]) == 0;
    if (!asked)
        return error_set(error, ERROR_ARGUMENT,
                         "compare: the primary metric \"%.60s\" is not asked for; expected one of "
                         "--metric",
                         request->primary);
    if (request->factors && request->by_count != 2)
        return error_set(error, ERROR_ARGUMENT,
                         "compare: expected two factors, found %zu: name two settings, such as "
                         "merge.policy,adapter.freeze_top_k",
                         request->by_count);
    if (request->factors && request->unpaired)
        return error_set(error, ERROR_ARGUMENT,
                         "compare: effects of factors are taken within seeds; expected factors or "
                         "unpaired runs, found both");
    return OK;
}

static status check_request(struct store *store, const struct comparison_request *request, struct error *error)
{
    if (request->by_count == 0)
        return error_set(error, ERROR_ARGUMENT, "compare: expected something to compare by, found none");
    TRY(check_once("by", request->by, request->by_count, error));
    TRY(check_once("metric", request->metrics, request->metric_count, error));
    TRY(check_design(request, error));
    return query_check_filter(store, &request->filter, error);
}

/* `request`, which SQL reads, what to compare by, and the groups asked for. */
static status note_request(const struct compare *c, struct error *error)
{
    const struct comparison_request *r = c->request;
    struct database *database = c->store->database;
    TRY(database_run(database, "INSERT INTO request VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, true)",
                     VALUES(value_text(r->filter.status ? r->filter.status : "finished"), value_text(r->filter.dataset),
                            value_real(r->detect), value_integer((int64_t)r->seed), value_text(r->baseline),
                            value_integer(r->detail != COMPARE_MEANS),
                            r->equivalence > 0 ? value_real(r->equivalence) : value_null(), value_integer(r->unpaired),
                            value_text(r->primary), value_integer(r->factors)),
                     error));
    for (size_t i = 0; i < r->by_count; i++)
        TRY(database_run(database, "INSERT INTO asked (key) VALUES (?1)", VALUES(value_text(r->by[i])), error));
    return OK;
}

static status check_chosen(const struct compare *c, struct error *error)
{
    int64_t all, runs;
    TRY(database_integer(c->store->database, "SELECT count(*) FROM chosen", &all, error));
    TRY(database_integer(c->store->database, "SELECT count(*) FROM chosen WHERE status = (SELECT status FROM request)",
                         &runs, error));
    if (all == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: no run to compare: none fits; the query `runs` lists those there are",
                         store_path(c->store));
    return runs > 0 ? OK
                    : error_set(error, ERROR_ARGUMENT, "%s: no run to compare: %lld fit%s, but none is finished",
                                store_path(c->store), (long long)all, all == 1 ? "s" : "");
}

/* --- Names that are unknown --- */

/* ERROR_ARGUMENT, as «what "word" (did you mean …?); expected …», where a query's first column lacks the word. expected
 * NULL: its names, where they are few. */
static status check_word(const struct compare *c, const char *what, const char *word, const char *sql,
                         const char *expected, struct error *error)
{
    SCOPED(table_free) struct table names = {0};
    SCOPED(text_free) struct text few = {0};
    TRY(query_sql(c->store, sql, &names, error));
    size_t count = table_rows(&names);
    OWNED const char **name = xcalloc(count, sizeof *name);
    bool known = false;
    for (size_t i = 0; i < count; i++) {
        name[i] = table_cell_at(&names, i, 0)->text;
        known |= strcmp(name[i], word) == 0;
        if (count <= NAMES_SHOWN)
            text_add(&few, strchr(name[i], ',') ? "%s\"%s\"" : "%s%s", i ? ", " : "one of: ", name[i]);
    }
    if (count > NAMES_SHOWN)
        text_add(&few, "one of %zu groups, from \"%s\" to \"%s\"", count, name[0], name[count - 1]);
    const char *near = nearest_word(word, name, count);
    if (!known)
        error_set(error, ERROR_ARGUMENT, "compare%s \"%.60s\"%s%s%s; expected %s", what, word,
                  near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "",
                  expected ? expected : few.data);
    return known ? OK : ERROR_ARGUMENT;
}

/* What to compare by is a setting that no run has, or one that decides nothing. */
static status refuse_by(void *compare, struct statement *row, struct error *error)
{
    const char *key = statement_text(row, 0);
    if (statement_integer(row, 1))
        return error_set(error, ERROR_ARGUMENT,
                         "compare by %s: it says how a run is computed, not what; expected a setting that decides the "
                         "numbers",
                         key);
    return check_word(compare, " by: no run has a setting", key,
                      "SELECT DISTINCT name FROM dimension UNION ALL SELECT key FROM settings WHERE run = (SELECT run "
                      "FROM configuration)",
                      "policy, method, selector, setting, order, model, suite, row, or a key of the suite such as "
                      "merge.every",
                      error);
}

static status check_by(const struct compare *c, struct error *error)
{
    return database_each(c->store->database,
                         "SELECT key, max(value IS NOT NULL) FROM asked JOIN told USING (key) "
                         "WHERE key NOT IN (SELECT name FROM dimension) GROUP BY place "
                         "HAVING NOT max(value IS NOT NULL AND NOT idle) ORDER BY place",
                         NO_VALUES, refuse_by, (void *)c, error);
}

#define BARE "replace(replace(base, ',', ''), ' ', '')"

/* Notes the group whose name is the longest that the words from `first` on make, and counts its words. */
static status note_group(const struct compare *c, size_t first, size_t *words, struct error *error)
{
    struct database *database = c->store->database;
    SCOPED(text_free) struct text name = {0};
    size_t size = 0;
    *words = 0;
    for (size_t i = first; i < c->request->only_count; i++) {
        int64_t known = 0;
        text_add(&name, "%s", c->request->only[i]);
        TRY(database_ask(database, "SELECT count(*) FROM configuration WHERE " BARE " = ?1",
                         VALUES(value_text(name.data)), &known, error));
        if (known > 0)
            *words = i - first + 1, size = name.size;
    }
    name.data[size] = 0;
    return database_run(database, "INSERT INTO only_group SELECT base FROM configuration WHERE " BARE " = ?1",
                        VALUES(value_text(name.data)), error);
}

/* The groups asked for need a configuration each. A name with commas or spaces comes as several words. */
static status check_asked(const struct compare *c, struct error *error)
{
    for (size_t i = 0, words; i < c->request->only_count; i += words) {
        TRY(note_group(c, i, &words, error));
        if (words == 0)
            return check_word(c, ": unknown group", c->request->only[i],
                              "SELECT base FROM configuration GROUP BY base ORDER BY min(configuration)", NULL, error);
    }
    return OK;
}

static status check_baseline(const struct compare *c, struct error *error)
{
    const char *baseline = c->request->baseline;
    if (!baseline || strcmp(baseline, COMPARE_ALL_PAIRS) == 0)
        return OK;
    return check_word(c, ": unknown baseline", baseline, "SELECT DISTINCT name FROM configuration ORDER BY name", NULL,
                      error);
}

/* Fills `metric`, in the order asked for. */
static status note_metrics(struct compare *c, struct error *error)
{
    const struct comparison_request *r = c->request;
    struct database *database = c->store->database;
    SCOPED(table_free) struct table names = {0};
#define INSERT(place, where)                                                                                           \
    "INSERT INTO metric SELECT " place ", name, title, best = 'lowest', low, high FROM metric_list WHERE " where
    if (r->metric_count == 0)
        TRY(database_execute(
            database, INSERT("row_number() OVER (ORDER BY place) - 1", "tags LIKE '%main%' ORDER BY place"), error));
    for (size_t i = 0; i < r->metric_count; i++) {
        TRY(check_word(c, ": unknown metric", r->metrics[i], "SELECT name FROM metric_list ORDER BY place", NULL,
                       error));
        TRY(database_run(database, INSERT("?1", "name = ?2"),
                         VALUES(value_integer((int64_t)i), value_text(r->metrics[i])), error));
    }
    TRY(query_sql(c->store, "SELECT group_concat(name, '|') FROM metric", &names, error));
    text_add(&c->metrics, "%s", table_cell_at(&names, 0, 0)->text);
    return OK;
}

/* --- Images ---
 * Groups image by image after the last task: which images one alone has right, what went wrong where predictions were
 * kept, and the bootstrap over seeds and images. */

/* Two groups' seeds and tasks; the columns of the other's run follow the baseline's. */
#define ROWS                                                                                                           \
    "SELECT two, dataset, seed, images, count(*) OVER (PARTITION BY two, dataset), run_a, task_a, after_a, routed_a, " \
    "run_b, task_b, after_b, routed_b FROM both JOIN both_seed USING (two) WHERE kept ORDER BY two, dataset, seed"

enum { TWO, DATASET, SEED, IMAGES, SEEDS, SIDE, RUN = 0, TASK, AFTER_TASK, ROUTED, SIDE_COLUMNS };

struct looking {
    const struct compare *c;
    struct statement *rows, *looked, *bounds;
    int64_t two;
    size_t tasks, seeds, seed; /* of the two: tasks and seeds, and seeds of the last task so far */
    struct looked_task {
        int64_t dataset;
        size_t images;
        int8_t *difference; /* [seeds, images] */
    } * task;
};

/* The causes of errors, in percent; null where predictions were not kept, or there is no selector. */
static void find_errors(const struct per_image *images, bool routed, int64_t task, struct value errors[2])
{
    size_t count[2] = {0, 0}; /* wrong router; right router but wrong class */
    bool known = routed && images->kind == PER_IMAGE_PREDICTIONS;
    for (size_t i = 0; known && i < images->images; i++)
        count[images->router[i] == task] += !images->right[i];
    for (size_t i = 0; i < 2; i++)
        errors[i] = known ? value_real(100.0 * (double)count[i] / (double)images->images) : value_null();
}

static status read_side(const struct looking *l, size_t side, struct per_image *images, struct value errors[2],
                        struct error *error)
{
    size_t first = SIDE + side * SIDE_COLUMNS, expected = (size_t)statement_integer(l->rows, IMAGES);
    int64_t run = statement_integer(l->rows, first + RUN), task = statement_integer(l->rows, first + TASK);
    TRY(store_read_per_image(l->c->store, run, statement_integer(l->rows, first + AFTER_TASK), task, images, error));
    if (images->images != expected)
        return error_set(error, ERROR_FORMAT,
                         "%s: run %" PRId64 ", task %" PRId64 ": expected the results of %zu test images, found %zu",
                         store_path(l->c->store), run, task, expected, images->images);
    find_errors(images, statement_integer(l->rows, first + ROUTED), task, errors);
    return OK;
}

/* One seed of a task: both sides are read before anything is as large as the file says that they are. */
static status read_seed(struct looking *l, int64_t dataset, struct per_image side[2], struct error *error)
{
    struct value errors[2][2];
    int64_t only[2] = {0, 0};
    TRY(read_side(l, 0, &side[0], errors[0], error));
    TRY(read_side(l, 1, &side[1], errors[1], error));
    size_t images = side[0].images;
    if (l->tasks == 0 || l->task[l->tasks - 1].dataset != dataset) {
        GROW(l->task, l->tasks);
        l->seeds = (size_t)statement_integer(l->rows, SEEDS);
        l->seed = 0;
        l->task[l->tasks++] = (struct looked_task){dataset, images, xcalloc(l->seeds, images)};
    }
    int8_t *difference = l->task[l->tasks - 1].difference + l->seed++ * images;
    for (size_t i = 0; i < images; i++) {
        difference[i] = (int8_t)(side[1].right[i] - side[0].right[i]);
        only[difference[i] > 0] += difference[i] != 0;
    }
    return statement_run(l->looked,
                         VALUES(value_integer(l->two), value_integer(dataset), statement_value(l->rows, SEED),
                                value_integer((int64_t)images), value_integer(only[0]), value_integer(only[1]),
                                errors[0][0], errors[1][0], errors[0][1], errors[1][1]),
                         error);
}

/* Draws for the two whose rows end, if there are any. */
static status end_two(struct looking *l, struct error *error)
{
    const struct comparison_request *request = l->c->request;
    OWNED struct bootstrap_task *task = xcalloc(l->tasks, sizeof *task);
    OWNED struct bootstrap_interval *interval = xcalloc(l->tasks + 1, sizeof *interval);
    for (size_t i = 0; i < l->tasks; i++)
        task[i] = (struct bootstrap_task){l->task[i].images, l->task[i].difference};
    if (l->tasks > 0)
        bootstrap_seeds_and_images(task, l->tasks, l->seeds,
                                   &(struct bootstrap_plan){.seed = request->seed, .draws = request->draws}, interval);
    for (size_t i = 0; l->tasks > 0 && i <= l->tasks; i++)
        TRY(statement_run(l->bounds,
                          VALUES(value_integer(l->two), value_integer(i < l->tasks ? l->task[i].dataset : 0),
                                 value_real(interval[i].estimate), value_real(interval[i].low),
                                 value_real(interval[i].high)),
                          error));
    return OK;
}

static void forget_tasks(struct looking *l)
{
    for (size_t i = 0; i < l->tasks; i++)
        free(l->task[i].difference);
    free(l->task);
    l->task = NULL;
    l->tasks = 0;
}

static status look(void *context, struct statement *row, struct error *error)
{
    struct looking *l = context;
    struct per_image side[2] = {{.kind = PER_IMAGE_NONE}, {.kind = PER_IMAGE_NONE}};
    l->rows = row;
    if (statement_integer(row, TWO) != l->two) {
        TRY(end_two(l, error));
        forget_tasks(l);
    }
    l->two = statement_integer(row, TWO);
    status result = read_seed(l, statement_integer(row, DATASET), side, error);
    per_image_free(&side[0]);
    per_image_free(&side[1]);
    return result;
}

static status compare_images(const struct compare *c, struct error *error)
{
    struct database *database = c->store->database;
    struct looking l = {.c = c};
    status result = statement_open(&l.looked, database,
                                   "INSERT INTO looked VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", error);
    NEXT(result, statement_open(&l.bounds, database, "INSERT INTO bounds VALUES (?1, ?2, ?3, ?4, ?5)", error));
    NEXT(result, database_each(database, ROWS, NO_VALUES, look, &l, error));
    NEXT(result, end_two(&l, error));
    forget_tasks(&l);
    statement_close(l.looked);
    statement_close(l.bounds);
    return result;
}

/* --- All of it --- */

/* Removes the connection's temporary tables that an earlier comparison made. */
static status forget(struct store *store, struct error *error)
{
    SCOPED(table_free) struct table drops = {0};
    TRY(database_execute(store->database, "CREATE TEMP TABLE IF NOT EXISTS made (name TEXT)", error));
    TRY(query_sql(store,
                  "SELECT coalesce(group_concat('DROP ' || type || ' temp.' || name, ';'), '') "
                  "FROM temp.sqlite_master JOIN made USING (name) WHERE type IN ('table', 'view')",
                  &drops, error));
    return database_execute(store->database, table_cell_at(&drops, 0, 0)->text, error);
}

static status work(struct compare *c, struct error *error)
{
    struct text by = {0};
    int64_t configurations;
    for (size_t i = 0; i < c->request->by_count; i++)
        text_add(&by, "%s%s", i ? ", " : "", c->request->by[i]);
    c->result->by = by.data;
    TRY(forget(c->store, error));
    TRY(database_execute(c->store->database, "DELETE FROM made; INSERT INTO made SELECT name FROM temp.sqlite_master",
                         error));
    TRY(query_choose(c->store, &c->request->filter, error));
    TRY(query_label(c->store, error));
    TRY(run_stage(c, "request.sql", error));
    TRY(note_request(c, error));
    TRY(note_metrics(c, error));
    TRY(check_chosen(c, error));
    TRY(run_stage(c, "runs.sql", error));
    TRY(query_contents(c->store, "SELECT configuration, run FROM configuration", error));
    TRY(run_stage(c, "settings.sql", error));
    TRY(check_by(c, error));
    TRY(run_stage(c, "measure.sql", error));
    TRY(check_asked(c, error));
    TRY(run_stage(c, "contexts.sql", error));
    TRY(database_integer(c->store->database, "SELECT count(*) FROM configuration", &configurations, error));
    if (configurations == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: no run to compare: each accuracy matrix has holes",
                         store_path(c->store));
    TRY(check_baseline(c, error));
    TRY(run_stage(c, "questions.sql", error));
    TRY(run_stage(c, "answers.sql", error));
    TRY(run_stage(c, "words.sql", error));
    if (c->request->detail == COMPARE_IMAGES) {
        TRY(run_stage(c, "images.sql", error));
        TRY(compare_images(c, error));
        TRY(run_stage(c, "images-answer.sql", error));
    }
    TRY(run_stage(c, "parts.sql", error));
    return database_execute(c->store->database,
                            "CREATE TEMP TABLE before AS SELECT name FROM made; DELETE FROM made; INSERT INTO made "
                            "SELECT name FROM temp.sqlite_master WHERE name NOT IN (SELECT name FROM before)",
                            error);
}

status compare_runs(struct store *store, const struct comparison_request *request, struct comparison *comparison,
                    struct error *error)
{
    *comparison = (struct comparison){.store = store};
    TRY(check_request(store, request, error));
    struct compare c = {.store = store, .request = request, .result = comparison};
    /* One state, though others may be writing; a transaction that is open already, a report's, stays so. */
    TRY(database_execute(store->database, "SAVEPOINT comparison", error));
    status result = work(&c, error);
    database_execute(store->database,
                     result == OK ? "RELEASE comparison" : "ROLLBACK TO comparison; RELEASE comparison", NULL);
    text_free(&c.metrics);
    if (result != OK)
        comparison_free(comparison);
    return result;
}

void comparison_free(struct comparison *comparison)
{
    free(comparison->by);
    *comparison = (struct comparison){0};
}

/* --- The parts as tables: each is a view of answers.sql, shown as a question's answer is --- */

static const char *const views[] = {
    [COMPARE_CONTEXTS] = "contexts", [COMPARE_GROUPS] = "groups",    [COMPARE_PAIRS] = "pairs",
    [COMPARE_DETAILS] = "details",   [COMPARE_PER_IMAGE] = "images", [COMPARE_DISCORDANCE] = "discordance",
    [COMPARE_WORDS] = "words",       [COMPARE_NOTES] = "notes"};

#define HEAD                                                                                                           \
    "-- column: context,contexts,factor,dataset,runs optional\n"                                                       \
    "-- column: low90,high90,tasks_low,tasks_high,above,below,seeds_needed,seeds_low,seeds_high,"                      \
    "router_errors_baseline,router_errors,class_errors_baseline,class_errors,r,effect,median optional extra 2\n"       \
    "-- column: p_seeds,p_equal,p_wilcoxon optional extra\n"                                                           \
    "-- column: p_t extra\n"                                                                                           \
    "-- column: mean,difference,sd,low,high 2\n"                                                                       \
    "-- column: block hidden\n"

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
    SCOPED(table_free) struct table rows = {0};
    SCOPED(question_free) struct question shown = {0};
    snprintf(sql, sizeof sql, "SELECT * FROM answer_%s", views[part]);
    TRY(question_parse(&shown, views[part], views[part], part == COMPARE_GROUPS ? HEAD "-- block: block\n" : HEAD,
                       error));
    TRY(query_sql(comparison->store, sql, &rows, error));
    name_column(&rows, comparison->by);
    TRY(query_show(&shown, &rows, 0, table_rows(&rows), NULL, table, error));
    size_t compared = query_column(table, comparison->by);
    if (compared != SIZE_MAX)
        table->column[compared].extra = 0;
    return OK;
}

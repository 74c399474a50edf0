#include "results/compare.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "results/compare/internal.h"
#include "results/metrics.h"
#include "results/query/internal.h"

EMBEDDED_FILES(compare_stages);

#define NAMES_SHOWN 12 /* groups that a message lists */

/* A part of stages.sql or answers.sql. */
static status run_stage(const struct compare *c, const char *name, struct error *error)
{
    struct text sql = {0};
    metrics_expand(&sql, embedded_text(compare_stages, name), c->metrics.data);
    status result = database_execute(c->store->database, sql.data, error);
    text_free(&sql);
    return result;
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
    struct table names = {0};
    struct text few = {0};
    TRY(query_sql(c->store, sql, &names, error));
    size_t count = table_rows(&names);
    const char **name = xcalloc(count, sizeof *name);
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
    text_free(&few);
    free(name);
    table_free(&names);
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
    struct text name = {0};
    status result = OK;
    size_t size = 0;
    *words = 0;
    for (size_t i = first; i < c->request->only_count; i++) {
        int64_t known = 0;
        text_add(&name, "%s", c->request->only[i]);
        NEXT(result, database_ask(database, "SELECT count(*) FROM configuration WHERE " BARE " = ?1",
                                  VALUES(value_text(name.data)), &known, error));
        if (known > 0)
            *words = i - first + 1, size = name.size;
    }
    name.data[size] = 0;
    NEXT(result, database_run(database, "INSERT INTO only_group SELECT base FROM configuration WHERE " BARE " = ?1",
                              VALUES(value_text(name.data)), error));
    text_free(&name);
    return result;
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
    struct table names = {0};
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
    status result = query_sql(c->store, "SELECT group_concat(name, '|') FROM metric", &names, error);
    if (result == OK)
        text_add(&c->metrics, "%s", table_cell_at(&names, 0, 0)->text);
    table_free(&names);
    return result;
}

/* --- All of it --- */

/* Removes the connection's temporary tables that an earlier comparison made. */
static status forget(struct store *store, struct error *error)
{
    struct table drops = {0};
    TRY(database_execute(store->database, "CREATE TEMP TABLE IF NOT EXISTS made (name TEXT)", error));
    status result = query_sql(store,
                              "SELECT coalesce(group_concat('DROP ' || type || ' temp.' || name, ';'), '') "
                              "FROM temp.sqlite_master JOIN made USING (name) WHERE type IN ('table', 'view')",
                              &drops, error);
    NEXT(result, database_execute(store->database, table_cell_at(&drops, 0, 0)->text, error));
    table_free(&drops);
    return result;
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
    if (strcmp(c->result->by, "row") == 0)
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
    TRY(compare_say(c, error));
    if (c->request->detail == COMPARE_IMAGES) {
        TRY(run_stage(c, "images.sql", error));
        TRY(compare_images(c, error));
        TRY(run_stage(c, "images-answer.sql", error));
    }
    TRY(run_stage(c, "parts.sql", error));
    TRY(database_execute(c->store->database,
                         "CREATE TEMP TABLE before AS SELECT name FROM made; DELETE FROM made; INSERT INTO made "
                         "SELECT name FROM temp.sqlite_master WHERE name NOT IN (SELECT name FROM before)",
                         error));
    return OK;
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

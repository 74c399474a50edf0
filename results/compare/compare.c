#include "results/compare.h"

#include <stdlib.h>
#include <string.h>

#include "core/embedded.h"
#include "core/text.h"
#include "results/compare/internal.h"
#include "results/metrics.h"
#include "results/query/internal.h"

EMBEDDED_FILES(compare_stages);

#define NAMES_SHOWN 12 /* groups that a message lists */

/* One of the SQL files of this folder. */
static status run_stage(const struct compare *c, const char *name, struct error *error)
{
    const struct embedded_file *file = compare_stages;
    while (strcmp(file->name, name) != 0)
        file++;
    return database_execute(c->store->database, (const char *)file->data, error);
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

static status check_request(struct store *store, const struct comparison_request *request, struct error *error)
{
    if (request->by_count == 0 || request->metric_count == 0)
        return error_set(error, ERROR_ARGUMENT, "compare: expected something to compare by and a metric, found none");
    TRY(check_once("by", request->by, request->by_count, error));
    TRY(check_once("metric", request->metrics, request->metric_count, error));
    size_t count;
    const struct metric *metrics = metric_list(&count);
    const char **names = calloc(count, sizeof *names);
    if (!names)
        return error_set(error, ERROR_MEMORY, "compare: out of memory");
    for (size_t i = 0; i < count; i++)
        names[i] = metrics[i].name;
    status result = OK;
    for (size_t i = 0; i < request->metric_count && result == OK; i++)
        if (!metric_find(request->metrics[i]))
            result = error_unknown_word(error, "compare", "metric", request->metrics[i], names, count);
    free(names);
    return result == OK ? query_check_filter(store, &request->filter, error) : result;
}

/* `request`, which SQL reads, and the groups asked for. */
static status note_request(const struct compare *c, struct error *error)
{
    const struct comparison_request *r = c->request;
    TRY(database_run(c->store->database, "INSERT INTO request VALUES (?1, ?2, ?3, ?4, ?5, ?6, true)",
                     VALUES(value_text(r->filter.status ? r->filter.status : "finished"), value_text(r->filter.dataset),
                            value_real(r->detect), value_integer((int64_t)r->seed), value_text(r->baseline),
                            value_integer(r->detail != COMPARE_MEANS)),
                     error));
    for (size_t i = 0; i < r->only_count; i++)
        TRY(database_run(c->store->database, "INSERT INTO only_group VALUES (?1)", VALUES(value_text(r->only[i])),
                         error));
    return OK;
}

static status check_chosen(const struct compare *c, struct error *error)
{
    size_t all, runs;
    TRY(compare_count(c, "SELECT count(*) FROM chosen", &all, error));
    TRY(compare_count(c, "SELECT count(*) FROM chosen WHERE status = (SELECT status FROM request)", &runs, error));
    if (all == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: no run to compare: none fits; the query `runs` lists those there are",
                         store_path(c->store));
    if (runs == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: no run to compare: %zu fit%s, but none is finished",
                         store_path(c->store), all, all == 1 ? "s" : "");
    return OK;
}

/* --- Groups that are named --- */

/* The first column; the caller frees with table_free. names [rows]: borrowed from it. */
static status read_names(const struct compare *c, const char *sql, struct table *table, const char ***names,
                         struct error *error)
{
    TRY(query_sql(c->store, sql, table, error));
    *names = calloc(table_rows(table) + 1, sizeof **names);
    for (size_t i = 0; *names && i < table_rows(table); i++)
        (*names)[i] = table_cell_at(table, i, 0)->text;
    return *names ? OK : compare_no_memory(c, error);
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* A requested group without a configuration is an error. */
static status check_asked(const struct compare *c, struct error *error)
{
    struct table table = {0};
    const char **names = NULL;
    status result = read_names(c, "SELECT base FROM configuration GROUP BY base ORDER BY min(configuration)", &table,
                               &names, error);
    for (size_t i = 0; result == OK && i < c->request->only_count; i++)
        if (!is_among(c->request->only[i], names, table_rows(&table)))
            result = error_unknown_word(error, "compare", "group", c->request->only[i], names, table_rows(&table));
    table_free(&table);
    free(names);
    return result;
}

static status unknown_baseline(const char *baseline, const char *const *names, size_t count, struct error *error)
{
    const char *nearest = nearest_word(baseline, names, count);
    if (count <= NAMES_SHOWN)
        return error_unknown_word(error, "compare", "baseline", baseline, names, count);
    return error_set(error, ERROR_ARGUMENT,
                     "compare: unknown baseline \"%.60s\"%s%s%s; expected one of %zu groups, from \"%s\" to \"%s\"",
                     baseline, nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "", count,
                     names[0], names[count - 1]);
}

static status check_baseline(const struct compare *c, struct error *error)
{
    const char *baseline = c->request->baseline;
    if (!baseline || strcmp(baseline, COMPARE_ALL_PAIRS) == 0)
        return OK;
    struct table table = {0};
    const char **names = NULL;
    status result = read_names(c, "SELECT DISTINCT name FROM configuration ORDER BY name", &table, &names, error);
    if (result == OK && !is_among(baseline, names, table_rows(&table)))
        result = unknown_baseline(baseline, names, table_rows(&table), error);
    table_free(&table);
    free(names);
    return result;
}

/* --- All of it --- */

/* Removes the connection's temporary tables: an earlier comparison's. */
static status forget(struct store *store, struct error *error)
{
    struct table table = {0};
    status result = query_sql(store,
                              "SELECT coalesce(group_concat('DROP ' || type || ' temp.' || name, ';'), '') "
                              "FROM temp.sqlite_master WHERE name IN ('request', 'only_group', 'note', "
                              "'compared', 'configuration', 'told', 'apart', 'dataset', 'measured', 'metric', 'words', "
                              "'looked', 'bounds', 'imaged', 'discordance', 'shown', 'left_out', 'varied', 'context', "
                              "'observed', 'sample', 'has', 'planned', 'two', 'difference', 'tested', 'pair', "
                              "'overview', 'both', 'both_seed', 'lacking')",
                              &table, error);
    NEXT(result, database_execute(store->database, table_cell_at(&table, 0, 0)->text, error));
    table_free(&table);
    return result;
}

static status compare_groups(const struct compare *c, struct error *error)
{
    size_t configurations;
    TRY(check_asked(c, error));
    TRY(run_stage(c, "contexts.sql", error));
    TRY(compare_count(c, "SELECT count(*) FROM configuration", &configurations, error));
    if (configurations == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: no run to compare: each accuracy matrix has holes",
                         store_path(c->store));
    TRY(check_baseline(c, error));
    TRY(run_stage(c, "baseline.sql", error));
    TRY(run_stage(c, "pairs.sql", error));
    return compare_say(c, error);
}

static status work(const struct compare *c, struct error *error)
{
    struct text by = {0};
    for (size_t i = 0; i < c->request->by_count; i++)
        text_add(&by, "%s%s", i ? ", " : "", c->request->by[i]);
    c->result->by = by.data;
    if (by.failed)
        return compare_no_memory(c, error);
    TRY(forget(c->store, error));
    TRY(query_choose(c->store, &c->request->filter, error));
    TRY(run_stage(c, "request.sql", error));
    TRY(note_request(c, error));
    TRY(check_chosen(c, error));
    TRY(run_stage(c, "runs.sql", error));
    TRY(compare_tell(c, error));
    TRY(run_stage(c, "settings.sql", error));
    TRY(compare_measure(c, error));
    TRY(compare_groups(c, error));
    if (c->request->detail == COMPARE_IMAGES) {
        TRY(run_stage(c, "images.sql", error));
        TRY(compare_images(c, error));
        TRY(run_stage(c, "images-answer.sql", error));
    }
    TRY(database_execute(c->store->database, "INSERT INTO shown SELECT grp, context, context, name FROM configuration",
                         error));
    TRY(compare_count(c, "SELECT max(context) FROM shown", &c->result->contexts, error));
    return compare_count(c, "SELECT count(*) FROM shown", &c->result->groups, error);
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
    if (result != OK)
        comparison_free(comparison);
    return result;
}

void comparison_free(struct comparison *comparison)
{
    free(comparison->by);
    *comparison = (struct comparison){0};
}

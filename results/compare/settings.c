/* What the configurations were told: their settings and the contents of what they read. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"
#include "core/text.h"
#include "results/compare/internal.h"
#include "results/store/contents.h"

/* The words that name a column of `runs`, and the suite keys behind them, separated by '|'. */
static const struct dimension {
    const char *name, *keys;
} dimensions[] = {
    {"policy", "merge.policy"},
    {"method", "method.name"},
    {"selector", "selector.kind"},
    {"setting", "data.shots|evaluation.label_space"},
    {"order", "data.order"},
    {"model", "model.weights|model.configuration|model.vocabulary|model.heads|model.activation"},
    {"suite", "*"},
    {"row", "*"}, /* of the suite: settings of any kind */
};

enum { DIMENSIONS = sizeof dimensions / sizeof *dimensions };

/* NULL for a suite key. */
static const struct dimension *find_dimension(const char *name)
{
    for (size_t i = 0; i < DIMENSIONS; i++)
        if (strcmp(dimensions[i].name, name) == 0)
            return &dimensions[i];
    return NULL;
}

static const char *keys_of(const char *name)
{
    const struct dimension *dimension = find_dimension(name);
    return dimension ? dimension->keys : name;
}

/* Whether a key is compared; a dataset's template decides its prompts. Other test images are never compared. */
static bool is_by(const struct comparison_request *request, const char *key)
{
    for (size_t i = 0; i < request->by_count && strcmp(key, CONTENTS_TESTS) != 0; i++) {
        const char *keys = keys_of(request->by[i]), *last = strrchr(keys, '.');
        if (strcmp(keys, "*") == 0 || text_has_word(keys, key) ||
            (strcmp(key, CONTENTS_PROMPTS) == 0 && last && strcmp(last, ".template") == 0))
            return true;
    }
    return false;
}

/* Whether a key belongs to a compared choice: the decay of a policy that has one, or a section that it decides on. */
static bool is_own(const struct comparison_request *request, const char *key)
{
    char section[32];
    snprintf(section, sizeof section, "%.*s", (int)strcspn(key, "."), key);
    for (size_t i = 0; i < request->by_count; i++) {
        const char *by = keys_of(request->by[i]), *dot = strchr(by, '.');
        if ((dot && strncmp(by, key, (size_t)(dot - by) + 1) == 0) ||
            (strcmp(by, "method.name") == 0 &&
             text_has_word("adapter|combine|merge|selector|tasks|training", section)) ||
            (strcmp(by, "merge.policy") == 0 && strcmp(section, "combine") == 0))
            return true;
    }
    return false;
}

/* Telling what configurations have other than the first one. */
struct telling {
    const struct compare *c;
    struct statement *insert;
};

/* A row of: configuration, key, value, whether it is the content of an input. */
static status tell(void *context, struct statement *row, struct error *error)
{
    const struct telling *t = context;
    const struct comparison_request *request = t->c->request;
    const char *key = statement_text(row, 1);
    struct value value = statement_value(row, 2);
    bool idle = request->filter.incidental && !statement_integer(row, 3) &&
                (value.kind == VALUE_NULL || request->filter.incidental(key, statement_text(row, 2)));
    return statement_run(t->insert,
                         VALUES(statement_value(row, 0), statement_value(row, 1), value, value_integer(idle),
                                value_integer(is_by(request, key)), value_integer(is_own(request, key))),
                         error);
}

static const char differing_sql[] =
    "SELECT configuration.configuration, keys.key, own.value, keys.content FROM (SELECT key, max(content) AS content "
    "FROM run_values GROUP BY key HAVING count(*) < (SELECT count(*) FROM configuration) OR min(value) <> max(value)) "
    "AS keys CROSS JOIN configuration LEFT JOIN run_values AS own ON own.key = keys.key "
    "AND own.place = configuration.configuration LEFT JOIN run_values AS first ON first.key = keys.key "
    "AND first.place = 1 WHERE configuration.configuration = 1 OR own.value IS NOT first.value";

struct names {
    char **name;
    size_t count;
};

static status take_name(void *context, struct statement *row, struct error *error)
{
    struct names *names = context;
    GROW(names->name, names->count);
    return statement_copy(row, 0, &names->name[names->count++], error);
}

/* A run has a hundred keys, too many for a message. */
static status unknown_key(const struct compare *c, const char *word, struct error *error)
{
    struct names names = {0};
    for (; names.count < DIMENSIONS; names.count++) {
        GROW(names.name, names.count);
        names.name[names.count] = xstrdup(dimensions[names.count].name);
    }
    status result = database_each(c->store->database, "SELECT key FROM run_values WHERE place = 1 ORDER BY key",
                                  NO_VALUES, take_name, &names, error);
    const char *nearest = nearest_word(word, (const char *const *)names.name, names.count);
    if (result == OK)
        result = error_set(
            error, ERROR_ARGUMENT,
            "compare by: no run has a setting \"%.60s\"%s%s%s; expected policy, method, selector, setting, order, "
            "model, suite, row, or a key of the suite such as merge.every",
            word, nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "");
    for (size_t i = 0; i < names.count; i++)
        free(names.name[i]);
    free(names.name);
    return result;
}

/* Tells what is compared, and that it is known and decides anything. */
static status tell_by(struct telling *t, const char *by, struct error *error)
{
    struct database *database = t->c->store->database;
    int64_t known = 0, decides;
    TRY(database_run(database, "INSERT INTO asked (key) VALUES (?1)", VALUES(value_text(by)), error));
    if (find_dimension(by))
        return OK;
    TRY(database_each(database,
                      "SELECT 1, key, value, content FROM (SELECT ?1 AS key) LEFT JOIN (SELECT * FROM run_values "
                      "WHERE place = 1) USING (key)",
                      VALUES(value_text(by)), tell, t, error));
    TRY(database_ask(database, "SELECT max(value IS NOT NULL) FROM told WHERE key = ?1", VALUES(value_text(by)), &known,
                     error));
    if (!known)
        return unknown_key(t->c, by, error);
    TRY(database_ask(database, "SELECT max(value IS NOT NULL AND NOT idle) FROM told WHERE key = ?1",
                     VALUES(value_text(by)), &decides, error));
    return decides
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "compare by %s: it says how a run is computed, not what; expected a setting that decides "
                           "the numbers",
                           by);
}

status compare_tell(const struct compare *c, struct error *error)
{
    struct telling t = {.c = c};
    struct database *database = c->store->database;
    TRY(contents_read(c->store, "SELECT configuration, run FROM configuration", error));
    TRY(statement_open(&t.insert, database, "INSERT OR IGNORE INTO told VALUES (?1, ?2, ?3, ?4, ?5, ?6)", error));
    status result = database_each(database, differing_sql, NO_VALUES, tell, &t, error);
    for (size_t i = 0; i < c->request->by_count; i++)
        NEXT(result, tell_by(&t, c->request->by[i], error));
    statement_close(t.insert);
    return result;
}

/* What the configurations were told: their settings and the contents of what they read. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/compare/internal.h"
#include "results/store/contents.h"
#include "results/store/setting_values.h"

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

/* Telling what a configuration has other than the first one, whose values are in first. */
struct telling {
    const struct compare *c;
    struct statement *insert;
    struct setting_values first;
    struct run_contents contents;
    int64_t configuration;
    status result;
    struct error *error;
};

static void tell(struct telling *t, int64_t configuration, const char *key, const char *value)
{
    const struct comparison_request *request = t->c->request;
    bool idle =
        request->filter.incidental && !contents_has_key(key) && (!value || request->filter.incidental(key, value));
    NEXT(t->result,
         statement_run(t->insert,
                       VALUES(value_integer(configuration), value_text(key), value_text(value), value_integer(idle),
                              value_integer(is_by(request, key)), value_integer(is_own(request, key))),
                       t->error));
}

static void tell_difference(void *context, const char *key, const char *first, const char *value)
{
    struct telling *t = context;
    tell(t, 1, key, first);
    tell(t, t->configuration, key, value);
}

static status tell_configuration(struct telling *t, int64_t run, struct error *error)
{
    struct setting_values values;
    status result = setting_values_read(&values, t->c->store, run, error);
    NEXT(result, contents_add(&t->contents, run, &values, error));
    if (result == OK && t->configuration > 1)
        setting_values_compare(&t->first, &values, tell_difference, t);
    if (result == OK && t->configuration == 1)
        t->first = values;
    else
        setting_values_free(&values);
    return result == OK ? t->result : result;
}

/* A run has a hundred keys, too many for a message. */
static status unknown_key(const char *name, const struct setting_values *values, struct error *error)
{
    const char **names = calloc(DIMENSIONS + values->count, sizeof *names);
    if (!names)
        return error_set(error, ERROR_MEMORY, "compare: out of memory");
    for (size_t i = 0; i < DIMENSIONS + values->count; i++)
        names[i] = i < DIMENSIONS ? dimensions[i].name : values->value[i - DIMENSIONS].key;
    const char *nearest = nearest_word(name, names, DIMENSIONS + values->count);
    error_set(error, ERROR_ARGUMENT,
              "compare by: no run has a setting \"%.60s\"%s%s%s; expected policy, method, selector, setting, order, "
              "model, suite, row, or a key of the suite such as merge.every",
              name, nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "");
    free(names);
    return ERROR_ARGUMENT;
}

/* Tells what is compared, and that it is known and decides anything. */
static status tell_by(struct telling *t, struct error *error)
{
    const struct comparison_request *request = t->c->request;
    for (size_t i = 0; i < request->by_count && t->result == OK; i++) {
        const char *by = request->by[i];
        struct statement *values;
        bool row = true;
        TRY(database_run(t->c->store->database, "INSERT INTO asked (key) VALUES (?1)", VALUES(value_text(by)), error));
        if (find_dimension(by))
            continue;
        tell(t, 1, by, setting_values_find(&t->first, by));
        TRY(statement_open(
            &values, t->c->store->database,
            "SELECT max(value IS NOT NULL), max(value IS NOT NULL AND NOT idle) FROM told WHERE key = ?1", error));
        NEXT(t->result, statement_bind(values, VALUES(value_text(by)), error));
        NEXT(t->result, statement_step(values, &row, error));
        bool known = row && statement_integer(values, 0), decides = row && statement_integer(values, 1);
        statement_close(values);
        if (t->result == OK && !known)
            return unknown_key(by, &t->first, error);
        if (t->result == OK && !decides)
            return error_set(error, ERROR_ARGUMENT,
                             "compare by %s: it says how a run is computed, not what; expected a setting that decides "
                             "the numbers",
                             by);
    }
    return t->result;
}

status compare_tell(const struct compare *c, struct error *error)
{
    struct telling t = {.c = c, .error = error};
    struct statement *runs = NULL;
    contents_begin(&t.contents, c->store);
    status result = statement_open(&t.insert, c->store->database,
                                   "INSERT OR IGNORE INTO told VALUES (?1, ?2, ?3, ?4, ?5, ?6)", error);
    NEXT(result, statement_open(&runs, c->store->database, "SELECT configuration, run FROM configuration", error));
    for (bool row; result == OK && (result = statement_step(runs, &row, error)) == OK && row;) {
        t.configuration = statement_integer(runs, 0);
        result = tell_configuration(&t, statement_integer(runs, 1), error);
    }
    NEXT(result, tell_by(&t, error));
    statement_close(runs);
    statement_close(t.insert);
    setting_values_free(&t.first);
    contents_end(&t.contents);
    return result;
}

/* What the configurations were told: their settings and the contents of what they read. */
#include "results/compare/internal.h"
#include "results/store/contents.h"
#include "results/store/setting_values.h"

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
    NEXT(t->result, statement_run(t->insert,
                                  VALUES(value_integer(configuration), value_text(key), value_text(value),
                                         value_integer(contents_has_key(key))),
                                  t->error));
}

static void tell_difference(void *context, const char *key, const char *first, const char *value)
{
    struct telling *t = context;
    tell(t, 1, key, first);
    tell(t, t->configuration, key, value);
}

static status tell_configuration(void *context, struct statement *row, struct error *error)
{
    struct telling *t = context;
    struct setting_values values;
    int64_t run = statement_integer(row, 1);
    t->configuration = statement_integer(row, 0);
    status result = setting_values_read(&values, t->c->store, run, error);
    NEXT(result, contents_add(&t->contents, run, &values, error));
    if (result == OK && t->configuration == 1) {
        t->first = values;
        return OK;
    }
    if (result == OK)
        setting_values_compare(&t->first, &values, tell_difference, t);
    setting_values_free(&values);
    return result == OK ? t->result : result;
}

status compare_tell(const struct compare *c, struct error *error)
{
    const struct comparison_request *request = c->request;
    struct database *database = c->store->database;
    struct telling t = {.c = c, .error = error};
    contents_begin(&t.contents, c->store);
    status result = statement_open(
        &t.insert, database, "INSERT OR IGNORE INTO told (configuration, key, value, content) VALUES (?1, ?2, ?3, ?4)",
        error);
    NEXT(result, database_each(database, "SELECT configuration, run FROM configuration", NO_VALUES, tell_configuration,
                               &t, error));
    for (size_t i = 0; i < request->by_count && result == OK; i++) {
        tell(&t, 1, request->by[i], setting_values_find(&t.first, request->by[i]));
        result = t.result;
    }
    statement_close(t.insert);
    setting_values_free(&t.first);
    contents_end(&t.contents);
    return result;
}

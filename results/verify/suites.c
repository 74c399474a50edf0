/* Checks that a run's settings, its suite's text and settings_hash say the same. */
#include <stdlib.h>

#include "results/verify/internal.h"

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct setting_row *)a)->key, ((const struct setting_row *)b)->key);
}

static void suite_free(struct verify_suite *suite)
{
    for (size_t i = 0; i < suite->count; i++) {
        free((char *)suite->settings[i].key);
        free((char *)suite->settings[i].value);
    }
    free(suite->settings);
    *suite = (struct verify_suite){0};
}

static bool same_value(struct statement *stored, const struct setting_row *said)
{
    struct value value = statement_value(stored, 1);
    return strcmp(statement_text(stored, 2), said->type) == 0 &&
           (value.kind == VALUE_REAL ? value.real == strtod(said->value, NULL)
                                     : strcmp(statement_text(stored, 1), said->value) == 0);
}

/* Both in the order of their keys; stored: key, value, type. */
static status compare_settings(const struct verifying *v, int64_t run, const struct verify_suite *suite,
                               struct statement *stored, struct error *error)
{
    size_t i = 0;
    bool row;
    TRY(statement_bind(stored, VALUES(value_integer(run)), error));
    TRY(statement_step(stored, &row, error));
    while (row || i < suite->count) {
        const struct setting_row *said = i < suite->count ? &suite->settings[i] : NULL;
        int order = said == NULL ? 1 : !row ? -1 : strcmp(said->key, statement_text(stored, 0));
        if (order != 0 || !same_value(stored, said))
            verify_fault(v, &(struct verify_fault){run, "settings", order <= 0 ? said->key : statement_text(stored, 0),
                                                   order <= 0 ? said->value : "none, as in suite_text",
                                                   order >= 0 ? statement_text(stored, 1) : "none"});
        i += order <= 0;
        if (order >= 0)
            TRY(statement_step(stored, &row, error));
    }
    return OK;
}

/* runs: run, suite, suite_text, settings_hash, in the order of their texts, each of which is read once. */
static status check_runs(const struct verifying *v, struct statement *runs, struct statement *stored,
                         struct error *error)
{
    struct verify_suite suite = {0};
    struct error why = {0};
    char *last = NULL;
    status result, readable = OK;
    for (bool row; (result = statement_step(runs, &row, error)) == OK && row;) {
        int64_t run = statement_integer(runs, 0);
        const char *text = statement_text(runs, 2), *hash = statement_text(runs, 3);
        if (!verify_wants(v, run))
            continue;
        if (last == NULL || strcmp(last, text) != 0) {
            suite_free(&suite);
            free(last);
            last = strdup(text);
            readable = v->verification->read_suite(statement_text(runs, 1), text, &suite, &why);
            if (suite.count > 0)
                qsort(suite.settings, suite.count, sizeof *suite.settings, compare_keys);
        }
        if (readable != OK) {
            verify_fault(v, &(struct verify_fault){run, "settings", "suite_text", "a suite", why.message});
            continue;
        }
        if (strcmp(suite.hash, hash) != 0)
            verify_fault(v, &(struct verify_fault){run, "identity", "settings_hash", suite.hash, hash});
        result = compare_settings(v, run, &suite, stored, error);
        if (result != OK)
            break;
    }
    suite_free(&suite);
    free(last);
    return result;
}

/* Another version's suites may have other keys. */
status verify_suites(const struct verifying *v, struct error *error)
{
    struct statement *runs = NULL, *stored = NULL;
    if (v->verification->read_suite == NULL)
        return OK;
    status result =
        statement_open(&runs, v->store->database,
                       "SELECT run, suite, suite_text, settings_hash FROM runs WHERE program_version = ?1 AND "
                       "EXISTS (SELECT 1 FROM settings WHERE settings.run = runs.run) ORDER BY suite_text",
                       error);
    NEXT(result, statement_bind(runs, VALUES(value_text(v->verification->version)), error));
    NEXT(result, statement_open(&stored, v->store->database,
                                "SELECT key, value, type FROM settings WHERE run = ?1 ORDER BY key", error));
    NEXT(result, check_runs(v, runs, stored, error));
    statement_close(runs);
    statement_close(stored);
    return result;
}

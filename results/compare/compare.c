#include "results/compare.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/compare/internal.h"
#include "results/store/store_internal.h"

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

static status name_by(struct compare *c, struct error *error)
{
    struct text by = {0};
    for (size_t i = 0; i < c->request->by_count; i++)
        text_add(&by, "%s%s", i ? ", " : "", c->request->by[i]);
    c->result->by = by.data;
    return by.failed ? compare_no_memory(c, error) : OK;
}

static status work(struct compare *c, struct error *error)
{
    TRY(name_by(c, error));
    TRY(compare_read(c, error));
    TRY(compare_make_contexts(c, error));
    TRY(compare_make_samples(c, error));
    TRY(compare_choose_baseline(c, error));
    bool feasible;
    TRY(compare_check_pairs(c, &feasible, error));
    if (!feasible)
        return OK;
    TRY(compare_make_pairs(c, error));
    TRY(compare_make_overview(c, error));
    return c->request->detail == COMPARE_IMAGES ? compare_make_images(c, error) : OK;
}

static void compare_free(struct compare *c)
{
    for (size_t k = 0; k < c->made; k++) {
        struct configuration *configuration = &c->configuration[k];
        for (size_t i = 0; configuration->by && i < c->request->by_count; i++)
            free(configuration->by[i]);
        free(configuration->by);
        free(configuration->name);
        free(configuration->key);
        setting_values_free(&configuration->values);
    }
    free(c->configuration);
    free(c->run);
    free(c->dataset);
    free(c->images);
    free(c->values);
}

status compare_runs(struct store *store, const struct comparison_request *request, struct comparison *comparison,
                    struct error *error)
{
    *comparison = (struct comparison){0};
    TRY(check_request(store, request, error));
    struct compare c = {.store = store, .request = request, .result = comparison};
    contents_begin(&c.contents, store);
    /* One state, though others may be writing; a transaction that is open already, a report's, stays so. */
    TRY(database_execute(store->database, "SAVEPOINT comparison", error));
    status result = work(&c, error);
    contents_end(&c.contents);
    database_execute(store->database, "ROLLBACK TO comparison; RELEASE comparison", NULL);
    compare_free(&c);
    if (result != OK)
        comparison_free(comparison);
    return result;
}

static void free_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

void comparison_free(struct comparison *comparison)
{
    for (size_t i = 0; comparison->context && i < comparison->context_count; i++)
        free(comparison->context[i].name);
    for (size_t i = 0; i < comparison->group_count; i++) {
        free(comparison->group[i].name);
        free(comparison->group[i].run);
        free(comparison->group[i].seed);
    }
    for (size_t i = 0; i < comparison->sample_count; i++)
        free(comparison->sample[i].value);
    free(comparison->overview);
    for (size_t i = 0; i < comparison->pair_count; i++)
        free(comparison->pair[i].words);
    free_strings(comparison->dataset, comparison->dataset_count);
    free_strings(comparison->note, comparison->note_count);
    free(comparison->context);
    free(comparison->group);
    free(comparison->sample);
    free(comparison->pair);
    free(comparison->images);
    free(comparison->discordance);
    free(comparison->by);
    *comparison = (struct comparison){0};
}

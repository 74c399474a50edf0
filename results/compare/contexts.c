/* Makes contexts: runs whose settings agree in all but what is compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/compare/internal.h"

#define ALONE_LIMIT 12      /* notes on groups with nothing to compare them with */
#define DIFFERENCES_SHOWN 6 /* differences of two configurations in a note */

/* Keys in the order of their bytes, borrowed from the configurations. */
struct keys {
    size_t count, capacity;
    const char **key;
    bool failed;
};

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_key(const struct keys *keys, const char *key)
{
    return keys->count && bsearch(&key, keys->key, keys->count, sizeof *keys->key, compare_strings) != NULL;
}

static void add_key(struct keys *keys, const char *key)
{
    if (has_key(keys, key))
        return;
    if (keys->count == keys->capacity) {
        size_t capacity = keys->capacity ? 2 * keys->capacity : 32;
        const char **larger = realloc(keys->key, capacity * sizeof *larger);
        keys->failed |= larger == NULL;
        if (!larger)
            return;
        keys->key = larger;
        keys->capacity = capacity;
    }
    size_t at = keys->count++;
    for (; at > 0 && strcmp(keys->key[at - 1], key) > 0; at--)
        keys->key[at] = keys->key[at - 1];
    keys->key[at] = key;
}

/* ---- Keys that matter ---- */

/* Sections beside its own whose keys a choice decides on. */
static bool decides_on(const char *by, const char *key)
{
    char section[32];
    snprintf(section, sizeof section, "%.*s", (int)strcspn(key, "."), key);
    return (strcmp(by, "method.name") == 0 &&
            text_has_word("adapter|combine|merge|selector|tasks|training", section)) ||
           (strcmp(by, "merge.policy") == 0 && strcmp(section, "combine") == 0);
}

/* Whether key belongs to a compared choice, such as the decay of a policy that has one. */
static bool belongs_to_by(const struct comparison_request *request, const char *key)
{
    for (size_t i = 0; i < request->by_count; i++) {
        const char *by = compare_by_keys(request->by[i]), *dot = strchr(by, '.');
        if ((dot && strncmp(by, key, (size_t)(dot - by) + 1) == 0) || decides_on(by, key))
            return true;
    }
    return false;
}

struct finding {
    const struct comparison_request *request;
    struct keys *varied; /* keys whose values are not the same everywhere */
    struct keys *chosen; /* keys among them that belong to a compared choice and that some configurations lack */
};

static void find_key(void *context, const char *key, const char *a, const char *b)
{
    struct finding *finding = context;
    const struct comparison_request *request = finding->request;
    if (compare_is_incidental(request, key, a, b) || compare_is_by(request, key))
        return;
    add_key(finding->varied, key);
    if ((!a || !b) && belongs_to_by(request, key))
        add_key(finding->chosen, key);
}

/* A key that varies differs between the first configuration and another. */
static status find_keys(const struct compare *c, struct keys *varied, struct keys *chosen, struct error *error)
{
    struct finding finding = {c->request, varied, chosen};
    for (size_t k = 1; k < c->configurations; k++)
        setting_values_compare(&c->configuration[0].values, &c->configuration[k].values, find_key, &finding);
    return varied->failed || chosen->failed ? compare_no_memory(c, error) : OK;
}

/* ---- Contexts ---- */

static void add_setting(struct text *text, const struct configuration *configuration, const char *key)
{
    const char *value = setting_values_find(&configuration->values, key);
    text_add(text, "%s%s%s%s", text->size ? ", " : "", key, value ? " = " : " not set", value ? value : "");
}

static void add_test_sets(struct text *text, const struct compare *c, const struct configuration *configuration)
{
    const struct compared_run *run = &c->run[configuration->first];
    text_add(text, "%stest images", text->size ? ", " : "");
    for (size_t dataset = 0; dataset < c->result->dataset_count; dataset++)
        for (size_t task = 0; task < run->tasks; task++)
            if (run->dataset[task] == dataset)
                text_add(text, " %s %lld", c->result->dataset[dataset], (long long)run->images[task]);
}

static bool makes_no_difference(const struct compare *c, const struct configuration *configuration, const char *key)
{
    const char *value = setting_values_find(&configuration->values, key);
    return value && compare_is_incidental(c->request, key, value, value);
}

/* The key of a context: the values of the keys that vary, and the test sets in any order. */
static status make_key(const struct compare *c, struct configuration *configuration, const struct keys *varied,
                       const struct keys *chosen, struct error *error)
{
    struct text key = {0};
    for (size_t i = 0; i < varied->count; i++)
        if (!has_key(chosen, varied->key[i]) && !makes_no_difference(c, configuration, varied->key[i]))
            add_setting(&key, configuration, varied->key[i]);
    add_test_sets(&key, c, configuration);
    configuration->key = key.data;
    return key.failed ? compare_no_memory(c, error) : OK;
}

/* Numbers by size, words by letters, "task10" behind "task9". */
static int compare_naturally(const char *a, const char *b)
{
    double x, y;
    if (parse_real(a, &x) && parse_real(b, &y) && x != y)
        return x < y ? -1 : 1;
    return strverscmp(a, b);
}

static int compare_configurations(const void *a, const void *b)
{
    const struct configuration *left = a, *right = b;
    int order = strverscmp(left->key, right->key);
    if (order == 0)
        order = compare_naturally(left->name, right->name);
    return order != 0 ? order : (left->first > right->first) - (left->first < right->first);
}

static void number_contexts(struct compare *c)
{
    size_t context = 0;
    for (size_t k = 0; k < c->configurations; k++) {
        context += k > 0 && strcmp(c->configuration[k].key, c->configuration[k - 1].key) != 0;
        c->configuration[k].context = context;
    }
    c->result->context_count = context + 1;
}

/* Whether contexts differ in their test sets, which then are part of their names. */
static bool test_sets_vary(const struct compare *c)
{
    for (size_t k = 1; k < c->configurations; k++) {
        struct text a = {0}, b = {0};
        add_test_sets(&a, c, &c->configuration[0]);
        add_test_sets(&b, c, &c->configuration[k]);
        bool same = a.data && b.data && strcmp(a.data, b.data) == 0;
        text_free(&a);
        text_free(&b);
        if (!same)
            return true;
    }
    return false;
}

static status name_contexts(struct compare *c, const struct keys *varied, const struct keys *chosen,
                            struct error *error)
{
    struct comparison *result = c->result;
    bool with_tests = test_sets_vary(c);
    result->context = calloc(result->context_count, sizeof *result->context);
    if (!result->context)
        return compare_no_memory(c, error);
    for (size_t k = 0; k < c->configurations; k++) {
        const struct configuration *configuration = &c->configuration[k];
        if (result->context[configuration->context].name)
            continue;
        struct text name = {0};
        text_add(&name, "%s", "");
        for (size_t i = 0; i < varied->count; i++)
            if (!has_key(chosen, varied->key[i]))
                add_setting(&name, configuration, varied->key[i]);
        if (with_tests)
            add_test_sets(&name, c, configuration);
        result->context[configuration->context].name = name.data;
        if (name.failed)
            return compare_no_memory(c, error);
    }
    return OK;
}

/* ---- Groups ---- */

struct naming {
    const struct comparison_request *request;
    struct keys *keys;
};

static void find_naming_key(void *context, const char *key, const char *a, const char *b)
{
    const struct naming *naming = context;
    if (!compare_is_incidental(naming->request, key, a, b))
        add_key(naming->keys, key);
}

static int compare_names(const void *a, const void *b)
{
    return compare_naturally(((const struct configuration *)a)->name, ((const struct configuration *)b)->name);
}

/* Configurations of one context with the same values of what is compared are told apart by whatever else differs. */
static status name_alike(struct compare *c, size_t begin, size_t end, struct error *error)
{
    struct keys keys = {0};
    struct naming naming = {c->request, &keys};
    for (size_t k = begin + 1; k < end; k++)
        setting_values_compare(&c->configuration[begin].values, &c->configuration[k].values, find_naming_key, &naming);
    bool failed = keys.failed;
    for (size_t k = begin; k < end && !failed; k++) {
        struct configuration *configuration = &c->configuration[k];
        struct text settings = {0}, name = {0};
        for (size_t i = 0; i < keys.count; i++)
            add_setting(&settings, configuration, keys.key[i]);
        text_add(&name, "%s (%s)", configuration->name, settings.data ? settings.data : "");
        failed = settings.failed || name.failed;
        text_free(&settings);
        free(configuration->name);
        configuration->name = name.data;
    }
    free(keys.key);
    if (failed)
        return compare_no_memory(c, error);
    qsort(c->configuration + begin, end - begin, sizeof *c->configuration, compare_names);
    return OK;
}

static status name_groups(struct compare *c, struct error *error)
{
    for (size_t begin = 0, end; begin < c->configurations; begin = end) {
        for (end = begin + 1; end < c->configurations; end++)
            if (c->configuration[end].context != c->configuration[begin].context ||
                strcmp(c->configuration[end].name, c->configuration[begin].name) != 0)
                break;
        if (end - begin > 1)
            TRY(name_alike(c, begin, end, error));
    }
    return OK;
}

static status make_group(struct compare *c, const struct configuration *configuration, struct error *error)
{
    struct comparison_group *group = &c->result->group[c->result->group_count++];
    *group = (struct comparison_group){.context = configuration->context,
                                       .name = strdup(configuration->name),
                                       .runs = configuration->runs,
                                       .run = malloc(configuration->runs * sizeof *group->run),
                                       .seed = malloc(configuration->runs * sizeof *group->seed)};
    if (!group->name || !group->run || !group->seed)
        return compare_no_memory(c, error);
    for (size_t i = 0; i < configuration->runs; i++) {
        group->run[i] = c->run[configuration->first + i].run;
        group->seed[i] = c->run[configuration->first + i].seed;
    }
    return OK;
}

/* Removes configurations without a run. */
static void drop_empty(struct compare *c)
{
    size_t kept = 0;
    for (size_t k = 0; k < c->configurations; k++) {
        struct configuration one = c->configuration[k];
        c->configuration[k] = c->configuration[kept];
        c->configuration[kept] = one;
        kept += one.runs > 0;
    }
    c->configurations = kept;
}

/* ---- Groups that stand alone ---- */

struct nearest {
    const struct comparison_request *request;
    size_t count;
    struct text text;
};

static void count_difference(void *context, const char *key, const char *a, const char *b)
{
    struct nearest *nearest = context;
    if (compare_is_incidental(nearest->request, key, a, b) || compare_is_by(nearest->request, key) ||
        ((!a || !b) && belongs_to_by(nearest->request, key)))
        return;
    if (nearest->count++ < DIFFERENCES_SHOWN)
        text_add(&nearest->text, "%s%s (%s here, %s there)", nearest->count > 1 ? ", " : "", key, a ? a : "not set",
                 b ? b : "not set");
}

/* The configuration of another name that differs least, with the differences; c->configurations if there is none. */
static size_t find_nearest(const struct compare *c, size_t here, struct nearest *best)
{
    size_t place = c->configurations;
    *best = (struct nearest){.count = SIZE_MAX};
    for (size_t k = 0; k < c->configurations; k++) {
        struct nearest nearest = {.request = c->request};
        if (strcmp(c->configuration[k].name, c->configuration[here].name) == 0)
            continue;
        setting_values_compare(&c->configuration[here].values, &c->configuration[k].values, count_difference, &nearest);
        bool better = nearest.count < best->count;
        text_free(better ? &best->text : &nearest.text);
        *best = better ? nearest : *best;
        place = better ? k : place;
    }
    return place;
}

static bool is_alone(const struct compare *c, size_t k)
{
    size_t context = c->configuration[k].context;
    return (k == 0 || c->configuration[k - 1].context != context) &&
           (k + 1 == c->configurations || c->configuration[k + 1].context != context);
}

/* Whether the note on two configurations was already added. */
static bool is_said(const struct compare *c, size_t here, size_t there)
{
    struct nearest back;
    bool said = there < here && is_alone(c, there) && find_nearest(c, there, &back) == here;
    if (there < here && is_alone(c, there))
        text_free(&back.text);
    return said;
}

static status explain_alone(struct compare *c, size_t here, struct error *error)
{
    struct nearest nearest;
    size_t there = find_nearest(c, here, &nearest);
    status result = OK;
    if (there < c->configurations && !is_said(c, here, there))
        result =
            compare_add_note(c, error, "%s is not compared with %s: they differ in %s%s", c->configuration[here].name,
                             c->configuration[there].name, nearest.text.data ? nearest.text.data : "their test images",
                             nearest.count > DIFFERENCES_SHOWN ? " and more" : "");
    text_free(&nearest.text);
    return result;
}

static bool is_one_name(const struct compare *c)
{
    for (size_t k = 1; k < c->configurations; k++)
        if (strcmp(c->configuration[k].name, c->configuration[0].name) != 0)
            return false;
    return true;
}

static status note_alone(struct compare *c, struct error *error)
{
    size_t alone = 0;
    if (is_one_name(c))
        return compare_add_note(c, error, "every run has %s%s%s: there is nothing to compare it with",
                                c->request->by_count == 1 ? c->result->by : "", c->request->by_count == 1 ? " = " : "",
                                c->configuration[0].name);
    for (size_t k = 0; k < c->configurations; k++)
        if (is_alone(c, k) && alone++ < ALONE_LIMIT)
            TRY(explain_alone(c, k, error));
    if (alone > ALONE_LIMIT)
        TRY(compare_add_note(c, error, "%zu more groups stand alone in their settings", alone - ALONE_LIMIT));
    return OK;
}

/* ---- All of it ---- */

static status make_groups(struct compare *c, const struct keys *varied, const struct keys *chosen, struct error *error)
{
    for (size_t k = 0; k < c->configurations; k++)
        TRY(make_key(c, &c->configuration[k], varied, chosen, error));
    qsort(c->configuration, c->configurations, sizeof *c->configuration, compare_configurations);
    number_contexts(c);
    TRY(name_contexts(c, varied, chosen, error));
    TRY(name_groups(c, error));
    c->result->group = calloc(c->configurations, sizeof *c->result->group);
    if (!c->result->group)
        return compare_no_memory(c, error);
    for (size_t k = 0; k < c->configurations; k++)
        TRY(make_group(c, &c->configuration[k], error));
    return note_alone(c, error);
}

static bool is_asked(const struct comparison_request *request, const char *name)
{
    bool asked = request->only_count == 0;
    for (size_t i = 0; i < request->only_count; i++)
        asked |= strcmp(request->only[i], name) == 0;
    return asked;
}

/* A requested group without a configuration is an error. */
static status check_asked(const struct compare *c, struct error *error)
{
    const char **names = calloc(c->configurations + 1, sizeof *names);
    status result = names ? OK : compare_no_memory(c, error);
    size_t count = 0;
    for (size_t k = 0; names && k < c->configurations; k++) {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = strcmp(names[i], c->configuration[k].name) == 0;
        if (!known)
            names[count++] = c->configuration[k].name;
    }
    for (size_t i = 0; i < c->request->only_count && result == OK; i++) {
        bool known = false;
        for (size_t k = 0; k < count && !known; k++)
            known = strcmp(names[k], c->request->only[i]) == 0;
        if (!known)
            result = error_unknown_word(error, "compare", "group", c->request->only[i], names, count);
    }
    free(names);
    return result;
}

status compare_make_contexts(struct compare *c, struct error *error)
{
    struct keys varied = {0}, chosen = {0};
    TRY(check_asked(c, error));
    for (size_t k = 0; k < c->configurations; k++)
        if (!is_asked(c->request, c->configuration[k].name))
            c->configuration[k].runs = 0;
    drop_empty(c);
    if (c->configurations == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: no run to compare: each accuracy matrix has holes",
                         store_path(c->store));
    status result = find_keys(c, &varied, &chosen, error);
    if (result == OK)
        result = make_groups(c, &varied, &chosen, error);
    free(varied.key);
    free(chosen.key);
    return result;
}

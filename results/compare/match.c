/* Which groups stand against one another: those of a context, all of them or with the baseline alone, by their seeds. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/compare/internal.h"

#define NAMES_SHOWN 12     /* groups that a message lists */
#define TESTS_LIMIT 200000 /* of pairs; nobody reads more */

size_t compare_context_end(const struct compare *c, size_t begin)
{
    size_t end = begin;
    while (end < c->configurations && c->configuration[end].context == c->configuration[begin].context)
        end++;
    return end;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static status unknown_baseline(const struct compare *c, struct error *error)
{
    const struct comparison *result = c->result;
    const char **names = malloc(result->group_count * sizeof *names), *baseline = c->baseline;
    if (!names)
        return compare_no_memory(c, error);
    size_t count = 0;
    for (size_t i = 0; i < result->group_count; i++)
        names[i] = result->group[i].name;
    qsort(names, result->group_count, sizeof *names, compare_strings);
    for (size_t i = 0; i < result->group_count; i++)
        if (i == 0 || strcmp(names[i], names[count - 1]) != 0)
            names[count++] = names[i];
    const char *nearest = nearest_word(baseline, names, count);
    if (count <= NAMES_SHOWN)
        error_unknown_word(error, "compare", "baseline", baseline, names, count);
    else
        error_set(error, ERROR_ARGUMENT,
                  "compare: unknown baseline \"%.60s\"%s%s%s; expected one of %zu groups, from \"%s\" to \"%s\"",
                  baseline, nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "", count,
                  names[0], names[count - 1]);
    free(names);
    return ERROR_ARGUMENT;
}

/* Whether the groups [begin, end) have the baseline. */
static bool has_baseline(const struct compare *c, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (strcmp(c->result->group[i].name, c->baseline) == 0)
            return true;
    return false;
}

/* Whether every context with something to compare has it. */
static bool is_baseline_everywhere(const struct compare *c)
{
    size_t having = 0;
    for (size_t begin = 0, end; begin < c->result->group_count; begin = end) {
        end = compare_context_end(c, begin);
        having += end - begin > 1;
        if (end - begin > 1 && !has_baseline(c, begin, end))
            return false;
    }
    return having > 0;
}

status compare_choose_baseline(struct compare *c, struct error *error)
{
    static const char *const usual[] = {"none", "zero_shot", "Zero-shot"};
    c->baseline = c->request->baseline;
    if (c->baseline != NULL) {
        c->baseline = strcmp(c->baseline, COMPARE_ALL_PAIRS) == 0 ? NULL : c->baseline;
        return OK;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        c->baseline = usual[i];
        if (is_baseline_everywhere(c))
            return compare_add_note(c, error,
                                    "the others are compared with %s; mtil compare --baseline chooses another, and "
                                    "--baseline " COMPARE_ALL_PAIRS " compares every pair",
                                    c->baseline);
    }
    c->baseline = NULL;
    return OK;
}

/* Contexts that have several groups but not this one are reported. */
static status check_baseline(struct compare *c, struct error *error)
{
    const struct comparison *result = c->result;
    size_t without = 0;
    if (!has_baseline(c, 0, result->group_count))
        return unknown_baseline(c, error);
    for (size_t begin = 0, end; begin < result->group_count; begin = end) {
        end = compare_context_end(c, begin);
        without += end - begin > 1 && !has_baseline(c, begin, end);
    }
    if (without)
        TRY(compare_add_note(c, error, "in %zu of %zu contexts %s is absent, so that nothing is compared there",
                             without, result->context_count, c->baseline));
    return OK;
}

status compare_check_pairs(struct compare *c, bool *feasible, struct error *error)
{
    size_t pairs = compare_pair_count(c);
    size_t datasets = c->request->detail == COMPARE_MEANS ? 0 : c->result->dataset_count;
    size_t tests = pairs * c->request->metric_count * (datasets + 1);
    *feasible = tests <= TESTS_LIMIT;
    if (c->baseline)
        TRY(check_baseline(c, error));
    if (*feasible)
        return OK;
    return compare_add_note(
        c, error,
        "%zu pairs of groups would take %zu tests, more than %d: they are not compared; choose runs, "
        "one metric or a baseline",
        pairs, tests, TESTS_LIMIT);
}

status compare_each_pair(struct compare *c, compare_two *make, struct error *error)
{
    const struct comparison_group *group = c->result->group;
    const char *baseline = c->baseline;
    for (size_t a = 0; a < c->result->group_count; a++)
        for (size_t b = a + 1; b < c->result->group_count && group[b].context == group[a].context; b++) {
            bool second = baseline && strcmp(group[b].name, baseline) == 0;
            if (!baseline || second || strcmp(group[a].name, baseline) == 0)
                TRY(make(c, second ? b : a, second ? a : b, error));
        }
    return OK;
}

size_t compare_pair_count(const struct compare *c)
{
    size_t count = 0;
    for (size_t begin = 0, end; begin < c->result->group_count; begin = end) {
        end = compare_context_end(c, begin);
        count += c->baseline ? end - begin : (end - begin) * (end - begin - 1) / 2;
    }
    return count;
}

status compare_common_seeds(const struct compare *c, size_t baseline, size_t other, struct common_seed **seeds,
                            size_t *n, struct error *error)
{
    const struct configuration *a = &c->configuration[baseline], *b = &c->configuration[other];
    *n = 0;
    *seeds = malloc((a->runs < b->runs ? a->runs : b->runs) * sizeof **seeds);
    if (!*seeds)
        return compare_no_memory(c, error);
    for (size_t i = a->first, j = b->first; i < a->first + a->runs && j < b->first + b->runs;) {
        int64_t left = c->run[i].seed, right = c->run[j].seed;
        if (left == right)
            (*seeds)[(*n)++] = (struct common_seed){i, j};
        i += left <= right;
        j += right <= left;
    }
    return OK;
}

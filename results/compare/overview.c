/* Two groups in all the contexts that have both, at a glance: in how many one is above the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/compare/internal.h"

struct entry {
    const struct comparison *comparison;
    const struct comparison_pair *pair;
    size_t index;
};

static const char *name_of(const struct entry *entry, size_t group)
{
    return entry->comparison->group[group].name;
}

/* 0 for the same two names and metric. */
static int compare_entries(const struct entry *a, const struct entry *b)
{
    int order = strverscmp(name_of(a, a->pair->baseline), name_of(b, b->pair->baseline));
    if (order == 0)
        order = strverscmp(name_of(a, a->pair->other), name_of(b, b->pair->other));
    return order != 0 ? order : strcmp(a->pair->metric->name, b->pair->metric->name);
}

static int sort_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = compare_entries(left, right);
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

/* Means over tasks; where one dataset alone was asked for, those of it. */
static size_t collect(const struct comparison *comparison, struct entry *entries)
{
    bool means = false;
    size_t count = 0;
    for (size_t i = 0; i < comparison->pair_count; i++)
        means |= comparison->pair[i].dataset == NULL;
    for (size_t i = 0; i < comparison->pair_count; i++) {
        const struct comparison_pair *pair = &comparison->pair[i];
        if (pair->n > 0 && (!means || pair->dataset == NULL))
            entries[count++] = (struct entry){comparison, pair, i};
    }
    qsort(entries, count, sizeof *entries, sort_entries);
    return count;
}

static struct comparison_overview summarise(const struct entry *entries, size_t count)
{
    const struct comparison_pair *first = entries[0].pair;
    struct comparison_overview row = {
        .baseline = first->baseline, .other = first->other, .metric = first->metric, .contexts = count};
    for (size_t i = 0; i < count; i++) {
        const struct comparison_pair *pair = entries[i].pair;
        bool supported = pair->p_holm <= COMPARE_LEVEL;
        row.above += pair->difference > 0;
        row.below += pair->difference < 0;
        row.supported_above += supported && pair->difference > 0;
        row.supported_below += supported && pair->difference < 0;
        row.difference += pair->difference / (double)count;
        row.least = i ? fmin(row.least, pair->difference) : pair->difference;
        row.most = i ? fmax(row.most, pair->difference) : pair->difference;
    }
    return row;
}

static int sort_rows(const void *a, const void *b)
{
    const struct comparison_overview *left = a, *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

status compare_make_overview(struct compare *c, struct error *error)
{
    struct comparison *result = c->result;
    struct entry *entries = malloc((result->pair_count + 1) * sizeof *entries);
    result->overview = malloc((result->pair_count / 2 + 1) * sizeof *result->overview);
    if (!entries || !result->overview) {
        free(entries);
        return compare_no_memory(c, error);
    }
    size_t count = collect(result, entries);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && compare_entries(&entries[begin], &entries[end]) == 0;)
            end++;
        if (end - begin < 2)
            continue;
        result->overview[result->overview_count] = summarise(entries + begin, end - begin);
        result->overview[result->overview_count++].first = entries[begin].index;
    }
    qsort(result->overview, result->overview_count, sizeof *result->overview, sort_rows);
    free(entries);
    return OK;
}

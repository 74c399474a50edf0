/* The parts of a comparison as tables. A part is a function in the table at the end. */
#include <math.h>

#include "results/compare/internal.h"

#define COLUMN(...) table_add_column(table, &(struct table_column){__VA_ARGS__})

/* What of a comparison there is to show. */
struct view {
    const struct comparison *comparison;
    bool contexts, datasets, seeds; /* there are several; some row has one; some pair knows how many it needs */
    bool errors;                    /* of some images it is known what went wrong */
};

static void add_place_columns(const struct view *view, struct table *table)
{
    if (view->contexts)
        COLUMN(.title = "context");
}

static void add_place(const struct view *view, struct table *table, size_t group)
{
    const struct comparison *comparison = view->comparison;
    if (view->contexts)
        table_add_integer(table, (int64_t)comparison->group[group].context + 1);
}

static void add_two_columns(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    add_place_columns(view, table);
    COLUMN(.title = "baseline", .align = ALIGN_LEFT);
    COLUMN(.title = comparison->by, .align = ALIGN_LEFT);
}

static void add_two(const struct view *view, struct table *table, size_t baseline, size_t other)
{
    const struct comparison *comparison = view->comparison;
    add_place(view, table, baseline);
    table_add_text(table, comparison->group[baseline].name);
    table_add_text(table, comparison->group[other].name);
}

static void add_contexts(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    COLUMN(.title = "context");
    COLUMN(.title = "settings", .align = ALIGN_LEFT);
    for (size_t i = 0; view->contexts && i < comparison->context_count; i++) {
        table_add_integer(table, (int64_t)i + 1);
        table_add_text(table, comparison->context[i].name);
    }
}

static void add_measure_columns(const struct view *view, struct table *table)
{
    COLUMN(.title = "metric", .align = ALIGN_LEFT);
    if (view->datasets)
        COLUMN(.title = "dataset", .align = ALIGN_LEFT);
}

static void add_measure(const struct view *view, struct table *table, const struct metric *metric, const char *dataset)
{
    table_add_text(table, metric->name);
    if (view->datasets)
        table_add_text(table, dataset ? dataset : "mean");
}

static bool same_measure(const struct comparison *comparison, const struct comparison_sample *a,
                         const struct comparison_sample *b)
{
    return a->metric == b->metric && a->dataset == b->dataset &&
           comparison->group[a->group].context == comparison->group[b->group].context;
}

/* Which end of the column is the better one; none where it is not the same for all metrics. */
static enum table_best best_of(const struct comparison *comparison)
{
    size_t lower = 0;
    for (size_t i = 0; i < comparison->sample_count; i++)
        lower += comparison->sample[i].metric->lower_is_better;
    return lower == 0 ? BEST_HIGHEST : lower == comparison->sample_count ? BEST_LOWEST : BEST_NONE;
}

static void add_groups(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    add_place_columns(view, table);
    COLUMN(.title = comparison->by, .align = ALIGN_LEFT);
    add_measure_columns(view, table);
    COLUMN(.title = "seeds");
    COLUMN(.title = "mean", .decimals = 2, .best = best_of(comparison));
    COLUMN(.title = "sd", .decimals = 2);
    COLUMN(.title = "low", .decimals = 2);
    COLUMN(.title = "high", .decimals = 2);
    for (size_t i = 0; i < comparison->sample_count; i++) {
        const struct comparison_sample *sample = &comparison->sample[i];
        if (i > 0 && !same_measure(comparison, sample - 1, sample))
            table_begin_block(table);
        add_place(view, table, sample->group);
        table_add_text(table, comparison->group[sample->group].name);
        add_measure(view, table, sample->metric, sample->dataset);
        table_add_integer(table, (int64_t)sample->n);
        table_add_real(table, sample->mean);
        table_add_real(table, sample->sd);
        table_add_real(table, sample->low);
        table_add_real(table, sample->high);
    }
}

static void add_pair(const struct view *view, struct table *table, const struct comparison_pair *pair)
{
    add_two(view, table, pair->baseline, pair->other);
    add_measure(view, table, pair->metric, pair->dataset);
    table_add_integer(table, (int64_t)pair->n);
    table_add_real(table, pair->difference);
    table_add_real(table, pair->sd);
    table_add_real(table, pair->low);
    table_add_real(table, pair->high);
    table_add_real(table, pair->median);
    table_add_real(table, pair->effect);
    table_add_real(table, pair->p_permutation);
    table_add_real(table, pair->p_holm);
    table_add_real(table, pair->p_wilcoxon);
    table_add_real(table, pair->p_t);
    if (view->seeds && pair->seeds_needed)
        table_add_integer(table, (int64_t)pair->seeds_needed);
    else if (view->seeds)
        table_add_empty(table);
}

static void add_pairs(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    add_two_columns(view, table);
    add_measure_columns(view, table);
    COLUMN(.title = "seeds");
    COLUMN(.title = "difference", .decimals = 2);
    COLUMN(.title = "sd", .decimals = 2);
    COLUMN(.title = "low", .decimals = 2);
    COLUMN(.title = "high", .decimals = 2);
    COLUMN(.title = "median", .decimals = 2);
    COLUMN(.title = "effect", .decimals = 2);
    COLUMN(.title = "p", .decimals = DECIMALS_ALL);
    COLUMN(.title = "p_holm", .decimals = DECIMALS_ALL);
    COLUMN(.title = "p_wilcoxon", .decimals = DECIMALS_ALL);
    COLUMN(.title = "p_t", .decimals = DECIMALS_ALL);
    if (view->seeds)
        COLUMN(.title = "seeds_needed");
    for (size_t i = 0; i < comparison->pair_count; i++)
        add_pair(view, table, &comparison->pair[i]);
}

static void add_images(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    add_two_columns(view, table);
    COLUMN(.title = "dataset", .align = ALIGN_LEFT);
    COLUMN(.title = "seeds");
    COLUMN(.title = "images");
    COLUMN(.title = "difference", .decimals = 2);
    COLUMN(.title = "low", .decimals = 2);
    COLUMN(.title = "high", .decimals = 2);
    if (view->errors) {
        COLUMN(.title = "router_errors_baseline", .decimals = 2);
        COLUMN(.title = "router_errors", .decimals = 2);
        COLUMN(.title = "class_errors_baseline", .decimals = 2);
        COLUMN(.title = "class_errors", .decimals = 2);
    }
    for (size_t i = 0; i < comparison->images_count; i++) {
        const struct comparison_images *row = &comparison->images[i];
        add_two(view, table, row->baseline, row->other);
        table_add_text(table, row->dataset ? row->dataset : "mean");
        table_add_integer(table, (int64_t)row->seeds);
        table_add_integer(table, (int64_t)row->images);
        table_add_real(table, row->difference);
        table_add_real(table, row->low);
        table_add_real(table, row->high);
        for (size_t side = 0; side < 2 && view->errors; side++)
            table_add_real(table, row->errors[side].router);
        for (size_t side = 0; side < 2 && view->errors; side++)
            table_add_real(table, row->errors[side].class);
    }
}

static void add_discordances(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    add_two_columns(view, table);
    COLUMN(.title = "dataset", .align = ALIGN_LEFT);
    COLUMN(.title = "seed");
    COLUMN(.title = "images");
    COLUMN(.title = "only_baseline");
    COLUMN(.title = "only_other");
    COLUMN(.title = "p_mcnemar", .decimals = DECIMALS_ALL);
    COLUMN(.title = "p_holm", .decimals = DECIMALS_ALL);
    for (size_t i = 0; i < comparison->discordance_count; i++) {
        const struct comparison_discordance *row = &comparison->discordance[i];
        add_two(view, table, row->baseline, row->other);
        table_add_text(table, row->dataset);
        table_add_integer(table, row->seed);
        table_add_integer(table, (int64_t)row->images);
        table_add_integer(table, (int64_t)row->only_baseline);
        table_add_integer(table, (int64_t)row->only_other);
        table_add_real(table, row->p);
        table_add_real(table, row->p_holm);
    }
}

static void add_words(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    add_two_columns(view, table);
    add_measure_columns(view, table);
    COLUMN(.title = "words", .align = ALIGN_LEFT);
    for (size_t i = 0; i < comparison->pair_count; i++) {
        const struct comparison_pair *pair = &comparison->pair[i];
        add_two(view, table, pair->baseline, pair->other);
        add_measure(view, table, pair->metric, pair->dataset);
        table_add_text(table, pair->words);
    }
}

static void add_overview(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    COLUMN(.title = "baseline", .align = ALIGN_LEFT);
    COLUMN(.title = comparison->by, .align = ALIGN_LEFT);
    COLUMN(.title = "metric", .align = ALIGN_LEFT);
    COLUMN(.title = "contexts");
    COLUMN(.title = "difference", .decimals = 2);
    COLUMN(.title = "least", .decimals = 2);
    COLUMN(.title = "most", .decimals = 2);
    COLUMN(.title = "above");
    COLUMN(.title = "supported_above");
    COLUMN(.title = "below");
    COLUMN(.title = "supported_below");
    for (size_t i = 0; i < comparison->overview_count; i++) {
        const struct comparison_overview *row = &comparison->overview[i];
        table_add_text(table, comparison->group[row->baseline].name);
        table_add_text(table, comparison->group[row->other].name);
        table_add_text(table, row->metric->name);
        table_add_integer(table, (int64_t)row->contexts);
        table_add_real(table, row->difference);
        table_add_real(table, row->least);
        table_add_real(table, row->most);
        table_add_integer(table, (int64_t)row->above);
        table_add_integer(table, (int64_t)row->supported_above);
        table_add_integer(table, (int64_t)row->below);
        table_add_integer(table, (int64_t)row->supported_below);
    }
}

static void add_notes(const struct view *view, struct table *table)
{
    const struct comparison *comparison = view->comparison;
    COLUMN(.title = "note", .align = ALIGN_LEFT);
    for (size_t i = 0; i < comparison->note_count; i++)
        table_add_text(table, comparison->note[i]);
}

static void (*const parts[])(const struct view *, struct table *) = {
    [COMPARE_CONTEXTS] = add_contexts,
    [COMPARE_GROUPS] = add_groups,
    [COMPARE_PAIRS] = add_pairs,
    [COMPARE_PER_IMAGE] = add_images,
    [COMPARE_DISCORDANCE] = add_discordances,
    [COMPARE_WORDS] = add_words,
    [COMPARE_OVERVIEW] = add_overview,
    [COMPARE_NOTES] = add_notes,
};

status compare_table(const struct comparison *comparison, enum comparison_part part, struct table *table,
                     struct error *error)
{
    struct view view = {.comparison = comparison, .contexts = comparison->context_count > 1};
    for (size_t i = 0; i < comparison->sample_count; i++)
        view.datasets |= comparison->sample[i].dataset != NULL;
    for (size_t i = 0; i < comparison->pair_count; i++)
        view.seeds |= comparison->pair[i].seeds_needed > 0;
    for (size_t i = 0; i < comparison->images_count; i++)
        view.errors |= !isnan(comparison->images[i].errors[0].router) || !isnan(comparison->images[i].errors[1].router);
    parts[part](&view, table);
    return table->failed ? error_set(error, ERROR_MEMORY, "compare: out of memory for a table") : OK;
}

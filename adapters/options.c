#include "adapters/options.h"

#include <stdlib.h>

#include "adapters/merge/combine.h"

const struct option adapter_options[] = {{.name = "experts",
                                          .type = OPTION_INTEGER,
                                          .minimum = 1,
                                          .maximum = ADAPTER_EXPERTS,
                                          .fallback = "22",
                                          .help = "experts per block"},
                                         {.name = "top_k",
                                          .type = OPTION_INTEGER,
                                          .minimum = 1,
                                          .maximum = 64,
                                          .fallback = "2",
                                          .help = "experts chosen per sample"},
                                         {.name = "bottleneck",
                                          .type = OPTION_INTEGER,
                                          .minimum = 4,
                                          .maximum = 4096,
                                          .fallback = "64",
                                          .help = "hidden units of an expert"},
                                         {.name = "scale",
                                          .type = OPTION_REAL,
                                          .minimum = 0,
                                          .maximum = 100,
                                          .fallback = "0.1",
                                          .help = "factor of an expert's output"},
                                         {.name = "dropout",
                                          .type = OPTION_REAL,
                                          .minimum = 0,
                                          .maximum = 0.99,
                                          .fallback = "0.1",
                                          .help = "of an expert's hidden units"},
                                         {.name = "noise_epsilon",
                                          .type = OPTION_REAL,
                                          .minimum = 0,
                                          .maximum = 10,
                                          .fallback = "0.01",
                                          .help = "least standard deviation of the router's noise"},
                                         {.name = "expert_input",
                                          .type = OPTION_CHOICE,
                                          .choices = "residual|post_ln",
                                          .fallback = "residual",
                                          .help = "what experts read: the residual stream or ln_2's output"},
                                         {.name = "blocks",
                                          .type = OPTION_LIST,
                                          .fallback = "all",
                                          .help = "blocks with experts: all, first_N, last_N, every_N, or a list of "
                                                  "numbers from 0"},
                                         {.name = "towers",
                                          .type = OPTION_CHOICE,
                                          .choices = ADAPTED_TOWERS_CHOICES,
                                          .fallback = "both",
                                          .help = "towers with experts"},
                                         {.name = "freeze_top_k",
                                          .type = OPTION_INTEGER,
                                          .minimum = 0,
                                          .maximum = MERGE_SOURCES,
                                          .fallback = "2",
                                          .help = "most used experts frozen after each task"},
                                         {.name = "routers",
                                          .type = OPTION_CHOICE,
                                          .choices = "per_task|one",
                                          .fallback = "per_task",
                                          .help = "one router for each task, or one that all tasks train"},
                                         {0}};

const struct option merge_options[] = {{.name = "policy",
                                        .type = OPTION_TEXT,
                                        .fallback = "most_used",
                                        .help = "which experts are merged; see mtil list policies"},
                                       {.name = "every",
                                        .type = OPTION_INTEGER,
                                        .minimum = 1,
                                        .maximum = 1e9,
                                        .fallback = "100",
                                        .help = "iterations between merges, or before the only one"},
                                       {.name = "schedule",
                                        .type = OPTION_CHOICE,
                                        .choices = MERGE_SCHEDULE_CHOICES,
                                        .fallback = "every",
                                        .help = "at every merge.every-th iteration of a task, at that one alone, or "
                                                "when the task ends"},
                                       {.name = "moments",
                                        .type = OPTION_CHOICE,
                                        .choices = MERGE_MOMENTS_CHOICES,
                                        .fallback = "keep",
                                        .help = "Adam's moments of the expert that is replaced"},
                                       {0}};

const struct option combine_options[] = {{.name = "name",
                                          .type = OPTION_TEXT,
                                          .fallback = "mean",
                                          .help = "what merged experts become; see mtil list combiners"},
                                         {0}};

static size_t whole(const struct options *options, const char *name)
{
    return (size_t)options_integer(options, name);
}

static status read_blocks(struct block_choice *blocks, const struct options *o, struct error *error)
{
    size_t count;
    const char **words = options_list_items(o, "blocks", &count);
    if (words == NULL)
        return error_set(error, ERROR_MEMORY, "suite: no memory for adapter.blocks");
    status result = block_choice_read(blocks, words, count, error);
    free(words);
    return result == OK ? OK : error_context(error, "suite: adapter.blocks");
}

status adapter_settings_of(struct adapter_settings *s, const struct options *o, size_t tasks, struct error *error)
{
    *s = (struct adapter_settings){.experts = whole(o, "experts"),
                                   .top_k = whole(o, "top_k"),
                                   .tasks = options_choice(o, "routers") == 0 ? tasks : 1,
                                   .bottleneck = whole(o, "bottleneck"),
                                   .scale = (float)options_real(o, "scale"),
                                   .dropout = (float)options_real(o, "dropout"),
                                   .noise_epsilon = (float)options_real(o, "noise_epsilon"),
                                   .input = (enum expert_input)options_choice(o, "expert_input"),
                                   .freeze_top_k = whole(o, "freeze_top_k")};
    s->place.towers = (enum adapted_towers)options_choice(o, "towers");
    TRY(read_blocks(&s->place.blocks, o, error));
    if (s->top_k > s->experts)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: adapter.top_k is %zu, but there are only %zu experts to choose from; lower adapter.top_k "
            "or raise adapter.experts",
            s->top_k, s->experts);
    if (s->freeze_top_k > s->experts)
        return error_set(error, ERROR_ARGUMENT, "suite: adapter.freeze_top_k is %zu, but there are only %zu experts",
                         s->freeze_top_k, s->experts);
    if (s->bottleneck % 4 != 0)
        return error_set(error, ERROR_ARGUMENT, "suite: adapter.bottleneck must be a multiple of 4, found %zu",
                         s->bottleneck);
    return OK;
}

status merge_plan_of(struct merge_plan *plan, const struct options *merge, const struct options *combine,
                     struct error *error)
{
    *plan = (struct merge_plan){.schedule = (enum merge_schedule)options_choice(merge, "schedule"),
                                .every = whole(merge, "every"),
                                .moments = (enum merge_moments)options_choice(merge, "moments"),
                                .policy_options = merge,
                                .combiner_options = combine};
    TRY(merge_policy_find(&plan->policy, options_text(merge, "policy"), error));
    return merge_combiner_find(&plan->combiner, options_text(combine, "name"), error);
}

status merge_combiner_keys(const char *name, const struct option **table, struct error *error)
{
    const struct merge_combiner *combiner;
    TRY(merge_combiner_find(&combiner, name, error));
    *table = combiner->options;
    return OK;
}

status merge_policy_keys(const char *name, const struct option **table, struct error *error)
{
    const struct merge_policy *policy;
    TRY(merge_policy_find(&policy, name, error));
    *table = policy->options;
    return OK;
}

#include "adapters/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "adapters/routers/router.h"
#include "core/scope.h"

const struct option adapter_options[] = {
    OPTION_NUMBER(INTEGER, "experts", 1, ADAPTER_EXPERTS, "22", "experts per block",
                  INTO(struct adapter_settings, experts), .synonyms = "num_experts|n_experts|experts_num|expert_num"),
    OPTION(TEXT, "kind", "lora", "kind of expert; see mtil list experts", .incidental = "lora"),
    OPTION_ONE_OF("start", "copies|independent|auto", "copies",
                  "start values of experts of kind ffn: copies of the MLP, or independent draws from the distribution "
                  "of an MLP from scratch; auto: independent with model.weights: scratch, else copies",
                  INTO(struct adapter_settings, start), .incidental = "copies"),
    OPTION_NUMBER(REAL, "init_noise", 0, 10, "0",
                  "noise added to experts of kind ffn at the start: its standard deviation, in adapter.noise_unit",
                  INTO(struct adapter_settings, init_noise), .when = "kind=ffn", .written = true, .incidental = "0"),
    OPTION_ONE_OF("noise_unit", "deviation|one", "deviation",
                  "unit of adapter.init_noise and adapter.score_noise: the standard deviation of each tensor of the "
                  "MLP, or one for absolute noise",
                  INTO(struct adapter_settings, absolute_noise), .when = "kind=ffn", .written = true,
                  .incidental = "deviation"),
    OPTION_NUMBER(INTEGER, "top_k", 1, 64, "2", "experts chosen per sample", INTO(struct adapter_settings, top_k),
                  .stated = STATED_ALWAYS, .synonyms = "topk|k|num_experts_per_tok|moe_top_k"),
    OPTION_NUMBER(INTEGER, "bottleneck", 4, 4096, "64", "hidden units of an expert",
                  INTO(struct adapter_settings, bottleneck), .synonyms = "rank|r|lora_r|lora_rank|ffn_num",
                  .when = "kind!=ffn", .written = true),
    OPTION_NUMBER(REAL, "scale", 0, 100, "0.1", "factor of an expert's output", INTO(struct adapter_settings, scale),
                  .stated = STATED_ALWAYS, .synonyms = "alpha|lora_alpha|ffn_adapter_scalar", .when = "kind!=ffn",
                  .written = true),
    OPTION_NUMBER(REAL, "dropout", 0, 0.99, "0.1", "dropout of an expert's hidden units",
                  INTO(struct adapter_settings, dropout), .synonyms = "lora_dropout|drop", .when = "kind!=ffn",
                  .written = true),
    OPTION_NUMBER(REAL, "noise_epsilon", 0, 10, "0.01", "least standard deviation of the router's noise",
                  INTO(struct adapter_settings, noise_epsilon), .when = "router=noisy_topk", .written = true),
    OPTION_ONE_OF("expert_input", "residual|post_ln", "residual",
                  "input of the experts: the residual stream, or the output of ln_2",
                  INTO(struct adapter_settings, input), .stated = STATED_ALWAYS, .when = "kind!=ffn", .written = true),
    OPTION(TEXT, "router", "noisy_topk", "router that chooses the experts; see mtil list routers",
           .incidental = "noisy_topk"),
    OPTION_NUMBER(
        REAL, "router_noise", 0, 10, "0",
        "standard deviation of the noise that router softmax_topk adds to its logits in training; WideNet: 1 / experts",
        INTO(struct adapter_settings, router_noise), .when = "router=softmax_topk", .written = true, .incidental = "0"),
    OPTION_NUMBER(REAL, "capacity", 0, 1000, "0",
                  "capacity of an expert of router softmax_topk in a training batch, as a multiple of its fair share; "
                  "0: no limit",
                  INTO(struct adapter_settings, capacity), .synonyms = "capacity_factor", .when = "router=softmax_topk",
                  .written = true, .incidental = "0"),
    OPTION_ONE_OF(
        "aligned_output", "none|shared|each", "none",
        "RMoE's aligned output for router softmax_topk, where the gates keep their gradients: shared for weights that "
        "sum to 1, each for weights of 1 (its Equation 7), which is the same with one expert per sample",
        INTO(struct adapter_settings, aligned_output), .stated = STATED_UNLESS_DEFAULT, .when = "router=softmax_topk",
        .written = true, .incidental = "none"),
    OPTION_ONE_OF("gate_input", "class_token|mean", "class_token",
                  "input of the router: the first token of a sample, or the mean of its tokens",
                  INTO(struct adapter_settings, gate_input), .stated = STATED_UNLESS_DEFAULT,
                  .when = "router!=random_uniform", .written = true, .incidental = "class_token"),
    OPTION_ONE_OF("routing", "per_sample|per_token", "per_sample",
                  "unit of a routing decision: one for all tokens of a sample, or one per token; selection counts are "
                  "of the same unit",
                  INTO(struct adapter_settings, routing), .stated = STATED_UNLESS_DEFAULT, .incidental = "per_sample"),
    OPTION(LIST, "blocks", "all",
           "blocks with experts: all, first_N, last_N, every_N, by_score_N (the N blocks of each tower whose experts "
           "have the largest gradients, or where model.weights has experts), or a list of numbers from 0; image.3 or "
           "text.3 names a block of one tower",
           .incidental = "all"),
    OPTION_NUMBER(
        INTEGER, "score_steps", 1, 10000, "10",
        "training steps per task, with experts in every block, before as many batches score the blocks: by_score_N",
        INTO(struct adapter_settings, score_steps), .when = "blocks=by_score_*", .written = true, .incidental = "10"),
    OPTION_NUMBER(REAL, "score_noise", 0, 10, "0.001",
                  "noise in place of adapter.init_noise while blocks are scored: by_score_N",
                  INTO(struct adapter_settings, score_noise), .when = "blocks=by_score_* and kind=ffn", .written = true,
                  .incidental = "0.001"),
    OPTION_ONE_OF("towers", ADAPTED_TOWERS_CHOICES, "both", "towers with experts",
                  INTO(struct adapter_settings, place.towers), .stated = STATED_UNLESS_DEFAULT, .incidental = "both"),
    OPTION_NUMBER(INTEGER, "share_across_blocks", 0, 64, "0",
                  "groups of successive blocks that share one set of experts and one router (WideNet); 0: every block "
                  "has its own",
                  INTO(struct adapter_settings, place.banks), .stated = STATED_UNLESS_DEFAULT, .incidental = "0"),
    OPTION_NUMBER(
        INTEGER, "share_routing", 0, 64, "0",
        "groups of successive blocks that share the routing decision of their first block; 0: every block decides",
        INTO(struct adapter_settings, place.decisions), .stated = STATED_UNLESS_DEFAULT, .incidental = "0"),
    OPTION(BOOLEAN, "shared_expert", "false", "additional expert in each block that every sample uses, with gate 1",
           INTO(struct adapter_settings, shared_expert), .stated = STATED_UNLESS_DEFAULT, .when = "kind!=ffn",
           .written = true, .incidental = "false"),
    OPTION_ONE_OF("balance_loss", "none|cv|widenet|rmoe", "none",
                  "balance loss that spreads samples over the experts: cv for noisy top-k, widenet and rmoe for router "
                  "softmax_topk",
                  INTO(struct adapter_settings, balance), .incidental = "none"),
    OPTION_NUMBER(REAL, "balance_weight", 0, 1000, "0.01", "weight of the balance loss of each block",
                  INTO(struct adapter_settings, balance_weight),
                  .synonyms = "aux_loss_coef|aux_loss_weight|balance_loss_weight", .when = "balance_loss!=none",
                  .written = true, .incidental = "0.01"),
    OPTION_NUMBER(INTEGER, "freeze_top_k", 0, MERGE_SOURCES, "2", "experts frozen in each block after each task",
                  .when = "freeze=most_used|random"),
    OPTION(TEXT, "freeze", "most_used", "rule that chooses the experts to freeze after a task; see mtil list freezing",
           .incidental = "most_used"),
    OPTION_ONE_OF("routers", "per_task|one", "per_task", "number of routers: one per task, or one that all tasks train",
                  .incidental = "per_task"),
    {0}};

const struct option merge_options[] = {
    OPTION(TEXT, "policy", "most_used", "policy that chooses the experts to merge; see mtil list policies"),
    OPTION_NUMBER(INTEGER, "every", 1, 1e9, "100",
                  "iterations between merges (M in Park's Algorithm 1), or the number that merge.schedule uses",
                  INTO(struct merge_plan, every), .when = "schedule!=end_of_task"),
    OPTION_ONE_OF("schedule", MERGE_SCHEDULE_CHOICES, "every", "schedule of the merges; see mtil list schedules",
                  .when = "policy!=none|ewa", .incidental = "every"),
    OPTION_NUMBER(
        REAL, "least_fall", 0, 1, "0.01",
        "share by which the mean loss must fall, with schedule: plateau, for training to go on without a merge",
        INTO(struct merge_plan, least_fall), .when = "schedule=plateau", .incidental = "0.01"),
    OPTION(BOOLEAN, "analysis", "yes", "record of what becomes of each merge; the training does not depend on it",
           INTO(struct merge_plan, analysis), .when = "policy!=none|ewa", .incidental = "*"),
    OPTION_ONE_OF("moments", MERGE_MOMENTS_CHOICES, "keep",
                  "treatment of the optimizer's moments of the replaced expert", INTO(struct merge_plan, moments),
                  .when = "policy!=none|ewa"),
    {0}};

const struct option combine_options[] = {
    OPTION(TEXT, "name", "mean", "combiner that computes the merged expert; see mtil list combiners"), {0}};

static size_t whole(const struct options *options, const char *name)
{
    return (size_t)options_integer(options, name);
}

static status read_blocks(struct block_choice *blocks, const struct options *o, struct error *error)
{
    size_t count;
    OWNED const char **words = options_list_items(o, "blocks", &count);
    status result = block_choice_read(blocks, words, count, error);
    return result == OK ? OK : error_context(error, "suite: adapter.blocks");
}

static status choose_start(struct adapter_settings *s, bool drawn, struct error *error)
{
    if (s->start == EXPERT_START_INDEPENDENT && s->kind->place != REPLACES_MLP)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: adapter.start is independent, which is said of whole MLPs, but adapter.kind is %s; set "
            "adapter.start=copies, or adapter.kind=ffn",
            s->kind->name);
    if (s->start == EXPERT_START_AUTO)
        s->start = drawn ? EXPERT_START_INDEPENDENT : EXPERT_START_COPIES;
    if (s->start == EXPERT_START_COPIES || s->init_noise == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: adapter.init_noise is %g, the noise of copies of an MLP, but by adapter.start each expert "
                     "is drawn by itself; set adapter.start=copies or adapter.init_noise=0",
                     (double)s->init_noise);
}

status adapter_settings_of(struct adapter_settings *s, const struct options *o, size_t tasks, bool drawn,
                           struct error *error)
{
    const struct freeze_policy *freeze;
    *s = (struct adapter_settings){.tasks = options_choice(o, "routers") == 0 ? tasks : 1};
    options_fill(o, adapter_options, s);
    TRY(expert_kind_find(&s->kind, options_text(o, "kind"), error));
    TRY(router_kind_find(&s->router, options_text(o, "router"), error));
    TRY(choose_start(s, drawn, error));
    TRY(read_blocks(&s->place.blocks, o, error));
    if (adapter_place_check_sharing(&s->place, error) != OK)
        return error_context(error, "suite");
    TRY(router_check(s, "suite", error));
    TRY(freeze_policy_find(&freeze, options_text(o, "freeze"), error));
    if (freeze->counts && whole(o, "freeze_top_k") > s->experts)
        return error_set(error, ERROR_ARGUMENT, "suite: adapter.freeze_top_k is %zu, but there are only %zu experts",
                         whole(o, "freeze_top_k"), s->experts);
    if (s->kind->set_unread != NULL)
        s->kind->set_unread(s);
    if (s->bottleneck % 4 != 0)
        return error_set(error, ERROR_ARGUMENT, "suite: adapter.bottleneck must be a multiple of 4, found %zu",
                         s->bottleneck);
    if (s->router->averages && strcmp(options_text(o, "freeze"), "none") != 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: adapter.freeze is %s, but with router %s all experts are used alike and none of them by "
            "choice; set adapter.freeze=none",
            options_text(o, "freeze"), s->router->name);
    return OK;
}

status merge_plan_of(struct merge_plan *plan, const struct options *merge, const struct options *combine,
                     struct error *error)
{
    *plan = (struct merge_plan){.schedule = merge_schedule_at(options_choice(merge, "schedule")),
                                .policy_options = merge,
                                .combiner_options = combine};
    options_fill(merge, merge_options, plan);
    TRY(merge_policy_find(&plan->policy, options_text(merge, "policy"), error));
    TRY(merge_combiner_find(&plan->combiner, options_text(combine, "name"), error));
    const struct option *noise = options_find(options_table(merge), "noise");
    if (noise != NULL && options_choice(merge, "target") == TARGET_NOISE)
        plan->noise = (float)options_real(merge, "noise");
    if (!merge_policy_plans(plan->policy)) { /* nothing is due, and nothing combined */
        plan->schedule = merge_schedule_at(0);
        plan->moments = MOMENTS_KEEP;
        plan->combiner = &combine_mean;
    }
    return OK;
}

/* Whether no tower has experts in two blocks, whatever the model. */
static bool is_one_block(const struct block_choice *choice)
{
    bool single = choice->rule == BLOCKS_LISTED;
    for (int t = 0; single && t < TOWERS; t++)
        single = (choice->listed[t] & (choice->listed[t] - 1)) == 0;
    return single || (choice->n == 1 && choice->rule != BLOCKS_EVERY);
}

status merge_plan_check(const struct merge_plan *plan, const struct adapter_settings *adapter, struct error *error)
{
    const struct option *table = plan->policy->options;
    bool counts = table != NULL && options_find(table, "sources") != NULL;
    size_t sources = counts ? whole(plan->policy_options, "sources") : 2;
    if (!merge_policy_plans(plan->policy))
        return OK;
    if (adapter->router->averages)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: merge policy %s looks for experts that are used little, but with adapter.router %s all are "
            "used alike; set merge.policy=ewa or none",
            plan->policy->name, adapter->router->name);
    if (adapter->kind == &expert_ffn && plan->combiner == &combine_ties)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: combine.name is ties, which keeps the values that are farthest from zero, but experts "
                         "of adapter.kind ffn start from the model's MLP, and a merge would lose most of it; "
                         "choose another combiner: mtil list combiners");
    if (plan->combiner->pairs && sources != 2)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: combine.name is %s, which makes one expert of two, but merge.sources is %zu; set "
                         "merge.sources=2, or choose another combiner: mtil list combiners",
                         plan->combiner->name, sources);
    if (adapter->capacity > 0 && plan->policy->needs & (NEEDS_PAIR_COUNTS | NEEDS_NEXT_COUNTS))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge policy %s counts choices that go together, also those that adapter.capacity %g "
                         "takes away; set adapter.capacity=0 or another merge.policy",
                         plan->policy->name, adapter->capacity);
    if (plan->policy->needs & NEEDS_NEXT_COUNTS && (adapter->place.banks == 1 || is_one_block(&adapter->place.blocks)))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge policy %s looks at the experts of the next block, but %s, so that it would "
                         "never merge; choose another merge.policy",
                         plan->policy->name,
                         adapter->place.banks == 1 ? "with adapter.share_across_blocks 1 all blocks have the same"
                                                   : "by adapter.blocks no tower has experts in two");
    if (sources > adapter->experts)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge policy %s merges %zu experts, but there are only %zu in a block, so that it "
                         "would never merge; raise adapter.experts, or set merge.policy=none",
                         plan->policy->name, sources, adapter->experts);
    if (plan->policy->needs & NEEDS_PAIR_COUNTS && adapter->top_k < 2)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge policy %s merges experts that samples chose together, but with adapter.top_k 1 "
                         "each chooses one, so that it would never merge; raise adapter.top_k",
                         plan->policy->name);
    return OK;
}

status freeze_plan_of(struct freeze_plan *plan, const struct options *adapter, struct error *error)
{
    *plan = (struct freeze_plan){.top_k = whole(adapter, "freeze_top_k"), .options = adapter};
    return freeze_policy_find(&plan->policy, options_text(adapter, "freeze"), error);
}

#include "adapters/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "adapters/routers/router.h"

const struct option adapter_options[] = {
    {.name = "experts",
     .synonyms = "num_experts|n_experts|experts_num|expert_num",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = ADAPTER_EXPERTS,
     .fallback = "22",
     .help = "experts per block"},
    {.name = "kind", .type = OPTION_TEXT, .fallback = "lora", .help = "kind of expert; see mtil list experts"},
    {.name = "start",
     .type = OPTION_CHOICE,
     .choices = "copies|independent|auto",
     .fallback = "copies",
     .help = "start values of experts of kind ffn: copies of the MLP, or independent draws from the distribution of an "
             "MLP from scratch; auto: independent with model.weights: scratch, else copies"},
    {.name = "init_noise",
     .type = OPTION_REAL,
     .maximum = 10,
     .fallback = "0",
     .help = "noise added to experts of kind ffn at the start: its standard deviation, in adapter.noise_unit"},
    {.name = "noise_unit",
     .type = OPTION_CHOICE,
     .choices = "deviation|one",
     .fallback = "deviation",
     .help = "unit of adapter.init_noise and adapter.score_noise: the standard deviation of each tensor of the MLP, or "
             "one for absolute noise"},
    {.name = "top_k",
     .synonyms = "topk|k|num_experts_per_tok|moe_top_k",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 64,
     .fallback = "2",
     .help = "experts chosen per sample"},
    {.name = "bottleneck",
     .synonyms = "rank|r|lora_r|lora_rank|ffn_num",
     .type = OPTION_INTEGER,
     .minimum = 4,
     .maximum = 4096,
     .fallback = "64",
     .help = "hidden units of an expert"},
    {.name = "scale",
     .synonyms = "alpha|lora_alpha|ffn_adapter_scalar",
     .type = OPTION_REAL,
     .maximum = 100,
     .fallback = "0.1",
     .help = "factor of an expert's output"},
    {.name = "dropout",
     .synonyms = "lora_dropout|drop",
     .type = OPTION_REAL,
     .maximum = 0.99,
     .fallback = "0.1",
     .help = "dropout of an expert's hidden units"},
    {.name = "noise_epsilon",
     .type = OPTION_REAL,
     .maximum = 10,
     .fallback = "0.01",
     .help = "least standard deviation of the router's noise"},
    {.name = "expert_input",
     .type = OPTION_CHOICE,
     .choices = "residual|post_ln",
     .fallback = "residual",
     .help = "input of the experts: the residual stream, or the output of ln_2"},
    {.name = "router",
     .type = OPTION_TEXT,
     .fallback = "noisy_topk",
     .help = "router that chooses the experts; see mtil list routers"},
    {.name = "router_noise",
     .type = OPTION_REAL,
     .maximum = 10,
     .fallback = "0",
     .help = "standard deviation of the noise that router softmax_topk adds to its logits in training; WideNet: 1 / "
             "experts"},
    {.name = "capacity",
     .synonyms = "capacity_factor",
     .type = OPTION_REAL,
     .maximum = 1000,
     .fallback = "0",
     .help = "capacity of an expert of router softmax_topk in a training batch, as a multiple of its fair share; 0: no "
             "limit"},
    {.name = "aligned_output",
     .type = OPTION_CHOICE,
     .choices = "none|shared|each",
     .fallback = "none",
     .help = "RMoE's aligned output for router softmax_topk, where the gates keep their gradients: shared for weights "
             "that sum to 1, each for weights of 1 (its Equation 7), which is the same with one expert per sample"},
    {.name = "gate_input",
     .type = OPTION_CHOICE,
     .choices = "class_token|mean",
     .fallback = "class_token",
     .help = "input of the router: the first token of a sample, or the mean of its tokens"},
    {.name = "routing",
     .type = OPTION_CHOICE,
     .choices = "per_sample|per_token",
     .fallback = "per_sample",
     .help = "unit of a routing decision: one for all tokens of a sample, or one per token; selection counts are of "
             "the same unit"},
    {.name = "blocks",
     .type = OPTION_LIST,
     .fallback = "all",
     .help = "blocks with experts: all, first_N, last_N, every_N, by_score_N (the N blocks of each tower whose experts "
             "have the largest gradients, or where model.weights has experts), or a list of numbers from 0; image.3 or "
             "text.3 names a block of one tower"},
    {.name = "score_steps",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 10000,
     .fallback = "10",
     .help = "training steps per task, with experts in every block, before as many batches score the blocks: "
             "by_score_N"},
    {.name = "score_noise",
     .type = OPTION_REAL,
     .maximum = 10,
     .fallback = "0.001",
     .help = "noise in place of adapter.init_noise while blocks are scored: by_score_N"},
    {.name = "towers",
     .type = OPTION_CHOICE,
     .choices = ADAPTED_TOWERS_CHOICES,
     .fallback = "both",
     .help = "towers with experts"},
    {.name = "share_across_blocks",
     .type = OPTION_INTEGER,
     .maximum = 64,
     .fallback = "0",
     .help = "groups of successive blocks that share one set of experts and one router (WideNet); 0: every block has "
             "its own"},
    {.name = "share_routing",
     .type = OPTION_INTEGER,
     .maximum = 64,
     .fallback = "0",
     .help =
         "groups of successive blocks that share the routing decision of their first block; 0: every block decides"},
    {.name = "shared_expert",
     .type = OPTION_BOOLEAN,
     .fallback = "false",
     .help = "additional expert in each block that every sample uses, with gate 1"},
    {.name = "balance_loss",
     .type = OPTION_CHOICE,
     .choices = "none|cv|widenet|rmoe",
     .fallback = "none",
     .help = "balance loss that spreads samples over the experts: cv for noisy top-k, widenet and rmoe for router "
             "softmax_topk"},
    {.name = "balance_weight",
     .synonyms = "aux_loss_coef|aux_loss_weight|balance_loss_weight",
     .type = OPTION_REAL,
     .maximum = 1000,
     .fallback = "0.01",
     .help = "weight of the balance loss of each block"},
    {.name = "freeze_top_k",
     .type = OPTION_INTEGER,
     .maximum = MERGE_SOURCES,
     .fallback = "2",
     .help = "experts frozen in each block after each task"},
    {.name = "freeze",
     .type = OPTION_TEXT,
     .fallback = "most_used",
     .help = "rule that chooses the experts to freeze after a task; see mtil list freezing"},
    {.name = "routers",
     .type = OPTION_CHOICE,
     .choices = "per_task|one",
     .fallback = "per_task",
     .help = "number of routers: one per task, or one that all tasks train"},
    {0}};

const struct option merge_options[] = {
    {.name = "policy",
     .type = OPTION_TEXT,
     .fallback = "most_used",
     .help = "policy that chooses the experts to merge; see mtil list policies"},
    {.name = "every",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .fallback = "100",
     .help = "iterations between merges (M in Park's Algorithm 1), or the number that merge.schedule uses"},
    {.name = "schedule",
     .type = OPTION_CHOICE,
     .choices = MERGE_SCHEDULE_CHOICES,
     .fallback = "every",
     .help = "schedule of the merges; see mtil list schedules"},
    {.name = "least_fall",
     .type = OPTION_REAL,
     .maximum = 1,
     .fallback = "0.01",
     .help = "share by which the mean loss must fall, with schedule: plateau, for training to go on without a merge"},
    {.name = "analysis",
     .type = OPTION_BOOLEAN,
     .fallback = "yes",
     .help = "record of what becomes of each merge; the training does not depend on it"},
    {.name = "moments",
     .type = OPTION_CHOICE,
     .choices = MERGE_MOMENTS_CHOICES,
     .fallback = "keep",
     .help = "treatment of the optimizer's moments of the replaced expert"},
    {0}};

const struct option combine_options[] = {{.name = "name",
                                          .type = OPTION_TEXT,
                                          .fallback = "mean",
                                          .help = "combiner that computes the merged expert; see mtil list combiners"},
                                         {0}};

static size_t whole(const struct options *options, const char *name)
{
    return (size_t)options_integer(options, name);
}

/* The key's own default, even where another key of the suite replaces it. */
static const char *fallback_of(const struct options *options, const char *key)
{
    const struct option *known = options_find(adapter_options, key);
    known = known != NULL ? known : options_find(merge_options, key);
    return (known != NULL ? known : options_find(options_table(options), key))->fallback;
}

static bool at_default(const struct options *options, const char *number)
{
    return strtod(options_as_text(options, number), NULL) == strtod(fallback_of(options, number), NULL);
}

/* Refuses keys that a kind of expert or a router does not use, since they would have no effect. A value that the suite set
 * through another key cannot be left out, so the message says which value to set. */
static status refuse_keys(const char *what, const char *name, const struct refused_key *refused,
                          const struct options *o, struct error *error)
{
    for (size_t i = 0; i < REFUSED_KEYS && refused[i].key != NULL; i++) {
        const char *key = refused[i].key, *value = options_as_text(o, key), *fallback = fallback_of(o, key);
        char remedy[128] = "leave it out";
        if (strcmp(value, fallback) == 0)
            continue;
        if (!options_given(o, key))
            snprintf(remedy, sizeof remedy, "set adapter.%s=%s", key, fallback);
        return error_set(error, ERROR_ARGUMENT, "suite: adapter.%s is %s, but with adapter.%s %s %s; %s", key, value,
                         what, name, refused[i].reason, remedy);
    }
    return OK;
}

static status check_balance_weight(const struct adapter_settings *s, const struct options *o, struct error *error)
{
    char remedy[128] = "leave it out";
    if (s->balance != BALANCE_NONE || at_default(o, "balance_weight"))
        return OK;
    if (!options_given(o, "balance_weight"))
        snprintf(remedy, sizeof remedy, "set adapter.balance_weight=%s, its usual value",
                 fallback_of(o, "balance_weight"));
    else if (s->router->balances >> BALANCE_CV & 1)
        snprintf(remedy, sizeof remedy, "set adapter.balance_loss=cv");
    else if (s->router->balances >> BALANCE_LOSS_RMOE & 1)
        snprintf(remedy, sizeof remedy, "set adapter.balance_loss=widenet, or rmoe");
    return error_set(error, ERROR_ARGUMENT, "suite: adapter.balance_weight is %s, but there is no balance loss; %s",
                     options_as_text(o, "balance_weight"), remedy);
}

static status check_scores(const struct adapter_settings *s, const struct options *o, struct error *error)
{
    static const char *const keys[] = {"score_steps", "score_noise"};
    for (size_t i = 0; s->place.blocks.rule != BLOCKS_BY_SCORE && i < sizeof keys / sizeof *keys; i++)
        if (!at_default(o, keys[i]))
            return error_set(error, ERROR_ARGUMENT,
                             "suite: adapter.%s is %s, but adapter.blocks asks for no scores; set "
                             "adapter.blocks=by_score_N, as in by_score_3",
                             keys[i], options_as_text(o, keys[i]));
    return OK;
}

static status read_blocks(struct block_choice *blocks, const struct options *o, struct error *error)
{
    size_t count;
    const char **words = options_list_items(o, "blocks", &count);
    status result = block_choice_read(blocks, words, count, error);
    free(words);
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

void adapter_settings_stated(struct adapter_settings *s, const struct options *o)
{
    s->top_k = whole(o, "top_k");
    s->scale = (float)options_real(o, "scale");
    s->input = (enum expert_input)options_choice(o, "expert_input");
    s->aligned_output = (enum alignment)options_choice(o, "aligned_output");
    s->gate_input = (enum gate_input)options_choice(o, "gate_input");
    s->routing = (enum routing_unit)options_choice(o, "routing");
    s->shared_expert = options_boolean(o, "shared_expert");
    s->place.towers = (enum adapted_towers)options_choice(o, "towers");
    s->place.banks = whole(o, "share_across_blocks");
    s->place.decisions = whole(o, "share_routing");
}

status adapter_settings_of(struct adapter_settings *s, const struct options *o, size_t tasks, bool drawn,
                           struct error *error)
{
    *s = (struct adapter_settings){.experts = whole(o, "experts"),
                                   .tasks = options_choice(o, "routers") == 0 ? tasks : 1,
                                   .bottleneck = whole(o, "bottleneck"),
                                   .dropout = (float)options_real(o, "dropout"),
                                   .noise_epsilon = (float)options_real(o, "noise_epsilon")};
    adapter_settings_stated(s, o);
    TRY(expert_kind_find(&s->kind, options_text(o, "kind"), error));
    TRY(refuse_keys("kind", s->kind->name, s->kind->refused, o, error));
    TRY(router_kind_find(&s->router, options_text(o, "router"), error));
    TRY(refuse_keys("router", s->router->name, s->router->refused, o, error));
    s->router_noise = (float)options_real(o, "router_noise");
    s->capacity = options_real(o, "capacity");
    s->start = (enum expert_start)options_choice(o, "start");
    s->init_noise = (float)options_real(o, "init_noise");
    s->absolute_noise = options_choice(o, "noise_unit") == 1;
    TRY(choose_start(s, drawn, error));
    s->balance = (enum balance_kind)options_choice(o, "balance_loss");
    s->balance_weight = (float)options_real(o, "balance_weight");
    TRY(read_blocks(&s->place.blocks, o, error));
    s->score_steps = whole(o, "score_steps");
    s->score_noise = (float)options_real(o, "score_noise");
    TRY(check_scores(s, o, error));
    if (adapter_place_check_sharing(&s->place, error) != OK)
        return error_context(error, "suite");
    if (s->top_k > s->experts)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: adapter.top_k is %zu, but there are only %zu experts to choose from; lower adapter.top_k "
            "or raise adapter.experts",
            s->top_k, s->experts);
    if (s->routing == ROUTING_PER_TOKEN && s->gate_input != GATE_CLASS_TOKEN)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: adapter.gate_input is %s, but with adapter.routing per_token every token decides for "
                         "itself; set adapter.gate_input=class_token or adapter.routing=per_sample",
                         options_text(o, "gate_input"));
    if (freeze_reads(o, "freeze_top_k") && whole(o, "freeze_top_k") > s->experts)
        return error_set(error, ERROR_ARGUMENT, "suite: adapter.freeze_top_k is %zu, but there are only %zu experts",
                         whole(o, "freeze_top_k"), s->experts);
    if (s->kind->set_refused != NULL)
        s->kind->set_refused(s);
    if (s->bottleneck % 4 != 0)
        return error_set(error, ERROR_ARGUMENT, "suite: adapter.bottleneck must be a multiple of 4, found %zu",
                         s->bottleneck);
    TRY(check_balance_weight(s, o, error));
    if (!(s->router->balances >> s->balance & 1))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: adapter.balance_loss is %s, which router %s does not have; cv is that of noisy_topk, "
                         "widenet and rmoe are those of softmax_topk",
                         options_text(o, "balance_loss"), s->router->name);
    if (s->router->check != NULL)
        TRY(s->router->check(s, error));
    if (s->router->averages && strcmp(options_text(o, "freeze"), "none") != 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: adapter.freeze is %s, but with router %s all experts are used alike and none of them by "
            "choice; set adapter.freeze=none",
            options_text(o, "freeze"), s->router->name);
    return OK;
}

static status read_noise(struct merge_plan *plan, const struct options *merge, struct error *error)
{
    if (plan->policy->options == NULL || options_find(plan->policy->options, "noise") == NULL)
        return OK;
    if (options_choice(merge, "target") == TARGET_NOISE)
        plan->noise = (float)options_real(merge, "noise");
    else if (!at_default(merge, "noise"))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge.noise is %s, but no noise is added with merge.target %s; set merge.target=noise",
                         options_as_text(merge, "noise"), options_text(merge, "target"));
    return OK;
}

/* Refuses keys without an effect, so that runs that differ in them alone do not count as different. */
static status check_plan(const struct merge_plan *plan, const struct options *merge, struct error *error)
{
    const char *policy = plan->policy->name, *schedule = plan->schedule->name;
    if (!plan->schedule->needs_loss && !at_default(merge, "least_fall"))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge.least_fall is %s, but merge.schedule %s does not look at the loss; set "
                         "merge.schedule=plateau",
                         options_as_text(merge, "least_fall"), schedule);
    if (plan->policy->after_step == NULL)
        return OK;
    if (plan->schedule != merge_schedule_at(0))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge.schedule is %s, but merge policy %s averages after every step; set "
                         "merge.schedule=every",
                         schedule, policy);
    if (strcmp(plan->combiner->name, "mean") != 0 || plan->moments != MOMENTS_KEEP)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: merge policy %s averages by a formula of its own and leaves moments alone; expected "
                         "combine.name mean and merge.moments keep, found %s and %s",
                         policy, plan->combiner->name, options_text(merge, "moments"));
    return OK;
}

status merge_plan_of(struct merge_plan *plan, const struct options *merge, const struct options *combine,
                     struct error *error)
{
    *plan = (struct merge_plan){.schedule = merge_schedule_at(options_choice(merge, "schedule")),
                                .every = whole(merge, "every"),
                                .least_fall = options_real(merge, "least_fall"),
                                .analysis = options_boolean(merge, "analysis"),
                                .moments = (enum merge_moments)options_choice(merge, "moments"),
                                .policy_options = merge,
                                .combiner_options = combine};
    TRY(merge_policy_find(&plan->policy, options_text(merge, "policy"), error));
    TRY(merge_combiner_find(&plan->combiner, options_text(combine, "name"), error));
    TRY(read_noise(plan, merge, error));
    TRY(check_plan(plan, merge, error));
    if (!merge_policy_plans(plan->policy)) { /* nothing is due, and nothing combined */
        plan->schedule = merge_schedule_at(0);
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
                         "of adapter.kind ffn start from the model's MLP, most of which would be lost at a merge; "
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

bool merge_reads(const struct options *merge, const char *section, const char *key)
{
    const struct merge_schedule *schedule = merge_schedule_at(options_choice(merge, "schedule"));
    const struct merge_policy *policy;
    struct error ignored;
    bool own = strcmp(section, "merge") == 0 && options_find(merge_options, key) == NULL;
    if (merge_policy_find(&policy, options_text(merge, "policy"), &ignored) != OK || own)
        return true;
    if (strcmp(key, "every") == 0 && schedule->due == NULL)
        return false;
    if (strcmp(key, "least_fall") == 0 && !schedule->needs_loss)
        return false;
    return merge_policy_plans(policy) || strcmp(key, "policy") == 0;
}

bool freeze_reads(const struct options *adapter, const char *key)
{
    const struct freeze_policy *policy;
    struct error ignored;
    return strcmp(key, "freeze_top_k") != 0 ||
           freeze_policy_find(&policy, options_text(adapter, "freeze"), &ignored) != OK || policy->counts;
}

status freeze_plan_of(struct freeze_plan *plan, const struct options *adapter, struct error *error)
{
    *plan = (struct freeze_plan){.top_k = whole(adapter, "freeze_top_k"), .options = adapter};
    return freeze_policy_find(&plan->policy, options_text(adapter, "freeze"), error);
}

status freeze_policy_keys(const char *name, const struct option **table, struct error *error)
{
    const struct freeze_policy *policy;
    TRY(freeze_policy_find(&policy, name, error));
    *table = policy->options;
    return OK;
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

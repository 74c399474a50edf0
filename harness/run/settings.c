#include "harness/run/settings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/model/weights.h"
#include "harness/run/settings_internal.h"
#include "harness/selectors/selector.h"
#include "models/backend_options.h"

static const struct option model_options[] = {
    {.name = "weights",
     .synonyms = "arch|backbone|pretrained|checkpoint_path|ckpt|model_name",
     .type = OPTION_TEXT,
     .fallback = "mini",
     .help = "weights of CLIP or SigLIP: a file (safetensors, .pt, .pth, .bin, or the index of shards), or mini, the "
             "small model "
             "that ships; with head.name: linear also an image tower alone, as timm, Hugging Face's ViT or mtil "
             "classify save it, or scratch for random weights"},
    {.name = "vocabulary",
     .synonyms = "vocab|tokenizer|bpe_path",
     .type = OPTION_TEXT,
     .fallback = "mini",
     .help = "vocabulary file of the tokenizer, SigLIP's is a .model; mini: the small model's"},
    {.name = "heads",
     .type = OPTION_LIST,
     .fallback = "auto",
     .help = "attention heads of the image tower and the text tower, as in 16,16; auto reads them from a configuration "
             "beside the weights; from scratch one number, auto: width / 64"},
    {.name = "activation",
     .synonyms = "act|act_layer|hidden_act",
     .type = OPTION_CHOICE,
     .choices = CLIP_ACTIVATION_CHOICES,
     .fallback = "auto",
     .help = "activation of the MLPs: quick_gelu for OpenAI's weights, gelu_tanh for SigLIP's, gelu for most others; "
             "auto reads it from a "
             "configuration beside the weights, and is gelu from scratch"},
    {0}};

static const struct option head_options[] = {
    {.name = "name",
     .type = OPTION_TEXT,
     .fallback = "text",
     .help = "head that turns image features into scores; see mtil list heads"},
    {0}};

static const struct option method_options[] = {{.name = "name",
                                                .type = OPTION_TEXT,
                                                .fallback = "moe_adapters",
                                                .help = "method that trains the tasks; see mtil list methods"},
                                               {0}};

static const struct option run_options[] = {
    {.name = "seeds", .synonyms = "random_seed", .type = OPTION_LIST, .fallback = "1", .help = "seeds, one run each"},
    {.name = "row", .type = OPTION_TEXT, .help = "row of a suite with rows; it names the run in tables"},
    {.name = "name", .type = OPTION_TEXT, .help = "name of the run, stored with it; --where run.name=NAME finds it"},
    {.name = "note", .type = OPTION_TEXT, .help = "purpose of the run, stored with it"},
    BACKEND_OPTIONS("auto", "auto", "0"),
    GPUS_OPTION("1"),
    {.name = "threads",
     .synonyms = "num_threads|workers|num_workers",
     .type = OPTION_INTEGER,
     .maximum = 1024,
     .fallback = "0",
     .help = "number of threads; 0: one per core; results do not depend on it"},
    {.name = "evaluation_batch",
     .type = OPTION_INTEGER,
     .maximum = 65536,
     .fallback = "0",
     .help =
         "test images encoded at a time; 0: as many as GPU memory allows, 64 on the CPU; results do not depend on it, "
         "except for rounding on a GPU"},
    {.name = "keep_features",
     .type = OPTION_BOOLEAN,
     .fallback = "yes",
     .help = "reuse of predictions that cannot have changed; results do not depend on it"},
    CACHE_OPTIONS,
    {.name = "folder",
     .synonyms = "output|output_dir|out_dir|save_dir|log_dir|outdir",
     .type = OPTION_TEXT,
     .fallback = "runs",
     .help = "folder of resume files and weights"},
    {.name = "database",
     .synonyms = "db|results",
     .type = OPTION_TEXT,
     .fallback = SETTINGS_DATABASE,
     .help = "database of the results"},
    {.name = "checkpoints",
     .type = OPTION_CHOICE,
     .choices = "last|all|none",
     .fallback = "last",
     .help = "trained weights to save: the last, those after every task, or none"},
    {.name = "checkpoint_every",
     .type = OPTION_INTEGER,
     .maximum = 1e9,
     .fallback = "0",
     .help = "iterations between resume points within a task; 0: none"},
    {.name = "log_every",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .fallback = "10",
     .help = "iterations between stored losses"},
    {.name = "trajectory_every",
     .type = OPTION_INTEGER,
     .maximum = 1e9,
     .fallback = "0",
     .help = "iterations between stored sketches of experts, beside the start and the end of each task; 0: none"},
    {0}};

/* What the choosers know, by number. */
/* clang-format off */
#define NAME_AT(stem, type, entry_at) \
    static const char *stem(size_t index) \
    { \
        const type *entry = entry_at(index); \
        return entry != NULL ? entry->name : NULL; \
    }
NAME_AT(method_name, struct method, method_at)
NAME_AT(head_name, struct head, head_at)
NAME_AT(policy_name, struct merge_policy, merge_policy_at)
NAME_AT(combiner_name, struct merge_combiner, merge_combiner_at)
NAME_AT(freezing_name, struct freeze_policy, freeze_policy_at)
/* clang-format on */

static const char *reader_name(size_t index)
{
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    return index < count ? readers[index]->name : NULL;
}

static const char *weights_with_sizes(size_t index)
{
    return index == 0 ? "scratch" : NULL;
}

static status method_keys(const char *name, const struct option **table, struct error *error)
{
    const struct method *method;
    TRY(method_find(&method, name, error));
    *table = method->options;
    return OK;
}

static status head_keys(const char *name, const struct option **table, struct error *error)
{
    const struct head *head;
    TRY(head_find(&head, name, error));
    *table = head->options;
    return OK;
}

static status reader_keys(const char *name, const struct option **table, struct error *error)
{
    const struct dataset_reader *reader;
    if (dataset_reader_find(&reader, name, error) != OK) {
        size_t used = strlen(error->message);
        snprintf(error->message + used, sizeof error->message - used,
                 "; data.order is I, II or a list of datasets, or of names whose reader `tasks` gives");
        return ERROR_ARGUMENT;
    }
    *table = reader->options;
    return OK;
}

/* Paths of weights and images are incidental: their contents identify a run (harness/run/inputs.h). */
const struct suite_section settings_sections[] = {
    {.name = "model",
     .options = model_options,
     .incidental = "weights|vocabulary",
     .chooser = "weights",
     .chosen = model_choice_keys,
     .choice = weights_with_sizes,
     .about = "trained model and its weights",
     .preset_by = "method.ffn",
     .preset = mixture_preset},
    {.name = "head",
     .options = head_options,
     .chooser = "name",
     .chosen = head_keys,
     .choice = head_name,
     .about = "head that turns image features into class scores",
     .preset_by = "method.ffn",
     .preset = mixture_preset,
     .used = settings_uses_head},
    {.name = "data",
     .options = settings_data_options,
     .incidental = "root|order_name|setting|on_unreadable", /* the digests show which images are left out */
     .shorthand = settings_data_shorthand,
     .chooser = "split_by",
     .chosen = settings_split_keys,
     .choice = settings_split_name,
     .about = "tasks, their order and their images",
     .used = settings_uses_data},
    {.name = "adapter",
     .options = adapter_options,
     .chooser = "freeze",
     .chosen = freeze_policy_keys,
     .choice = freezing_name,
     .about = "mixtures of experts: number, place, routers and freezing",
     /* what runs did before there were these keys */
     .incidental = "blocks=all|towers=both|routers=per_task|freeze=most_used|shared_expert=false|balance_loss=none|"
                   "balance_weight=0.01|gate_input=class_token|routing=per_sample|kind=lora|start=copies|init_noise=0|"
                   "router=noisy_topk|router_noise=0|capacity=0|aligned_output=none|score_steps=10|score_noise=0.001|"
                   "noise_unit=deviation|"
                   "share_across_blocks=0|share_routing=0",
     .preset_by = "method.ffn",
     .preset = mixture_preset,
     .used = settings_uses_adapter},
    {.name = "delta",
     .options = delta_options,
     .about = "low-rank deltas of the towers' matrices: rank, place and start",
     .used = settings_uses_delta},
    {.name = "merge",
     .options = merge_options,
     .chooser = "policy",
     .chosen = merge_policy_keys,
     .choice = policy_name,
     .about = "choice of the experts to merge, and schedule of the merges",
     .incidental =
         "schedule=every|target=least_used|noise=0.01|least_fall=0.01|until=1" /* what runs did before these keys */
         "|analysis|timeout",
     .free = "options",
     .preset_by = "method.ffn",
     .preset = mixture_preset,
     .used = settings_uses_merge},
    {.name = "combine",
     .options = combine_options,
     .chooser = "name",
     .chosen = merge_combiner_keys,
     .choice = combiner_name,
     .about = "combination of the merged experts",
     .used = settings_uses_merge},
    {.name = "training",
     .options = training_options,
     .about = "steps, batches, optimizer, schedule and augmentation of every task",
     .incidental = "epochs=0|warmup_epochs=0|loss=cross_entropy|optimizer=adamw|momentum=0.9|" AUGMENT_INCIDENTAL,
     .used = settings_uses_training},
    {.name = "method",
     .options = method_options,
     .chooser = "name",
     .chosen = method_keys,
     .choice = method_name,
     .alias = "method=name",
     .free = "options",
     .about = "method that trains the tasks",
     .incidental = "ffn=dense|dropout=0|timeout"}, /* what runs did before there were the keys */
    {.name = "selector",
     .options = selector_options,
     .alias = "selector=kind",
     .about = "choice of the router of a test image",
     .incidental = "shrinkage=0.1", /* a key that runs of other kinds had no need of */
     .preset_by = "selector.kind",
     .preset = selector_preset,
     .used = settings_uses_selector},
    {.name = "evaluation",
     .options = settings_evaluation_options,
     .about = "classes that test images are compared with, and what is stored",
     .incidental = "patch_images",
     .used = settings_uses_evaluation},
    {.name = "tasks",
     .options = task_options,
     .each_of = "data.order",
     .named = "path",
     .inherits = "training|data.split|data.on_missing|data.on_unreadable|data.class_names|data.template",
     .incidental = "root|path|on_unreadable",
     .chooser = "reader",
     .chosen = reader_keys,
     .choice = reader_name,
     .about = "settings of a single task, below its name",
     .used = settings_uses_training},
    {.name = "run",
     .options = run_options,
     .row = "row",
     .alias = "seed=seeds",
     .about = "name, seeds, device, threads, caches, and where files lie",
     .incidental = "seeds|row|name|note|" BACKEND_OPTION_NAMES
                   "|gpus=1|threads|evaluation_batch|keep_features|folder|database|" CACHE_OPTION_NAMES
                   "|checkpoints|checkpoint_every|log_every|trajectory_every"},
    {0}};

/* Whether the table has the key of the section, and it names files. */
static bool is_path(const struct option *table, const char *section, const char *key)
{
    size_t length = strlen(section);
    bool within = strncmp(key, section, length) == 0 && key[length] == '.';
    const struct option *option = within ? options_find(table, key + length + 1) : NULL;
    return option != NULL && option_is_path(option);
}

bool settings_incidental(const char *key, const char *value)
{
    bool path = is_path(selector_options, "selector", key);
    for (size_t i = 0; !path && method_at(i) != NULL; i++)
        path = is_path(method_at(i)->options, "method", key);
    for (size_t i = 0; !path && merge_policy_at(i) != NULL; i++)
        path = is_path(merge_policy_at(i)->options, "merge", key);
    return path || suite_key_incidental(settings_sections, key, value);
}

static size_t whole(const struct options *options, const char *name)
{
    return (size_t)options_integer(options, name);
}

static void read_run(struct settings *s, const struct options *o)
{
    s->threads = whole(o, "threads");
    s->backend = backend_settings_of(o);
    s->backend.threads = s->threads;
    s->backend.gpus = s->gpus = whole(o, "gpus");
    s->evaluation_batch = whole(o, "evaluation_batch");
    s->keep_features = options_boolean(o, "keep_features");
    s->cache = cache_settings_of(o);
    s->cache.threads = s->threads;
    s->folder = options_text(o, "folder");
    s->database = options_text(o, "database");
    s->checkpoints = (enum checkpoints)options_choice(o, "checkpoints");
    s->checkpoint_every = whole(o, "checkpoint_every");
    s->log_every = whole(o, "log_every");
    s->trajectory_every = whole(o, "trajectory_every");
}

static status check(const struct settings *s, struct error *error)
{
    if (s->task_count == 0)
        return error_set(error, ERROR_ARGUMENT, "suite: data.order names no task; expected at least one dataset");
    if (s->task_count > SETTINGS_TASKS)
        return error_set(error, ERROR_ARGUMENT, "suite: data.order names %zu tasks; expected at most %d", s->task_count,
                         SETTINGS_TASKS);
    if (s->method->alone && (s->label_space == LABEL_SPACE_SEEN || s->label_space == LABEL_SPACE_OPEN))
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: evaluation.label_space: %s asks one model for all classes so far, but with method.name: "
            "%s every task has a model of its own that knows no earlier class; use continual_ft, or "
            "evaluation.label_space=task",
            s->label_space == LABEL_SPACE_SEEN ? "seen" : "open", s->method->name);
    return OK;
}

static const struct head *head_of(const struct method *method)
{
    const struct head *head = NULL;
    status found = head_find(&head, method->head != NULL ? method->head : "text", NULL);
    assert(found == OK), (void)found;
    return head;
}

/* A method that works with one head of texts, or of weights, works with all of them. */
static status check_head(const struct settings *s, struct error *error)
{
    const struct head *wanted = head_of(s->method);
    const struct method *fitting;
    if (wanted->of_texts == s->head->of_texts)
        return s->head->check != NULL ? s->head->check(s, error) : OK;
    for (size_t i = 0; (fitting = method_at(i)) != NULL && head_of(fitting)->of_texts != s->head->of_texts;)
        i++;
    assert(fitting != NULL);
    return error_set(
        error, ERROR_ARGUMENT,
        "suite: method.name: %s works with %s (head.name: %s), but head.name: %s has %s; set head.name=%s, "
        "or a method for it, as in method.name=%s",
        s->method->name, wanted->what, wanted->name, s->head->name, s->head->what, wanted->name, fitting->name);
}

/* One router leaves nothing to select; several cannot do without. */
static status check_routers(const struct settings *s, const struct suite *suite, struct error *error)
{
    bool routers = method_uses(s->method, s->method_options, "adapter"),
         one = routers && strcmp(options_text(suite_options(suite, "adapter"), "routers"), "one") == 0;
    if (!method_uses(s->method, s->method_options, "selector") || one == (s->selector.kind->route == ROUTE_ONE))
        return OK;
    if (!routers)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: selector.kind: none, but with method.name: %s every task has something of its own, and "
            "somebody has to choose the task of a test image; set another selector.kind, as "
            "selector.kind=task_gaussian",
            s->method->name);
    return error_set(error, ERROR_ARGUMENT,
                     one ? "suite: adapter.routers: one leaves the selector nothing to choose; set selector.kind=none"
                         : "suite: selector.kind: none, but with adapter.routers: per_task somebody has to choose the "
                           "router of a test image; set adapter.routers=one, or another selector.kind");
}

static status check_seeds(const struct suite *suite, struct error *error)
{
    if (settings_seeds(suite) == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: run.seeds is empty; expected at least one whole number, as in run.seeds=1,2,3");
    for (size_t i = 0; i < settings_seeds(suite); i++) {
        const char *text = options_list_item(suite_options(suite, "run"), "seeds", i);
        int64_t seed;
        if (!parse_integer(text, &seed) || seed < 0)
            return error_set(error, ERROR_ARGUMENT,
                             "suite: run.seeds: expected whole numbers from 0, as in 1,2,3 (mtil sweep takes 1..3, "
                             "too), found \"%s\"",
                             text);
        for (size_t k = 0; k < i; k++)
            if (settings_seed(suite, k) == (uint64_t)seed)
                return error_set(error, ERROR_ARGUMENT,
                                 "suite: run.seeds: seed %lld is repeated; expected each seed once", (long long)seed);
    }
    return OK;
}

/* Files would be written to a folder named ~ in the current one. */
static status check_homes(const struct options *run, struct error *error)
{
    static const char *const paths[] = {"folder", "database", "cache_folder"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *path = options_text(run, paths[i]);
        if (path != NULL && (strcmp(path, "~") == 0 || strncmp(path, "~/", 2) == 0))
            return error_set(
                error, ERROR_ARGUMENT,
                "suite: run.%s is %s, but nothing replaces ~ here; write the home folder out, or $HOME in a "
                "shell",
                paths[i], path);
    }
    return OK;
}

status settings_read(struct settings *s, const struct suite *suite, struct error *error)
{
    const struct options *model = suite_options(suite, "model"), *data = suite_options(suite, "data"),
                         *evaluation = suite_options(suite, "evaluation");
    TRY(check_seeds(suite, error));
    TRY(check_homes(suite_options(suite, "run"), error));
    *s = (struct settings){.weights = options_text(model, "weights"),
                           .vocabulary = options_text(model, "vocabulary"),
                           .model_options = model,
                           .head_options = suite_options(suite, "head"),
                           .method_options = suite_options(suite, "method"),
                           .per_image = (enum per_image_kind)options_choice(evaluation, "per_image"),
                           .patch_images = (size_t)options_integer(evaluation, "patch_images"),
                           .label_space = (enum label_space_kind)options_choice(evaluation, "label_space")};
    TRY(model_choice_scratch(&s->scratch, model, "model.heads", error));
    if (s->scratch.width == 0)
        TRY(model_choice_read(&s->stated, model, "model.heads", "model.activation", error));
    settings_read_data(s, data);
    TRY(settings_count_parts(s, suite, error));
    s->selector = selector_settings_of(suite_options(suite, "selector"));
    read_run(s, suite_options(suite, "run"));
    TRY(settings_check_data(s, data, error));
    TRY(freeze_plan_of(&s->freeze, suite_options(suite, "adapter"), error));
    TRY(merge_plan_of(&s->merge, suite_options(suite, "merge"), suite_options(suite, "combine"), error));
    TRY(method_find(&s->method, options_text(s->method_options, "name"), error));
    TRY(head_find(&s->head, options_text(s->head_options, "name"), error));
    s->imported = options_find(options_table(s->method_options), "imported") != NULL &&
                  options_boolean(s->method_options, "imported");
    s->without_model = s->method->own != NULL && s->split.cut != CUT_BY_LABELS; /* which needs features of the names */
    s->own_classes = s->method->own_classes;
    TRY(check_head(s, error));
    TRY(check(s, error));
    TRY(settings_read_training(s, suite, error));
    TRY(check_routers(s, suite, error));
    if (settings_select(s))
        TRY(selector_settings_check(&s->selector, error));
    TRY(adapter_settings_of(&s->adapter, suite_options(suite, "adapter"), s->method->joint ? 1 : s->task_count,
                            s->scratch.width > 0, error));
    if (method_uses(s->method, s->method_options, "delta"))
        TRY(delta_settings_of(&s->delta, suite_options(suite, "delta"),
                              s->method->one_delta    ? 1
                              : s->method->two_deltas ? 2 * s->task_count
                                                      : s->task_count,
                              error));
    s->delta.gate = s->method->gate;
    if (s->method->check != NULL)
        TRY(s->method->check(s, error));
    return method_uses(s->method, s->method_options, "merge") ? merge_plan_check(&s->merge, &s->adapter, error) : OK;
}

bool settings_select(const struct settings *s)
{
    return s->selector.kind->route != ROUTE_ONE && method_uses(s->method, s->method_options, "selector");
}

/* The first iteration of a task after which its schedule can merge experts; 0: they are merged otherwise, or not at all. */
static size_t first_merge(const struct settings *s)
{
    const struct merge_plan *plan = &s->merge;
    bool by_schedule = method_uses(s->method, s->method_options, "merge") && merge_policy_plans(plan->policy) &&
                       plan->schedule != NULL && !plan->schedule->after_task && !plan->policy->after_task;
    return by_schedule ? (plan->schedule->needs_loss ? 2 : 1) * plan->every : 0;
}

/* Epochs are not counted before the images are. */
bool settings_warn(const struct settings *settings, const struct suite *suite, const struct log *log)
{
    const struct options *order = suite_options(suite, "data");
    struct task_settings task, found;
    size_t count = 0, longest = 0;
    if (method_groups(settings->method, settings->method_options) == GROUPS_NONE)
        return false;
    for (size_t k = 0; k < options_list_size(order, "order"); k++) {
        task = task_settings_of(suite, options_list_item(order, "order", k));
        size_t iterations = task.epochs > 0 ? SIZE_MAX : task.iterations;
        longest = iterations > longest ? iterations : longest;
        if (task.warmup_epochs > 0)
            task.warmup = task.warmup_epochs;
        if (task.epochs > 0)
            task.iterations = task.epochs;
        if ((task.epochs > 0) == (task.warmup_epochs > 0) && task.warmup > task.iterations && count++ == 0)
            found = task;
    }
    if (count > 0)
        log_warn(log,
                 "training.warmup%s: %zu %s of warm-up are longer than the %zu of training (%s%s): the "
                 "learning rate stays below its peak; lower it or train longer",
                 found.epochs > 0 ? "_epochs" : "", found.warmup, found.epochs > 0 ? "epochs" : "iterations",
                 found.iterations, found.name, count > 1 ? " and others" : "");
    bool idle = first_merge(settings) > longest;
    if (idle)
        log_warn(log,
                 "merge.every: experts are merged after %zu iterations, but no task has more than %zu: nothing is "
                 "merged; lower it, or set merge.policy=none",
                 first_merge(settings), longest);
    /* Fewer may be the same ones after every task. A method that merges freezes, too. */
    bool frozen = method_uses(settings->method, settings->method_options, "merge") && settings->freeze.policy->counts &&
                  settings->freeze.top_k == settings->adapter.experts && settings->task_count > 1;
    if (frozen)
        log_warn(log,
                 "adapter.freeze_top_k is %zu, which are all experts: they are frozen after the first task, and later "
                 "tasks train routers alone; lower it, or raise adapter.experts",
                 settings->freeze.top_k);
    return count > 0 || idle || frozen;
}

size_t settings_seeds(const struct suite *suite)
{
    return options_list_size(suite_options(suite, "run"), "seeds");
}

uint64_t settings_seed(const struct suite *suite, size_t index)
{
    int64_t seed = 0;
    parse_integer(options_list_item(suite_options(suite, "run"), "seeds", index), &seed);
    return (uint64_t)seed;
}

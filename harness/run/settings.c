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
    OPTION(TEXT, "weights", "mini",
           "weights of CLIP or SigLIP: a file (safetensors, .pt, .pth, .bin, or the index of shards), or mini, the "
           "small model that ships; with head.name: linear also an image tower alone, as timm, Hugging Face's ViT or "
           "mtil classify save it, or scratch for random weights",
           INTO(struct settings, weights), .synonyms = "arch|backbone|pretrained|checkpoint_path|ckpt|model_name",
           .incidental = "*"),
    OPTION(TEXT, "vocabulary", "mini",
           "vocabulary file of the tokenizer, SigLIP's is a .model; mini: the small model's",
           INTO(struct settings, vocabulary), .synonyms = "vocab|tokenizer|bpe_path", .incidental = "*"),
    OPTION(LIST, "heads", "auto",
           "attention heads of the image tower and the text tower, as in 16,16; auto reads them from a configuration "
           "beside the weights; from scratch one number, auto: width / 64"),
    OPTION_ONE_OF("activation", CLIP_ACTIVATION_CHOICES, "auto",
                  "activation of the MLPs: quick_gelu for OpenAI's weights, gelu_tanh for SigLIP's, gelu for most "
                  "others; auto reads it from a configuration beside the weights, and is gelu from scratch",
                  .synonyms = "act|act_layer|hidden_act"),
    {0}};

static const struct option head_options[] = {OPTION(TEXT, "name", "text",
                                                    "head that turns image features into scores; see mtil list heads",
                                                    .when = "name!=text"),
                                             {0}};

static const struct option method_options[] = {
    OPTION(TEXT, "name", "moe_adapters", "method that trains the tasks; see mtil list methods"), {0}};

static const struct option run_options[] = {
    OPTION(LIST, "seeds", "1", "seeds, one run each", .synonyms = "random_seed", .incidental = "*"),
    OPTION(TEXT, "row", NULL, "row of a suite with rows; it names the run in tables", .incidental = "*"),
    OPTION(TEXT, "name", NULL, "name of the run, stored with it; --where run.name=NAME finds it", .incidental = "*"),
    OPTION(TEXT, "note", NULL, "purpose of the run, stored with it", .incidental = "*"),
    BACKEND_OPTIONS("auto", "auto", "0"),
    GPUS_OPTION("1"),
    OPTION_NUMBER(INTEGER, "threads", 0, 1024, "0", "number of threads; 0: one per core; results do not depend on it",
                  INTO(struct settings, threads), .synonyms = "num_threads|workers|num_workers", .incidental = "*"),
    OPTION_NUMBER(INTEGER, "evaluation_batch", 0, 65536, "0",
                  "test images encoded at a time; 0: as many as GPU memory allows, 64 on the CPU; results do not "
                  "depend on it, except for rounding on a GPU",
                  INTO(struct settings, evaluation_batch), .incidental = "*"),
    OPTION(BOOLEAN, "keep_features", "yes",
           "reuse of predictions that cannot have changed; results do not depend on it",
           INTO(struct settings, keep_features), .incidental = "*"),
    CACHE_OPTIONS,
    OPTION(TEXT, "folder", "runs", "folder of resume files and weights", INTO(struct settings, folder),
           .synonyms = "output|output_dir|out_dir|save_dir|log_dir|outdir", .incidental = "*"),
    OPTION(TEXT, "database", SETTINGS_DATABASE, "database of the results", INTO(struct settings, database),
           .synonyms = "db|results", .incidental = "*"),
    OPTION_ONE_OF("checkpoints", "last|all|none|states", "last",
                  "trained weights to save: the last, those after every task, or none; states: those after every task, "
                  "and the whole state there, from which mtil run --extend goes on with more tasks",
                  INTO(struct settings, checkpoints), .incidental = "*"),
    OPTION_NUMBER(INTEGER, "checkpoint_every", 0, 1e9, "0", "iterations between resume points within a task; 0: none",
                  INTO(struct settings, checkpoint_every), .incidental = "*"),
    OPTION_NUMBER(INTEGER, "log_every", 1, 1e9, "10", "iterations between stored losses",
                  INTO(struct settings, log_every), .incidental = "*"),
    OPTION_NUMBER(INTEGER, "trajectory_every", 0, 1e9, "0",
                  "iterations between stored sketches of experts, beside the start and the end of each task; 0: none",
                  INTO(struct settings, trajectory_every), .incidental = "*"),
    {0}};

/* What the choosers know, by number, and the keys that a choice brings. */
/* clang-format off */
#define CHOICES(stem) \
    static const char *stem##_name(size_t index) \
    { \
        const struct stem *entry = stem##_at(index); \
        return entry != NULL ? entry->name : NULL; \
    } \
    \
    static status stem##_keys(const char *name, const struct option **table, struct error *error) \
    { \
        const struct stem *entry; \
        TRY(stem##_find(&entry, name, error)); \
        *table = entry->options; \
        return OK; \
    }
CHOICES(method)
CHOICES(head)
CHOICES(merge_policy)
CHOICES(merge_combiner)
CHOICES(freeze_policy)
/* clang-format on */

#define CHOSEN_FROM(stem) .chosen = stem##_keys, .choice = stem##_name

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

const struct suite_section settings_sections[] = {
    {.name = "model",
     .options = model_options,
     .chooser = "weights",
     .chosen = model_choice_keys,
     .choice = weights_with_sizes,
     .about = "trained model and its weights",
     .preset_by = "method.ffn",
     .preset = mixture_preset},
    {.name = "head",
     .options = head_options,
     .chooser = "name",
     CHOSEN_FROM(head),
     .about = "head that turns image features into class scores",
     .preset_by = "method.ffn",
     .preset = mixture_preset},
    {.name = "data",
     .options = settings_data_options,
     .shorthand = settings_data_shorthand,
     .chooser = "split_by",
     CHOSEN_FROM(settings_split),
     .about = "tasks, their order and their images",
     .used = settings_reads},
    {.name = "adapter",
     .options = adapter_options,
     .chooser = "freeze",
     CHOSEN_FROM(freeze_policy),
     .about = "mixtures of experts: number, place, routers and freezing",
     .preset_by = "method.ffn",
     .preset = mixture_preset,
     .used = settings_reads},
    {.name = "delta",
     .options = delta_options,
     .about = "low-rank deltas of the towers' matrices: rank, place and start",
     .used = settings_reads},
    {.name = "merge",
     .options = merge_options,
     .chooser = "policy",
     CHOSEN_FROM(merge_policy),
     .about = "choice of the experts to merge, and schedule of the merges",
     .free = "options",
     .preset_by = "method.ffn",
     .preset = mixture_preset,
     .used = settings_reads},
    {.name = "combine",
     .options = combine_options,
     .chooser = "name",
     CHOSEN_FROM(merge_combiner),
     .about = "combination of the merged experts",
     .when = "merge.policy!=none|ewa",
     .used = settings_reads},
    {.name = "training",
     .options = training_options,
     .about = "steps, batches, optimizer, schedule and augmentation of every task",
     .used = settings_reads},
    {.name = "method",
     .options = method_options,
     .chooser = "name",
     CHOSEN_FROM(method),
     .alias = "method=name",
     .free = "options",
     .about = "method that trains the tasks"},
    {.name = "selector",
     .options = selector_options,
     .alias = "selector=kind",
     .about = "choice of the router of a test image",
     .preset_by = "selector.kind",
     .preset = selector_preset,
     .used = settings_reads},
    {.name = "evaluation",
     .options = settings_evaluation_options,
     .about = "classes that test images are compared with, and what is stored"},
    {.name = "tasks",
     .options = task_options,
     .each_of = "data.order",
     .named = "path",
     .inherits = {{"training", NULL},
                  {"data", "split"},
                  {"data", "on_missing"},
                  {"data", "on_unreadable"},
                  {"data", "class_names"},
                  {"data", "template"}},
     .chooser = "reader",
     CHOSEN_FROM(reader),
     .about = "settings of a single task, below its name"},
    {.name = "run",
     .options = run_options,
     .row = "row",
     .alias = "seed=seeds",
     .about = "name, seeds, device, threads, caches, and where files lie"},
    {0}};

bool settings_incidental(const char *key, const char *value)
{
    return suite_key_incidental(settings_sections, key, value);
}

static void read_run(struct settings *s, const struct options *o)
{
    options_fill(o, run_options, s);
    s->gpus = (size_t)options_integer(o, "gpus");
    s->backend = backend_settings_of(o);
    s->backend.threads = s->threads;
    s->backend.gpus = s->gpus;
    s->cache = cache_settings_of(o);
    s->cache.threads = s->threads;
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
    TRY(suite_check_unread(suite, error));
    *s = (struct settings){.model_options = model,
                           .head_options = suite_options(suite, "head"),
                           .method_options = suite_options(suite, "method")};
    options_fill(model, model_options, s);
    options_fill(evaluation, settings_evaluation_options, s);
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

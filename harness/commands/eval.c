/* mtil eval: tests a file of adapters or weights on a suite's datasets. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/commands/inputs/adapter_choice.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/commands/selector_trials.h"
#include "harness/evaluate/evaluator.h"
#include "harness/model/head.h"
#include "harness/model/weights.h"
#include "harness/run/identity/surveyor.h"
#include "harness/run/run.h"
#include "harness/terminal/progress.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    BACKEND_OPTIONS(NULL, NULL, NULL),
    ADAPTERS_OPTION,
    OPTION(TEXT, "weights", NULL,
           "file with all weights of a CLIP of the suite model's dimensions, or of a classifier, instead of adapters"),
    OPTION(TEXT, "selector", NULL,
           "selectors to try on the adapters that a run saved, as in text,gaussian (mtil list selectors)"),
    OPTION(TEXT, "router", NULL,
           "router of the datasets: auto, own, position, none, or the name or number of one router for all (default "
           "auto, if the adapters have a selector)"),
    {0},
};

struct evaluation {
    const struct command_call *call;
    struct suite *suite;
    struct run *run;
    struct evaluator *evaluator;
    struct selector *selector; /* --router auto; otherwise NULL */
    struct adapter_choice choice;
    int *routers;                        /* [tasks] router of each; auto: none */
    const char *weights;                 /* NULL: adapters */
    struct classifier_choice classifier; /* of these weights */
    size_t *zero_shot;                   /* [tasks] correct answers of zero-shot CLIP */
};

static void close_evaluation(struct evaluation *v)
{
    evaluator_destroy(v->evaluator);
    selector_destroy(v->selector);
    run_close(v->run);
    suite_destroy(v->suite);
    free(v->zero_shot);
    free(v->routers);
    classifier_choice_free(&v->classifier);
    adapter_choice_free(&v->choice);
}

static status own_router(const struct evaluation *v, const char *task, int *router, struct error *error)
{
    const struct adapter_metadata *metadata = &v->choice.saved.metadata;
    int found = adapter_metadata_find(metadata, task);
    if (found >= 0 && metadata->tasks[found].trained) {
        *router = adapter_metadata_router(metadata, (size_t)found);
        return OK;
    }
    return error_set(error, ERROR_ARGUMENT,
                     "%s: has no trained router for the task %s; its tasks are: %s; leave %s out of data.order, or use "
                     "--router auto, none, or the name of the task whose router is to answer",
                     v->choice.file, task, adapter_metadata_tasks(metadata).text, task);
}

static status choose_routers(struct evaluation *v, struct error *error)
{
    const struct run *run = v->run;
    v->routers = xcalloc(run->data.task_count, sizeof *v->routers);
    for (size_t j = 0; j < run->data.task_count; j++) {
        v->routers[j] = v->choice.router == ROUTER_POSITION ? (int)j
                        : v->choice.router == ROUTER_AUTO   ? ROUTER_NONE
                                                            : v->choice.router;
        if (v->choice.router == ROUTER_OWN)
            TRY(own_router(v, run->data.tasks[j].settings.name, &v->routers[j], error));
    }
    return OK;
}

/* Uses the decision of the selector's run, not that of the suite. */
static void log_decision(const struct evaluation *v)
{
    static const char *const names[] = {"per_image", "per_batch"};
    const struct selector_settings *s = &v->run->model.settings.selector;
    const struct selector *saved = v->selector;
    if (s->decision != saved->decision || s->decision_batch != saved->decision_batch)
        log_info(v->call->log, "the adapters' selector decides %s (decision_batch %zu), as in their run",
                 names[saved->decision], saved->decision_batch);
}

static status open_adapters(struct evaluation *v, struct error *error)
{
    struct run *run = v->run;
    const struct saved_adapters *saved = &v->choice.saved;
    TRY(choose_routers(v, error));
    TRY(saved_adapters_load(saved, &run->model, v->routers, run->data.task_count, error));
    if (v->choice.router != ROUTER_AUTO)
        return OK;
    TRY(selector_open(&v->selector, &run->model, &run->data, saved->file, &saved->metadata, error));
    log_decision(v);
    return OK;
}

/* Of weights or deltas, after the zero-shot row, because they replace the zero-shot model. */
static status open_weights(struct evaluation *v, struct error *error)
{
    struct model *model = &v->run->model;
    OWNED char *path = v->weights != NULL ? weights_path(v->weights) : NULL;
    TRY(path != NULL ? clip_reload(model->clip, path, error)
                     : saved_adapters_load(&v->choice.saved, model, NULL, 0, error));
    return evaluator_refresh(v->evaluator, error);
}

static void report(const struct evaluation *v, const char *activity, size_t j)
{
    const struct run *run = v->run;
    progress_report(v->call->progress, &(struct progress_state){.activity = activity,
                                                                .subject = run->data.tasks[j].settings.name,
                                                                .step = j + 1,
                                                                .steps = run->data.task_count});
}

/* A classifier has no answer before it is trained. */
static status zero_shot_row(struct evaluation *v, struct error *error)
{
    if (v->classifier.is_one)
        return OK;
    for (size_t j = 0; j < v->run->data.task_count; j++) {
        report(v, "zero-shot", j);
        TRY(evaluator_zero_shot(v->evaluator, j, v->call->stop, error));
        v->zero_shot[j] = v->evaluator->sets[j].correct;
    }
    return OK;
}

static status evaluate_task(struct evaluation *v, size_t j, struct error *error)
{
    report(v, "evaluate", j);
    if (v->run->model.adapters != NULL && v->classifier.is_one)
        return evaluator_with_router(v->evaluator, j, 0, v->call->stop, error);
    if (v->weights != NULL || v->choice.saved.deltas)
        return evaluator_without_adapters(v->evaluator, j, v->call->stop, error);
    if (v->selector != NULL)
        return evaluator_task(v->evaluator, v->selector->trained - 1, j, v->call->stop, error);
    return evaluator_with_router(v->evaluator, j, v->routers[j], v->call->stop, error);
}

static double percent(size_t correct, size_t images)
{
    return 100.0 * (double)correct / (double)images;
}

static void add_averages(const struct evaluation *v, struct table *table)
{
    double accuracy = 0, zero_shot = 0;
    size_t tasks = v->run->data.task_count;
    for (size_t j = 0; j < tasks; j++) {
        const struct test_set *set = &v->evaluator->sets[j];
        accuracy += percent(set->correct, set->n) / (double)tasks;
        zero_shot += percent(v->zero_shot[j], set->n) / (double)tasks;
    }
    table_add_text(table, "average");
    table_add_empty(table);
    table_add_empty(table);
    table_add_real(table, accuracy);
    table_add_real(table, zero_shot);
}

static void show(const struct evaluation *v)
{
    SCOPED(table_free) struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "dataset"});
    table_add_column(&table, &(struct table_column){.title = "images"});
    table_add_column(&table, &(struct table_column){.title = "correct"});
    table_add_column(&table, &(struct table_column){.title = "accuracy", .decimals = 2});
    if (!v->classifier.is_one)
        table_add_column(&table, &(struct table_column){.title = "zero-shot", .decimals = 2});
    for (size_t j = 0; j < v->run->data.task_count; j++) {
        const struct test_set *set = &v->evaluator->sets[j];
        table_add_text(&table, set->task->settings.name);
        table_add_integer(&table, (int64_t)set->n);
        table_add_integer(&table, (int64_t)set->correct);
        table_add_real(&table, percent(set->correct, set->n));
        if (!v->classifier.is_one)
            table_add_real(&table, percent(v->zero_shot[j], set->n));
    }
    if (!v->classifier.is_one) /* which has one dataset */
        add_averages(v, &table);
    output_table(v->call, &table);
}

/* A dataset with the same number of other classes would get meaningless answers. */
static status check_classes(const struct evaluation *v, struct error *error)
{
    const struct adapter_metadata *metadata = &v->classifier.metadata;
    const struct task *task = &v->run->data.tasks[0];
    for (size_t c = 0; metadata->task_count > 0 && c < metadata->tasks[0].classes.count; c++) {
        const char *name = dataset_class_name(task->dataset, c), *own = metadata->tasks[0].classes.items[c];
        if (strcmp(name, own) != 0)
            return error_set(error, ERROR_ARGUMENT,
                             "%s: class %zu is \"%s\" in %s, which it was trained for, but \"%s\" in %s", v->weights, c,
                             own, metadata->tasks[0].name, name, task->settings.name);
    }
    return OK;
}

static status evaluate(struct evaluation *v, struct error *error)
{
    if (v->classifier.is_one)
        TRY(check_classes(v, error));
    v->zero_shot = xcalloc(v->run->data.task_count, sizeof *v->zero_shot);
    if (v->choice.file != NULL && !v->choice.saved.deltas)
        TRY(open_adapters(v, error));
    TRY(evaluator_create(&v->evaluator, &v->run->model, &v->run->data, NULL, v->selector, error));
    TRY(zero_shot_row(v, error));
    if ((v->weights != NULL && !v->classifier.is_one) || v->choice.saved.deltas)
        TRY(open_weights(v, error));
    for (size_t j = 0; j < v->run->data.task_count; j++)
        TRY(evaluate_task(v, j, error));
    progress_end(v->call->progress);
    show(v);
    return OK;
}

static status check_head(const struct evaluation *v, const struct suite *suite, struct error *error)
{
    struct settings settings;
    TRY(settings_read(&settings, suite, error));
    if (settings.head->of_texts || v->classifier.is_one)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "command line: eval: head.name is %s, but %s is not a classifier; expected --weights with a file "
                     "saved by mtil classify",
                     settings.head->name, v->weights != NULL ? v->weights : v->choice.file);
}

/* The settings from a classifier's file: the model, and the dataset that it was trained for. */
static void add_own_words(struct strings *words, const struct evaluation *v)
{
    bool class_token = v->classifier.about.settings.pool == POOL_CLASS_TOKEN;
    const char *const own[] = {"head.name=linear", "method.name=supervised",
                               class_token ? "head.pool=class_token" : "head.pool=mean_patches"};
    strings_copy(words, own, sizeof own / sizeof *own);
    strings_format(words, "model.weights=%s", v->weights);
    if (v->classifier.metadata.task_count > 0)
        strings_format(words, "data.order=%s", v->classifier.metadata.tasks[0].name);
}

/* Loads the suite with these words, then the command line's. */
static status load_suite(struct evaluation *v, struct suite **suite, struct error *error)
{
    SCOPED(strings_free) struct strings words = {0};
    if (v->classifier.is_one)
        add_own_words(&words, v);
    suite_words_add(&words, v->call);
    return suite_words_load(suite, v->call, &words, error);
}

static status evaluate_suite(struct evaluation *v, struct error *error)
{
    const struct command_call *call = v->call;
    struct cache_progress decoding = {call->progress, call->stop};
    TRY(load_suite(v, &v->suite, error));
    TRY(check_head(v, v->suite, error));
    TRY(run_open_frozen(&v->run, v->suite, 0, call->log, error));
    log_info(call->log, "computing on %s", v->run->model.backend->description);
    cache_progress_begin(v->run->data.cache, &decoding);
    status result = surveyor_leave_out_unreadable(v->run, call->progress, call->stop, error);
    NEXT(result, evaluate(v, error));
    cache_progress_end(v->run->data.cache);
    return result;
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(close_evaluation) struct evaluation v = {.call = call, .weights = options_text(call->options, "weights")};
    bool adapters = options_text(call->options, "adapters") != NULL;
    const char *selectors = options_text(call->options, "selector");
    if (selectors != NULL && (adapters || v.weights != NULL || options_text(call->options, "router") != NULL))
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: eval: --selector uses the adapters of a run; leave out --adapters, --weights and --router");
    if (selectors != NULL)
        return selector_trials(call, selectors, error);
    if (adapters == (v.weights != NULL))
        return error_set(error, ERROR_ARGUMENT,
                         "command line: eval: expected either --adapters FILE or --weights FILE, found %s",
                         adapters ? "both" : "neither");
    TRY(adapter_choice_read(&v.choice, call->options, ROUTER_WORDS_ALL, error));
    if (v.weights != NULL)
        TRY(classifier_choice_read(&v.classifier, v.weights, &(struct clip_stated){0}, error));
    return evaluate_suite(&v, error);
}

const struct command command_eval = {
    .name = "eval",
    .arguments = "SUITE [key=value…] | DATABASE RUN --selector NAME,… [key=value…]",
    .summary = "test a file of adapters or weights on a suite's datasets",
    .details =
        "Without --selector, nothing is trained and no database is written. The column zero-shot is the suite's\n"
        "own model without adapters. --weights also takes the file of a classifier of mtil classify, which is\n"
        "tested on the dataset that it was trained for.\n"
        "\n"
        "--router auto      the selector saved with the adapters chooses, which reproduces the last row of\n"
        "                   their run's matrix. Datasets that the adapters were not trained for go through\n"
        "                   the nearest router, or through none.\n"
        "--router own       each dataset takes the router of the task with its name, which must exist.\n"
        "--router position  the k-th dataset takes router k, for files that do not name their tasks.\n"
        "--router none      adapters off.\n"
        "\n"
        "With --selector, DATABASE and RUN name a run instead of a suite. Each selector is trained on frozen\n"
        "features, task after task, with the run's seed, and evaluated with the adapters that the run saved:\n"
        "after every task with run.checkpoints=all, else only after the last task, which gives Last alone.\n"
        "Experts are not trained again. The results are stored beside the run's own, and stored ones are not\n"
        "computed again. selector.KEY=value sets the selectors' keys, run.folder=FOLDER says where the runs lie if\n"
        "they were moved. mtil query selector prints the comparison.\n",
    .example = "  mtil eval mini --adapters adapters.safetensors --router auto\n"
               "  mtil eval mini data.order=mnist,dtd --adapters adapters.safetensors --router own\n"
               "  mtil eval mini data.order=mnist,dtd --weights weights.safetensors\n"
               "  mtil eval results.db 3 --selector oracle,text,gaussian\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};

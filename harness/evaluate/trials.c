#include "harness/evaluate/trials.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "harness/evaluate/evaluator.h"
#include "harness/selectors/saved_adapters.h"
#include "harness/selectors/selectors.h"
#include "harness/terminal/progress.h"

struct trial {
    const struct trials *trials;
    struct trial_row row;
    int64_t number;            /* 0: nothing is stored yet */
    struct selector *selector; /* NULL: the data tell the task */
    struct evaluator *evaluator;
};

/* --- Adapters --- */

/* The file must be the one that the run wrote. */
static status open_file(struct saved_adapters *saved, const struct trial_adapters *adapters, struct error *error)
{
    char digest[DIGEST_SIZE];
    TRY(digest_file(adapters->path, digest, error));
    if (strcmp(digest, adapters->digest) != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected the adapters that the run saved (digest %.12s), found %.12s", adapters->path,
                         adapters->digest, digest);
    return saved_adapters_open(saved, adapters->path, error);
}

static size_t last_trained(const struct adapter_card *card)
{
    size_t last = 0;
    for (size_t k = 0; k < card->task_count; k++)
        last = card->tasks[k].trained ? k : last;
    return last;
}

/* Loads the adapters after `task`; *found is false without a file. The first ones allocate memory; later ones are read
 * into it, so that the caches of features see which values changed. */
static status load_adapters(const struct trials *t, size_t task, bool *found, struct error *error)
{
    struct model *model = t->model;
    *found = false;
    for (size_t i = 0; i < t->source->count && !*found; i++) {
        const struct trial_adapters *adapters = &t->source->adapters[i];
        struct saved_adapters saved;
        if (adapters->after_task >= 0 && adapters->after_task != (int64_t)task)
            continue;
        TRY(open_file(&saved, adapters, error));
        *found = last_trained(&saved.card) == task;
        status result = OK;
        if (*found && model->adapters == NULL)
            result = saved_adapters_load(&saved, model->clip, &model->memory, NULL, 0, &model->adapters, error);
        else if (*found)
            result = adapters_load(model->adapters, saved.file, "", ADAPTER_COMPLETE, error);
        saved_adapters_close(&saved);
        TRY(result);
    }
    return OK;
}

/* Loads any adapters of the run, so that there are some to evaluate with. */
static status load_first(const struct trials *t, struct error *error)
{
    bool found = false;
    for (size_t task = 0; task < t->data->task_count && !found; task++)
        TRY(load_adapters(t, task, &found, error));
    return found ? OK
                 : error_set(error, ERROR_ARGUMENT,
                             "run %" PRId64 " has no adapters to try a selector on; it takes a run with "
                             "run.checkpoints=last, or all for Transfer and Average",
                             t->run);
}

/* --- A row of the matrix --- */

static void report(const struct trials *t, const char *activity, size_t task, size_t j)
{
    progress_report(t->progress, &(struct progress_state){.activity = activity,
                                                          .subject = t->data->tasks[j].settings.name,
                                                          .task = task + 1,
                                                          .tasks = t->data->task_count,
                                                          .step = j + 1,
                                                          .steps = t->data->task_count});
}

static status evaluate_row(struct trial *trial, size_t after, struct evaluation_row *rows,
                           struct router_choices_row *choices, uint64_t *counts, struct error *error)
{
    const struct trials *t = trial->trials;
    size_t tasks = t->data->task_count;
    TRY(evaluator_refresh(trial->evaluator, error));
    for (size_t j = 0; j < tasks; j++) {
        const struct test_set *set = &trial->evaluator->sets[j];
        uint64_t *own = counts + j * (tasks + 1);
        report(t, "evaluate", after, j);
        TRY(evaluator_task(trial->evaluator, after, j, t->stop, error));
        for (size_t i = 0; i < set->n; i++)
            own[set->router[i] + 1]++;
        rows[j] = (struct evaluation_row){.after_task = (int64_t)after,
                                          .task = (int64_t)j,
                                          .correct = (int64_t)set->correct,
                                          .images = (int64_t)set->n};
        choices[j] = (struct router_choices_row){
            .after_task = (int64_t)after, .task = (int64_t)j, .counts = own, .routers = tasks};
    }
    TRY(trial_open(t->store, t->run, &trial->row, &trial->number, error));
    return trial_add(t->store, t->run, trial->number, rows, choices, tasks, error);
}

static status answer(struct trial *trial, size_t after, struct error *error)
{
    size_t tasks = trial->trials->data->task_count;
    struct evaluation_row *rows = xcalloc(tasks, sizeof *rows);
    struct router_choices_row *choices = xcalloc(tasks, sizeof *choices);
    uint64_t *counts = xcalloc(tasks * (tasks + 1), sizeof *counts);
    status result = evaluate_row(trial, after, rows, choices, counts, error);
    free(counts);
    free(choices);
    free(rows);
    return result;
}

/* --- A selector --- */

static status after_task(struct trial *trial, size_t task, struct error *error)
{
    const struct trials *t = trial->trials;
    bool has, found;
    report(t, "selector", task, task);
    if (trial->selector != NULL)
        TRY(selector_train(trial->selector, &t->data->tasks[task], t->stop, error));
    TRY(trial_has(t->store, t->run, trial->number, (int64_t)task, &has, error));
    if (has)
        return OK;
    TRY(load_adapters(t, task, &found, error));
    return found ? answer(trial, task, error) : OK;
}

static status work(struct trial *trial, struct error *error)
{
    struct model *model = trial->trials->model;
    const struct data *data = trial->trials->data;
    TRY(load_first(trial->trials, error));
    if (model->settings.selector.kind->route == ROUTE_BY_ERRORS)
        TRY(selector_create(&trial->selector, model, data, error));
    TRY(evaluator_create(&trial->evaluator, model, data, NULL, trial->selector, error));
    for (size_t j = 0; j < data->task_count; j++) {
        report(trial->trials, "zero-shot", 0, j);
        TRY(evaluator_zero_shot(trial->evaluator, j, trial->trials->stop, error));
    }
    for (size_t task = 0; task < data->task_count; task++)
        TRY(after_task(trial, task, error));
    return OK;
}

/* Whether every row that can be computed from the saved adapters is stored. */
static status is_done(const struct trials *t, int64_t number, bool *done, struct error *error)
{
    *done = t->source->count > 0;
    for (size_t i = 0; *done && i < t->source->count; i++) {
        const struct trial_adapters *adapters = &t->source->adapters[i];
        int64_t after = adapters->after_task;
        if (after < 0) {
            struct saved_adapters saved;
            TRY(open_file(&saved, adapters, error));
            after = (int64_t)last_trained(&saved.card);
            saved_adapters_close(&saved);
        }
        TRY(trial_has(t->store, t->run, number, after, done, error));
    }
    return OK;
}

status trials_run(const struct trials *t, const struct selector_settings *settings, const char *keys,
                  struct error *error)
{
    static const char *const decisions[] = {"per_image", "per_batch"};
    struct model *model = t->model;
    bool done;
    const char *selection =
        settings->kind->route == ROUTE_BY_ERRORS ? decisions[settings->decision] : settings->kind->name;
    struct trial trial = {.trials = t, .row = {settings->kind->name, selection, keys}};
    TRY(trial_find(t->store, t->run, &trial.row, &trial.number, error));
    TRY(is_done(t, trial.number, &done, error));
    if (done)
        return OK;
    struct arena_mark mark = arena_mark(&model->memory);
    model->settings.selector = *settings;
    status result = work(&trial, error);
    evaluator_destroy(trial.evaluator);
    selector_destroy(trial.selector);
    adapters_destroy(model->adapters);
    model->adapters = NULL;
    arena_release(&model->memory, mark);
    return result;
}

#include "harness/evaluate/trials.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/evaluate/evaluator.h"
#include "harness/selectors/saved_adapters.h"
#include "harness/selectors/selector.h"
#include "harness/terminal/progress.h"

struct trial {
    const struct trials *trials;
    const char *name, *selection, *settings;
    struct selector *selector; /* NULL: the data tell the task */
    struct evaluator *evaluator;
};

/* --- What there is to try --- */

static status read_adapters(void *context, struct statement *row, struct error *error)
{
    struct trial_source *source = context;
    GROW(source->adapters, source->count);
    source->adapters[source->count++] =
        (struct trial_adapters){statement_integer(row, 0), statement_string(row, 1), statement_string(row, 2)};
    return OK;
}

status trial_source_read(struct store *store, int64_t run, struct trial_source *source, struct error *error)
{
    *source = (struct trial_source){0};
    TRY(store_read_run(store, run, &source->run, error));
    TRY(store_run_lock(store, run, error));
    return database_each(store_database(store),
                         "SELECT task, path, coalesce(digest, '') FROM artifacts WHERE run = ?1 AND kind = 'adapters' "
                         "ORDER BY task",
                         VALUES(value_integer(run)), read_adapters, source, error);
}

void trial_source_free(struct trial_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        free(source->adapters[i].path);
        free(source->adapters[i].digest);
    }
    free(source->adapters);
    run_row_free(&source->run);
    *source = (struct trial_source){0};
}

static status is_stored(const struct trials *t, const char *settings, size_t after, bool *stored, struct error *error)
{
    int64_t rows;
    TRY(database_ask(store_database(t->store),
                     "SELECT count(*) FROM trials WHERE run = ?1 AND settings = ?2 AND after_task = ?3",
                     VALUES(value_integer(t->run), value_text(settings), value_integer((int64_t)after)), &rows, error));
    *stored = rows > 0;
    return OK;
}

/* --- Adapters --- */

/* SUITE-HASH/seedN/FILE below run.folder, which the command line may name, or else where the run wrote it. */
static char *find_file(const struct trials *t, const char *path)
{
    const char *below = path + strlen(path);
    for (int parts = 3; below > path && (below[-1] != '/' || --parts > 0);)
        below--;
    OWNED char *found = path_format("%s/%s", t->model->settings.folder, below);
    return file_exists(found) ? TAKE(found) : xstrdup(path);
}

/* The file must be the one that the run wrote. */
static status open_file(const struct trials *t, struct saved_adapters *saved, const struct trial_adapters *adapters,
                        struct error *error)
{
    OWNED char *path = find_file(t, adapters->path);
    char digest[DIGEST_SIZE];
    TRY(digest_file(path, digest, error));
    if (strcmp(digest, adapters->digest) != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected the adapters that the run saved (digest %.12s), found %.12s", path,
                         adapters->digest, digest);
    return saved_adapters_open(saved, path, error);
}

static size_t last_trained(const struct adapter_metadata *metadata)
{
    size_t last = 0;
    for (size_t k = 0; k < metadata->task_count; k++)
        last = metadata->tasks[k].trained ? k : last;
    return last;
}

/* Loads the adapters after `task`; *found is false without a file. The first ones allocate memory; later ones are read
 * into it, so that the caches of features see which values changed. */
static status load_adapters(const struct trials *t, size_t task, bool *found, struct error *error)
{
    *found = false;
    for (size_t i = 0; i < t->source->count && !*found; i++) {
        const struct trial_adapters *adapters = &t->source->adapters[i];
        SCOPED(saved_adapters_close) struct saved_adapters saved = {0};
        if (adapters->after_task >= 0 && adapters->after_task != (int64_t)task)
            continue;
        TRY(open_file(t, &saved, adapters, error));
        *found = last_trained(&saved.metadata) == task;
        if (*found)
            TRY(saved_adapters_load(&saved, t->model, NULL, 0, error));
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

/* {"-1": 3, "0": 97}: how many images took each router. */
static void count_routers(const struct test_set *set, uint64_t *counts, size_t tasks, struct text *json)
{
    memset(counts, 0, (tasks + 1) * sizeof *counts);
    for (size_t i = 0; i < set->n; i++)
        counts[set->router[i] + 1]++;
    text_clear(json);
    for (size_t i = 0; i <= tasks; i++)
        if (counts[i] > 0)
            text_add(json, "%s\"%d\": %" PRIu64, json->size > 0 ? ", " : "{", (int)i - 1, counts[i]);
    text_add(json, "}");
}

static status evaluate_row(struct trial *trial, size_t after, uint64_t *counts, struct text *json, struct error *error)
{
    const struct trials *t = trial->trials;
    size_t tasks = t->data->task_count;
    TRY(evaluator_refresh(trial->evaluator, error));
    for (size_t j = 0; j < tasks; j++) {
        const struct test_set *set = &trial->evaluator->sets[j];
        report(t, "evaluate", after, j);
        TRY(evaluator_task(trial->evaluator, after, j, t->stop, error));
        count_routers(set, counts, tasks, json);
        TRY(store_add(t->store, t->run, "trials",
                      NAMED({"task", value_integer((int64_t)j)}, {"after_task", value_integer((int64_t)after)},
                            {"selector", value_text(trial->name)}, {"selection", value_text(trial->selection)},
                            {"settings", value_text(trial->settings)},
                            {"correct", value_integer((int64_t)set->correct)},
                            {"images", value_integer((int64_t)set->n)}, {"routers", value_text(json->data)}),
                      error));
    }
    return store_commit(t->store, error);
}

/* The whole row or nothing, so that a selector that failed leaves nothing. */
static status answer(struct trial *trial, size_t after, struct error *error)
{
    struct store *store = trial->trials->store;
    OWNED uint64_t *counts = xcalloc(trial->trials->data->task_count + 1, sizeof *counts);
    SCOPED(text_free) struct text json = {0};
    store_begin(store);
    status result = evaluate_row(trial, after, counts, &json, error);
    store_rollback(store);
    return result;
}

/* --- A selector --- */

static status after_task(struct trial *trial, size_t task, struct error *error)
{
    const struct trials *t = trial->trials;
    bool stored, found;
    report(t, "selector", task, task);
    if (trial->selector != NULL)
        TRY(selector_train(trial->selector, &t->data->tasks[task], t->stop, error));
    TRY(is_stored(t, trial->settings, task, &stored, error));
    if (stored)
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
static status is_done(const struct trials *t, const char *settings, bool *done, struct error *error)
{
    *done = t->source->count > 0;
    for (size_t i = 0; *done && i < t->source->count; i++) {
        const struct trial_adapters *adapters = &t->source->adapters[i];
        int64_t after = adapters->after_task;
        if (after < 0) {
            SCOPED(saved_adapters_close) struct saved_adapters saved = {0};
            TRY(open_file(t, &saved, adapters, error));
            after = (int64_t)last_trained(&saved.metadata);
        }
        TRY(is_stored(t, settings, (size_t)after, done, error));
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
    struct trial trial = {.trials = t, .name = settings->kind->name, .selection = selection, .settings = keys};
    TRY(is_done(t, keys, &done, error));
    if (done)
        return OK;
    struct arena_mark mark = arena_mark(&model->memory);
    model->settings.selector = *settings;
    status result = work(&trial, error);
    evaluator_destroy(trial.evaluator);
    selector_destroy(trial.selector);
    adapters_destroy(model->adapters);
    prefixes_destroy(model->prefixes);
    model->adapters = NULL;
    model->prefixes = NULL;
    arena_release(&model->memory, mark);
    return result;
}

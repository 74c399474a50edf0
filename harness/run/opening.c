#include "harness/run/opening.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/run/model_opening.h"
#include "harness/run/tasks.h"
#include "harness/train/method_run.h"
#include "harness/train/replicas.h"
#include "models/clip/cost.h"

static void choose_evaluation_batch(struct experiment *e)
{
    enum { USUAL = 64, MOST = 512 };
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &e->settings.adapter);
    size_t left = e->model.backend->ops->memory_left(e->model.backend), each = cost_evaluation_bytes(n, 1, &experts),
           batch = MOST;
    while (batch > 1 && batch > left / 2 / each)
        batch /= 2;
    e->evaluation_batch = e->settings.evaluation_batch > 0 ? e->settings.evaluation_batch
                          : left == SIZE_MAX               ? USUAL
                                                           : batch;
    log_debug(e->log, "%zu test images at a time", e->evaluation_batch);
}

static status open_cache(struct experiment *e, struct error *error)
{
    struct cache_settings settings = e->settings.cache;
    settings.log = e->log;
    return cache_create(&e->data.cache, &settings, error);
}

static status open_experiment(struct experiment **result, const struct suite *suite, uint64_t seed, bool frozen,
                              const struct log *log, struct error *error)
{
    struct experiment *e = xcalloc(1, sizeof *e);
    *e = (struct experiment){.suite = suite, .seed = seed, .log = log};
    memcpy(e->identity, suite_settings_hash(suite), sizeof e->identity);
    status opened = settings_read(&e->settings, suite, error);
    if (opened == OK) {
        e->model.groups = frozen ? GROUPS_NONE : e->settings.method->groups(e->settings.method_options);
        opened = model_open(e, error);
    }
    if (opened == OK && settings_select(&e->settings))
        opened = selector_settings_look(&e->settings.selector, error);
    if (opened == OK)
        opened = model_open_tokenizer(e, error);
    if (opened == OK)
        opened = tasks_open(e, error);
    if (opened == OK)
        opened = model_open_head(e, error);
    if (opened == OK)
        opened = open_cache(e, error);
    if (opened == OK && !frozen)
        opened = method_open(e, error);
    if (opened == OK)
        choose_evaluation_batch(e);
    if (opened == OK)
        opened = replicas_open(e, error);
    if (opened != OK) {
        experiment_close(e);
        return opened;
    }
    *result = e;
    return OK;
}

status experiment_open(struct experiment **experiment, const struct suite *suite, uint64_t seed, const struct log *log,
                       struct error *error)
{
    return open_experiment(experiment, suite, seed, false, log, error);
}

status experiment_open_frozen(struct experiment **experiment, const struct suite *suite, uint64_t seed,
                              const struct log *log, struct error *error)
{
    return open_experiment(experiment, suite, seed, true, log, error);
}

status experiment_open_model(struct experiment **result, const struct settings *settings, const struct log *log,
                             struct error *error)
{
    struct experiment *e = xcalloc(1, sizeof *e);
    *e = (struct experiment){.settings = *settings, .log = log};
    status opened = model_open(e, error);
    if (opened == OK)
        choose_evaluation_batch(e);
    if (opened == OK)
        opened = model_open_tokenizer(e, error);
    if (opened != OK) {
        experiment_close(e);
        return opened;
    }
    *result = e;
    return OK;
}

status experiment_open_recorded(struct experiment **result, const struct settings *settings,
                                const struct recorded *recorded, struct task *tasks, size_t task_count,
                                struct error *error)
{
    struct experiment *e = xcalloc(1, sizeof *e);
    *e = (struct experiment){
        .settings = *settings, .recorded = recorded, .data.tasks = tasks, .data.task_count = task_count};
    e->model.groups = settings->method->groups(settings->method_options);
    status opened = model_open(e, error);
    if (opened == OK)
        opened = method_open(e, error);
    if (opened == OK)
        opened = replicas_open(e, error);
    if (opened != OK) {
        experiment_close(e);
        return opened;
    }
    *result = e;
    return OK;
}

static status expect_same_file(const struct experiment *e, const struct file_stamp *before, struct error *error)
{
    if (file_stamp_same(before, &e->model.weights_read))
        return OK;
    return error_set(
        error, ERROR_IO,
        "model.weights: %s changed while it was used; restore the old file and give the same command again",
        e->settings.weights);
}

status experiment_reopen(struct experiment *e, unsigned groups, enum experiment_parts parts, struct error *error)
{
    struct model before = e->model;
    replicas_close(e);
    model_close(e);
    e->effects = (struct merge_effect_list){0};
    e->model = (struct model){.tokenizer = before.tokenizer,
                              .vocabulary_read = before.vocabulary_read,
                              .head = before.head,
                              .groups = groups};
    TRY(model_open(e, error));
    TRY(expect_same_file(e, &before.weights_read, error));
    TRY(model_open_head(e, error));
    if (parts == MODEL_ALONE)
        return OK;
    TRY(method_open(e, error));
    choose_evaluation_batch(e);
    return replicas_open(e, error);
}

void experiment_close(struct experiment *e)
{
    if (e == NULL)
        return;
    replicas_close(e);
    model_close_method(e);        /* before what it reads from */
    cache_destroy(e->data.cache); /* before the datasets, whose images it caches */
    tasks_close(e);
    tokenizer_close(e->model.tokenizer);
    model_close(e);
    free(e);
}

#include "harness/run/experiment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/run/tasks.h"
#include "harness/run/weights.h"
#include "harness/train/guard.h"
#include "harness/train/replicas.h"
#include "models/clip/cost.h"

static status require_file(const char *path, const char *key, const char *expected, struct error *error)
{
    if (file_exists(path) || errno != ENOENT) /* opening it says what else is wrong */
        return OK;
    return error_set(error, ERROR_IO, "%s: there is no file %s; expected %s", key, path, expected);
}

status experiment_choose_groups(struct experiment *e, unsigned groups, struct error *error)
{
    e->groups = groups;
    const int32_t flags[CLIP_FLAGS] = {[CLIP_FLAG_IMAGE] = (e->groups & GROUP_IMAGE_TOWER) != 0,
                                       [CLIP_FLAG_TEXT] = (e->groups & GROUP_TEXT_TOWER) != 0};
    return e->backend->ops->upload(e->backend, e->clip->parameters->flags, flags, sizeof flags, error);
}

static status open_model(struct experiment *e, struct error *error)
{
    const struct settings *s = &e->settings;
    enum parameters_mode mode = e->groups & GROUPS_TOWERS ? PARAMETERS_TRAINED : PARAMETERS_FROZEN;
    struct backend *backend;
    TRY(backend_open(&backend, &s->backend, error));
    e->backend = backend;
    TRY(e->backend->ops->arena_create(e->backend, &e->model, 0, "model", error));
    TRY(e->backend->ops->arena_create(e->backend, &e->per_task, 0, "task", error));
    TRY(e->backend->ops->arena_create(e->backend, &e->step, 0, "step", error));
    char *path = weights_path(s->weights);
    if (path == NULL)
        return error_set(error, ERROR_MEMORY, "model: no memory for a path");
    status result = require_file(path, "model.weights",
                                 "CLIP's weights as safetensors, or mini for the small model that ships", error);
    if (result == OK)
        result = file_stamp_read(&e->weights_read, path, error);
    if (result == OK)
        result = clip_load(&e->clip, e->backend, &e->model, path, mode, &s->stated, error);
    free(path);
    TRY(result);
    if (e->groups & GROUP_ADAPTERS) {
        TRY(adapters_create(&e->adapters, e->backend, &e->model, &e->clip->dimensions, &s->adapter, PARAMETERS_TRAINED,
                            error));
        TRY(adapters_initialize(e->adapters, e->seed, error));
    }
    if (e->groups & GROUPS_TOWERS)
        TRY(experiment_choose_groups(e, e->groups, error));
    struct tensor memory;
    TRY(tensor_take(&memory, &e->model, TENSOR_U8, "step state", 1, (size_t[]){sizeof *e->state}, error));
    e->state = memory.data;
    TRY(tensor_take(&memory, &e->model, TENSOR_F32, "loss", 1, (size_t[]){1}, error));
    e->loss = memory.data;
    return guard_create(e, error);
}

static void choose_evaluation_batch(struct experiment *e)
{
    enum { USUAL = 64, MOST = 512 };
    const struct adapter_settings *adapter = &e->settings.adapter;
    size_t left = e->backend->ops->memory_left(e->backend),
           each = cost_evaluation_bytes(&e->clip->dimensions, 1, adapter->top_k, adapter->bottleneck), batch = MOST;
    while (batch > 1 && batch > left / 2 / each)
        batch /= 2;
    e->evaluation_batch = e->settings.evaluation_batch > 0 ? e->settings.evaluation_batch
                          : left == SIZE_MAX               ? USUAL
                                                           : batch;
    log_debug(e->log, "%zu test images at a time", e->evaluation_batch);
}

size_t experiment_evaluation_batch(const struct experiment *e)
{
    return e->evaluation_batch;
}

static status open_tokenizer(struct experiment *e, struct error *error)
{
    char *path = vocabulary_path(e->settings.vocabulary);
    if (path == NULL)
        return error_set(error, ERROR_MEMORY, "model: no memory for a path");
    status result = require_file(path, "model.vocabulary",
                                 "CLIP's bpe_simple_vocab_16e6.txt.gz, or mini with the small model", error);
    if (result == OK)
        result = file_stamp_read(&e->vocabulary_read, path, error);
    if (result == OK)
        result = tokenizer_open(&e->tokenizer, path, error);
    free(path);
    TRY(result);
    if (tokenizer_vocabulary(e->tokenizer) != e->clip->dimensions.vocabulary)
        return error_set(error, ERROR_ARGUMENT,
                         "%s has %zu tokens, but the model %s knows %zu: they do not belong together",
                         e->settings.vocabulary, tokenizer_vocabulary(e->tokenizer), e->settings.weights,
                         e->clip->dimensions.vocabulary);
    return OK;
}

static status open_cache(struct experiment *e, struct error *error)
{
    struct cache_settings settings = e->settings.cache;
    settings.log = e->log;
    return cache_create(&e->cache, &settings, error);
}

static status open_experiment(struct experiment **result, const struct suite *suite, uint64_t seed, bool frozen,
                              const struct log *log, struct error *error)
{
    struct experiment *e = calloc(1, sizeof *e);
    if (e == NULL)
        return error_set(error, ERROR_MEMORY, "suite: no memory for a run");
    *e = (struct experiment){.suite = suite, .seed = seed, .log = log};
    memcpy(e->identity, suite_settings_hash(suite), sizeof e->identity);
    status opened = settings_read(&e->settings, suite, error);
    if (opened == OK) {
        e->groups = frozen ? GROUPS_NONE : e->settings.method->groups(e->settings.method_options);
        opened = open_model(e, error);
    }
    if (opened == OK && !frozen)
        opened = method_open(e, error);
    if (opened == OK)
        choose_evaluation_batch(e);
    if (opened == OK)
        opened = open_tokenizer(e, error);
    if (opened == OK)
        opened = tasks_open(e, error);
    if (opened == OK)
        opened = open_cache(e, error);
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

status experiment_open_frozen(struct experiment **experiment, const struct suite *suite, const struct log *log,
                              struct error *error)
{
    return open_experiment(experiment, suite, 0, true, log, error);
}

status experiment_open_model(struct experiment **result, const struct settings *settings, const struct log *log,
                             struct error *error)
{
    struct experiment *e = calloc(1, sizeof *e);
    if (e == NULL)
        return error_set(error, ERROR_MEMORY, "model: no memory for its description");
    *e = (struct experiment){.settings = *settings, .log = log};
    status opened = open_model(e, error);
    if (opened == OK)
        choose_evaluation_batch(e);
    if (opened == OK)
        opened = open_tokenizer(e, error);
    if (opened != OK) {
        experiment_close(e);
        return opened;
    }
    *result = e;
    return OK;
}

static void close_model(struct experiment *e)
{
    struct error ignored;
    expert_changes_free(&e->changes);
    if (e->backend != NULL)
        e->backend->ops->bind(e->backend, &ignored);
    method_close(e);
    adapters_destroy(e->adapters);
    clip_destroy(e->clip);
    if (e->backend != NULL) {
        e->backend->ops->arena_destroy(e->backend, &e->step);
        e->backend->ops->arena_destroy(e->backend, &e->per_task);
        e->backend->ops->arena_destroy(e->backend, &e->model);
        backend_close(e->backend);
    }
    free(e);
}

void experiment_close(struct experiment *e)
{
    if (e == NULL)
        return;
    replicas_close(e);
    cache_destroy(e->cache); /* before the datasets, whose images it keeps */
    tasks_close(e);
    tokenizer_close(e->tokenizer);
    close_model(e);
}

status experiment_open_replica(struct experiment **result, const struct experiment *leader, size_t number,
                               struct error *error)
{
    struct experiment *e = calloc(1, sizeof *e);
    if (e == NULL)
        return error_set(error, ERROR_MEMORY, "suite: no memory for a replica");
    *e = (struct experiment){.suite = leader->suite,
                             .settings = leader->settings,
                             .seed = leader->seed,
                             .groups = leader->groups,
                             .task_count = leader->task_count,
                             .tasks = leader->tasks,
                             .cache = leader->cache};
    e->settings.backend.device += number;
    status opened = open_model(e, error);
    if (opened == OK)
        opened = method_open(e, error);
    if (opened != OK) {
        close_model(e);
        return opened;
    }
    *result = e;
    return OK;
}

void experiment_close_replica(struct experiment *e)
{
    if (e != NULL)
        close_model(e);
}

status experiment_set_step(struct experiment *e, size_t task, size_t step, double rate, struct error *error)
{
    struct step_state state = {
        .seed = e->seed, .task = (uint32_t)task, .step = (uint32_t)step, .learning_rate = (float)rate};
    return e->backend->ops->upload(e->backend, e->state, &state, sizeof state, error);
}

status experiment_fill(struct experiment *e, struct arena *arena, size_t n, int32_t value, const int32_t **filled,
                       struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, TENSOR_I32, "numbers", 1, &n, error));
    *filled = memory.data;
    return e->backend->ops->number_rows(e->backend,
                                        &(struct number_rows){.count = n, .first = value, .out = memory.data}, error);
}

static status clear_frozen(struct adapters *adapters, struct error *error)
{
    int32_t none[SETTINGS_EXPERTS] = {0};
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++)
            TRY(adapters_write_frozen(adapters, (enum tower)t, b, none, error));
    return OK;
}

/* What is read again must be what was read when the run began. */
static status reload_weights(struct experiment *e, const char *path, struct error *error)
{
    struct file_stamp stamp;
    TRY(clip_reload(e->clip, path, error));
    TRY(file_stamp_read(&stamp, path, error));
    if (file_stamp_same(&stamp, &e->weights_read))
        return OK;
    return error_set(error, ERROR_IO,
                     "model.weights: %s was written to while the run went on; put back what was there, and the same "
                     "command goes on",
                     path);
}

status experiment_restart(struct experiment *e, struct error *error)
{
    if (e->adapters != NULL) {
        for (int t = 0; t < TOWERS; t++) {
            struct parameters *group = e->adapters->towers[t].parameters;
            TRY(e->backend->ops->zero(e->backend, group->values, group->values_count * sizeof(float), error));
        }
        TRY(clear_frozen(e->adapters, error));
        return adapters_initialize(e->adapters, e->seed, error);
    }
    char *path = weights_path(e->settings.weights);
    if (path == NULL)
        return error_set(error, ERROR_MEMORY, "model: no memory for a path");
    status result = reload_weights(e, path, error);
    free(path);
    return result;
}

char *experiment_model_name(const struct experiment *e)
{
    return weights_name(e->settings.weights);
}

#include "harness/run/model.h"

#include <stdlib.h>

#include "harness/run/weights.h"
#include "harness/train/guard.h"
#include "harness/train/method_run.h"

status model_open(struct experiment *e, struct error *error)
{
    const struct settings *s = &e->settings;
    enum parameters_mode mode = e->groups & GROUPS_TOWERS ? PARAMETERS_TRAINED : PARAMETERS_FROZEN;
    struct backend *backend;
    TRY(backend_open(&backend, &s->backend, error));
    e->backend = backend;
    TRY(e->backend->ops->arena_create(e->backend, &e->model, 0, "model", error));
    TRY(e->backend->ops->arena_create(e->backend, &e->per_task, 0, "task", error));
    TRY(e->backend->ops->arena_create(e->backend, &e->step, 0, "step", error));
    TRY(weights_load(&e->clip, e->backend, &e->model, s->weights, mode, &s->stated, &e->weights_read, error));
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

void model_close_method(struct experiment *e)
{
    struct error ignored;
    if (e->backend != NULL)
        e->backend->ops->bind(e->backend, &ignored);
    method_close(e);
}

void model_close(struct experiment *e)
{
    expert_changes_free(&e->changes);
    model_close_method(e);
    adapters_destroy(e->adapters);
    clip_destroy(e->clip);
    if (e->backend != NULL) {
        e->backend->ops->arena_destroy(e->backend, &e->step);
        e->backend->ops->arena_destroy(e->backend, &e->per_task);
        e->backend->ops->arena_destroy(e->backend, &e->model);
        backend_close(e->backend);
    }
}

status model_open_replica(struct experiment **result, const struct experiment *leader, size_t number,
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
                             .tokenizer = leader->tokenizer,
                             .cache = leader->cache,
                             .recorded = leader->recorded};
    e->settings.backend.device += number;
    status opened = model_open(e, error);
    if (opened == OK)
        opened = method_open(e, error);
    if (opened != OK) {
        model_close_replica(e);
        return opened;
    }
    *result = e;
    return OK;
}

void model_close_replica(struct experiment *e)
{
    if (e != NULL)
        model_close(e);
    free(e);
}

status model_open_tokenizer(struct experiment *e, struct error *error)
{
    return vocabulary_open(&e->tokenizer, e->settings.vocabulary, e->clip, e->settings.weights, &e->vocabulary_read,
                           error);
}

static status clear_frozen(struct adapters *adapters, struct error *error)
{
    int32_t none[ADAPTER_EXPERTS] = {0};
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

status model_restart(struct experiment *e, struct error *error)
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

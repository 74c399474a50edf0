#include "harness/run/model_opening.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "harness/heads/heads.h"
#include "harness/heads/weights.h"
#include "harness/train/guard.h"
#include "harness/train/method_run.h"

static status start_adapters(struct experiment *e, struct error *error)
{
    const struct clip *clip = e->model.clip;
    const struct block *blocks[TOWERS] = {clip->towers[TOWER_IMAGE].blocks, clip->towers[TOWER_TEXT].blocks};
    TRY(adapters_initialize(e->model.adapters, blocks, e->seed, error));
    return e->model.head->load_experts != NULL ? e->model.head->load_experts(e, error)
                                               : adapters_check_start(e->model.adapters, blocks, error);
}

static status replace_mlps(struct experiment *e, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        TRY(clip_replace_mlps(e->model.clip, (enum tower)t, adapters_hooks(e->model.adapters, (enum tower)t), error));
    return OK;
}

static enum parameters_mode mode_of(const struct experiment *e, unsigned groups)
{
    if ((e->model.groups & groups) == 0)
        return PARAMETERS_FROZEN;
    return e->settings.one_moment ? PARAMETERS_TRAINED_ONE_MOMENT : PARAMETERS_TRAINED;
}

status model_open(struct experiment *e, struct error *error)
{
    struct settings *s = &e->settings;
    struct backend *backend;
    e->model.head = s->head != NULL ? s->head : &head_text;
    TRY(backend_open(&backend, &s->backend, error));
    e->model.backend = backend;
    TRY(e->model.backend->ops->arena_create(e->model.backend, &e->model.memory, 0, "model", error));
    TRY(e->model.backend->ops->arena_create(e->model.backend, &e->model.task_memory, 0, "task", error));
    TRY(e->model.backend->ops->arena_create(e->model.backend, &e->model.step_memory, 0, "step", error));
    TRY(e->model.backend->ops->arena_create(e->model.backend, &e->model.text_memory, 0, "texts", error));
    TRY(e->model.head->load(e, mode_of(e, GROUPS_TOWERS), error));
    if (e->model.groups & GROUP_ADAPTERS) {
        s->adapter.activation = e->model.clip->activation;
        TRY(adapters_create(&e->model.adapters, e->model.backend, &e->model.memory, &e->model.clip->dimensions,
                            &s->adapter, mode_of(e, GROUP_ADAPTERS), error));
        TRY(start_adapters(e, error));
    }
    if (e->model.groups & GROUP_ADAPTERS && e->model.groups & GROUPS_TOWERS)
        TRY(replace_mlps(e, error));
    if (e->model.groups & GROUPS_TOWERS)
        TRY(experiment_choose_groups(e, e->model.groups, error));
    struct tensor memory;
    TRY(tensor_take(&memory, &e->model.memory, TENSOR_U8, "step state", 1, (size_t[]){sizeof *e->model.state}, error));
    e->model.state = memory.data;
    TRY(tensor_take(&memory, &e->model.memory, TENSOR_F32, "loss", 1, (size_t[]){LOSS_TERMS}, error));
    e->model.loss = memory.data;
    return guard_create(e, error);
}

void model_close_method(struct experiment *e)
{
    struct error ignored;
    if (e->model.backend != NULL)
        e->model.backend->ops->bind(e->model.backend, &ignored);
    method_close(e);
}

void model_close(struct experiment *e)
{
    expert_changes_free(&e->changes);
    free(e->effects.effects);
    model_close_method(e);
    if (e->model.head != NULL && e->model.head->close != NULL)
        e->model.head->close(e);
    adapters_destroy(e->model.adapters);
    clip_destroy(e->model.clip);
    if (e->model.backend != NULL) {
        e->model.backend->ops->arena_destroy(e->model.backend, &e->model.text_memory);
        e->model.backend->ops->arena_destroy(e->model.backend, &e->model.step_memory);
        e->model.backend->ops->arena_destroy(e->model.backend, &e->model.task_memory);
        e->model.backend->ops->arena_destroy(e->model.backend, &e->model.memory);
        backend_close(e->model.backend);
    }
}

status model_open_replica(struct experiment **result, const struct experiment *leader, size_t number,
                          struct error *error)
{
    struct experiment *e = xcalloc(1, sizeof *e);
    *e = (struct experiment){.suite = leader->suite,
                             .settings = leader->settings,
                             .seed = leader->seed,
                             .model.groups = leader->model.groups,
                             .data.task_count = leader->data.task_count,
                             .data.tasks = leader->data.tasks,
                             .model.tokenizer = leader->model.tokenizer,
                             .data.cache = leader->data.cache,
                             .recorded = leader->recorded};
    e->settings.backend.device += number;
    status opened = model_open(e, error);
    NEXT(opened, model_open_head(e, error));
    NEXT(opened, method_open(e, error));
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

status model_open_head(struct experiment *e, struct error *error)
{
    return e->model.head->open != NULL ? e->model.head->open(e, mode_of(e, GROUP_HEAD), error) : OK;
}

status model_open_tokenizer(struct experiment *e, struct error *error)
{
    if (!e->model.head->of_texts)
        return OK;
    return vocabulary_open(&e->model.tokenizer, e->settings.vocabulary, e->model.clip, e->settings.weights,
                           &e->model.vocabulary_read, error);
}

static status clear_frozen(struct adapters *adapters, struct error *error)
{
    int32_t none[ADAPTER_EXPERTS] = {0};
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++)
            TRY(adapters_write_frozen(adapters, (enum tower)t, b, none, error));
    return OK;
}

/* The file must be the one that was read when the run began. */
static status reload_weights(struct experiment *e, const char *path, struct error *error)
{
    struct file_stamp stamp;
    TRY(clip_reload(e->model.clip, path, error));
    TRY(weights_stamp(&stamp, path, error));
    if (file_stamp_same(&stamp, &e->model.weights_read))
        return OK;
    return error_set(error, ERROR_IO,
                     "model.weights: %s changed during the run; restore the old file and give the same "
                     "command to go on",
                     path);
}

status model_restart(struct experiment *e, struct error *error)
{
    if (e->model.adapters != NULL) {
        for (int t = 0; t < TOWERS; t++) {
            struct parameters *group = e->model.adapters->towers[t].parameters;
            TRY(e->model.backend->ops->zero(e->model.backend, parameters_write_all(group),
                                            group->values_count * sizeof(float), error));
        }
        TRY(clear_frozen(e->model.adapters, error));
        return start_adapters(e, error);
    }
    char *path = weights_path(e->settings.weights);
    status result = reload_weights(e, path, error);
    free(path);
    return result;
}

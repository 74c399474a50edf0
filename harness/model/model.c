#include "harness/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/model/proven.h"
#include "harness/model/weights.h"
#include "models/clip/cost.h"

/* The head of a run without a model. */
static const struct head head_none = {.name = "none"};

#define ENTRY(name) &head_##name,
static const struct head *const heads[] = {HEADS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(head, struct head, heads, "suite", "head")

static status start_adapters(struct model *model, struct error *error)
{
    const struct clip *clip = model->clip;
    const struct block *blocks[TOWERS] = {clip->towers[TOWER_IMAGE].blocks, clip->towers[TOWER_TEXT].blocks};
    TRY(adapters_initialize(model->adapters, blocks, model->seed, error));
    return model->head->load_experts != NULL ? model->head->load_experts(model, error)
                                             : adapters_check_start(model->adapters, blocks, error);
}

static status replace_mlps(struct model *model, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        TRY(clip_replace_mlps(model->clip, (enum tower)t, adapters_hooks(model->adapters, (enum tower)t), error));
    return OK;
}

static enum parameters_mode mode_of(const struct model *model, unsigned groups)
{
    if ((model->groups & groups) == 0)
        return PARAMETERS_FROZEN;
    return model->settings.one_moment ? PARAMETERS_TRAINED_ONE_MOMENT : PARAMETERS_TRAINED;
}

/* Marks the towers that an update changes, if the weights of both are trainable; logit_scale stays. */
static status choose_groups(struct model *model, struct error *error)
{
    const int32_t flags[CLIP_FLAGS] = {[CLIP_FLAG_IMAGE] = (model->groups & GROUP_IMAGE_TOWER) != 0,
                                       [CLIP_FLAG_TEXT] = (model->groups & GROUP_TEXT_TOWER) != 0};
    struct parameters *group = model->clip->parameters; /* a model without texts has the first flag alone */
    return model->backend->ops->upload(model->backend, group->flags, flags, group->flags_count * sizeof *flags, error);
}

status model_open(struct model *model, struct error *error)
{
    struct settings *s = &model->settings;
    struct backend *backend;
    model->head = s->without_model ? &head_none : s->head != NULL ? s->head : &head_text;
    const struct backend_settings host = {.name = "cpu", .threads = s->threads};
    TRY(proven_open(&backend, s->without_model ? &host : &s->backend, s->cache.folder, model->log, error));
    model->backend = backend;
    if (!s->without_model)
        s->backend.name = backend->ops->name; /* of the other GPUs, too */
    TRY(model->backend->ops->arena_create(model->backend, &model->memory, 0, "model", error));
    TRY(model->backend->ops->arena_create(model->backend, &model->task_memory, 0, "task", error));
    TRY(model->backend->ops->arena_create(model->backend, &model->step_memory, 0, "step", error));
    TRY(model->backend->ops->arena_create(model->backend, &model->text_memory, 0, "texts", error));
    if (!s->without_model)
        TRY(model->head->load(model, mode_of(model, GROUPS_TOWERS), error));
    if (model->groups & GROUP_ADAPTERS) {
        s->adapter.activation = model->clip->activation;
        TRY(adapters_create(&model->adapters, model->backend, &model->memory, &model->clip->dimensions, &s->adapter,
                            mode_of(model, GROUP_ADAPTERS), error));
        TRY(start_adapters(model, error));
    }
    if (model->groups & GROUP_DELTAS) {
        TRY(deltas_create(&model->deltas, model->clip, &model->memory, &s->delta, mode_of(model, GROUP_DELTAS), error));
        TRY(deltas_initialize(model->deltas, model->seed, error));
    }
    if (model->groups & GROUP_ADAPTERS && model->groups & GROUPS_TOWERS)
        TRY(replace_mlps(model, error));
    if (model->groups & GROUPS_TOWERS)
        TRY(choose_groups(model, error));
    struct tensor memory;
    TRY(tensor_take(&memory, &model->memory, TENSOR_U8, "step state", 1, (size_t[]){sizeof *model->state}, error));
    model->state = memory.data;
    TRY(tensor_take(&memory, &model->memory, TENSOR_F32, "loss", 1, (size_t[]){LOSS_TERMS}, error));
    model->loss = memory.data;
    TRY(tensor_take(&memory, &model->memory, TENSOR_I32, "found", 1, (size_t[]){1}, error));
    model->found = memory.data;
    return OK;
}

void model_close(struct model *model)
{
    struct error ignored;
    if (model->backend != NULL)
        model->backend->ops->bind(model->backend, &ignored);
    if (model->head != NULL && model->head->close != NULL)
        model->head->close(model);
    adapters_destroy(model->adapters);
    prefixes_destroy(model->prefixes);
    deltas_destroy(model->deltas);
    clip_destroy(model->clip);
    if (model->backend != NULL) {
        model->backend->ops->arena_destroy(model->backend, &model->text_memory);
        model->backend->ops->arena_destroy(model->backend, &model->step_memory);
        model->backend->ops->arena_destroy(model->backend, &model->task_memory);
        model->backend->ops->arena_destroy(model->backend, &model->memory);
        backend_close(model->backend);
    }
}

status model_open_head(struct model *model, size_t classes, struct error *error)
{
    return model->head->open != NULL ? model->head->open(model, classes, mode_of(model, GROUP_HEAD), error) : OK;
}

status model_open_tokenizer(struct model *model, struct error *error)
{
    if (!model->head->of_texts)
        return OK;
    status opened = vocabulary_open(&model->tokenizer, model->settings.vocabulary, model->clip, model->settings.weights,
                                    &model->vocabulary_read, error);
    return opened == ERROR_IO && model->planned ? OK : opened;
}

static status clear_frozen(struct adapters *adapters, struct error *error)
{
    int32_t none[ADAPTER_EXPERTS] = {0};
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++)
            TRY(adapters_write_frozen(adapters, (enum tower)t, b, none, error));
    return OK;
}

status model_restart(struct model *model, struct error *error)
{
    if (model->adapters != NULL) {
        for (int t = 0; t < TOWERS; t++) {
            struct parameters *group = model->adapters->towers[t].parameters;
            TRY(model->backend->ops->zero(model->backend, parameters_write_all(group),
                                          group->values_count * sizeof(float), error));
        }
        TRY(clear_frozen(model->adapters, error));
        return start_adapters(model, error);
    }
    OWNED char *path = weights_path(model->settings.weights);
    TRY(clip_reload(model->clip, path, error));
    return weights_expect(&model->weights_read, path, error);
}

void model_choose_batch(struct model *model)
{
    enum { USUAL = 64, MOST = 512 };
    if (model->clip == NULL)
        return;
    const struct clip_dimensions *n = &model->clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &model->settings.adapter);
    size_t left = model->backend->ops->memory_left(model->backend), each = cost_evaluation_bytes(n, 1, &experts),
           batch = MOST;
    while (batch > 1 && batch > left / 2 / each)
        batch /= 2;
    model->evaluation_batch = model->settings.evaluation_batch > 0 ? model->settings.evaluation_batch
                              : left == SIZE_MAX                   ? USUAL
                                                                   : batch;
    log_debug(model->log, "%zu test images at a time", model->evaluation_batch);
}

status model_set_step(struct model *model, size_t task, size_t step, double rate, struct error *error)
{
    struct step_state state = {
        .seed = model->seed, .task = (uint32_t)task, .step = (uint32_t)step, .learning_rate = (float)rate};
    return model->backend->ops->upload(model->backend, model->state, &state, sizeof state, error);
}

status model_fill(struct model *model, struct arena *arena, size_t n, int32_t value, const int32_t **filled,
                  struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, TENSOR_I32, "numbers", 1, &n, error));
    *filled = memory.data;
    return model->backend->ops->arange(model->backend, &(struct arange){.count = n, .first = value, .out = memory.data},
                                       error);
}

status model_finite(const struct model *model, const float *values, size_t n, bool *finite, struct error *error)
{
    const struct backend_ops *ops = model->backend->ops;
    int32_t found;
    TRY(ops->zero(model->backend, model->found, sizeof *model->found, error));
    TRY(ops->find_not_finite(model->backend, &(struct find_not_finite){.n = n, .values = values, .found = model->found},
                             error));
    TRY(ops->download(model->backend, &found, model->found, sizeof found, error));
    *finite = !found;
    return OK;
}

size_t model_routers(const struct model *model)
{
    return model->adapters != NULL   ? model->adapters->settings.tasks
           : model->prefixes != NULL ? model->prefixes->settings.tasks
                                     : 0;
}

int model_router(const struct model *model, size_t task)
{
    if (model->adapters != NULL)
        return adapters_router(&model->adapters->settings, task);
    return model->prefixes != NULL ? (int)task : -1;
}

size_t model_feature_width(const struct model *model)
{
    const struct clip_dimensions *n = &model->clip->dimensions;
    return n->embed > 0 ? n->embed : n->image_width; /* a model without texts has no projection */
}

const char *model_device(const struct model *model)
{
    struct gpus gpus;
    struct error none;
    const char *wanted = model->settings.backend.name;
    if (!model->settings.without_model)
        return model->backend->ops->name;
    bool finds = strcmp(wanted, "auto") == 0 && backend_gpus(&gpus, &none) == OK && gpus.count > 0;
    return finds || strcmp(wanted, "cuda") == 0 ? "cuda" : "cpu";
}

char *model_name(const struct model *model)
{
    return path_stem(model->settings.weights);
}

/* --- Groups of parameters --- */

bool groups_beside_towers(unsigned groups)
{
    return groups & (GROUP_ADAPTERS | GROUP_DELTAS | GROUP_PREFIXES) && !(groups & GROUPS_TOWERS);
}

const struct option groups_options[] = {
    OPTION_ONE_OF("train", "adapters|weights", "weights", "trained parameters: the adapters, or all weights"), {0}};

unsigned groups_chosen(const struct options *options)
{
    return options_choice(options, "train") == 0 ? GROUP_ADAPTERS : GROUPS_TOWERS;
}

static struct parameters *of_adapters(const struct model *model, enum tower tower)
{
    return model->groups & GROUP_ADAPTERS && adapters_in_tower(model->adapters, tower)
               ? model->adapters->towers[tower].parameters
               : NULL;
}

/* Those of both towers are one group, whose flags distinguish them. */
bool trained_group_at(const struct model *model, size_t index, struct trained_group *group)
{
    const struct trained_group all[] = {
        {"image", of_adapters(model, TOWER_IMAGE)},
        {"text", of_adapters(model, TOWER_TEXT)},
        {"clip", model->groups & GROUPS_TOWERS ? model->clip->parameters : NULL},
        {"deltas", model->groups & GROUP_DELTAS ? model->deltas->parameters : NULL},
        {"prefixes", model->groups & GROUP_PREFIXES ? model->prefixes->parameters : NULL},
        {"head", model->groups & GROUP_HEAD ? model->head->parameters(model) : NULL},
        {"peer", model->peer != NULL ? model->peer->parameters : NULL},
        {"peer_head", model->peer != NULL ? model->peer_head->parameters : NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].parameters != NULL && index-- == 0) {
            *group = all[i];
            return true;
        }
    return false;
}

static bool is_trained(const struct model *model, const struct parameters *group, size_t flag)
{
    if (model->prefixes != NULL && group == model->prefixes->parameters)
        return flag < model->prefixes->settings.tasks;
    bool tower = group == model->clip->parameters || (model->peer != NULL && group == model->peer->parameters);
    return !tower || (flag == CLIP_FLAG_IMAGE && model->groups & GROUP_IMAGE_TOWER) ||
           (flag == CLIP_FLAG_TEXT && model->groups & GROUP_TEXT_TOWER);
}

static bool tower_is_trained(const struct model *model, enum tower tower)
{
    return of_adapters(model, tower) != NULL ||
           (model->groups & GROUP_DELTAS && deltas_in_tower(model->deltas, tower)) ||
           (model->groups & GROUP_PREFIXES && prefixes_hooks(model->prefixes, tower) != NULL) ||
           model->groups & (tower == TOWER_IMAGE ? GROUP_IMAGE_TOWER : GROUP_TEXT_TOWER);
}

void trained_encoding(struct model *model, enum tower tower, const int32_t *routers, struct encoding *encoding)
{
    *encoding = (struct encoding){.arena = tower == TOWER_IMAGE ? &model->step_memory : &model->text_memory,
                                  .training = tower_is_trained(model, tower),
                                  .state = model->state,
                                  .dropout = tower == TOWER_IMAGE ? model->dropout : 0};
    if (model->groups & GROUP_PREFIXES)
        encoding->attention = prefixes_hooks(model->prefixes, tower);
    if (of_adapters(model, tower) != NULL)
        encoding->hooks = adapters_hooks(model->adapters, tower);
    if (encoding->attention != NULL || encoding->hooks != NULL)
        encoding->router = routers;
}

status model_products(struct model *model, const float *a, size_t n, const float *b, size_t m, size_t width, float *out,
                      struct error *error)
{
    const struct backend_ops *ops = model->backend->ops;
    struct arena *arena = &model->step_memory;
    struct tensor left, right, product;
    arena_reset(arena);
    TRY(tensor_take(&left, arena, TENSOR_F32, "left factor", 2, (size_t[]){n, width}, error));
    TRY(tensor_take(&right, arena, TENSOR_F32, "right factor", 2, (size_t[]){m, width}, error));
    TRY(tensor_take(&product, arena, TENSOR_F32, "products", 2, (size_t[]){n, m}, error));
    TRY(ops->upload(model->backend, left.data, a, tensor_bytes(&left), error));
    TRY(ops->upload(model->backend, right.data, b, tensor_bytes(&right), error));
    TRY(ops->gemm(model->backend,
                  &(struct gemm){.a = matrix_of(&left),
                                 .b = matrix_of(&right),
                                 .transpose_b = true,
                                 .out = matrix_of(&product),
                                 .exact = true},
                  error));
    return ops->download(model->backend, out, product.data, tensor_bytes(&product), error);
}

size_t trained_values(const struct model *model)
{
    struct trained_group group;
    size_t values = 0;
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        for (size_t k = 0; k < group.parameters->count; k++) {
            const struct parameter *p = &group.parameters->list[k];
            values += is_trained(model, group.parameters, (size_t)group.parameters->host_flag[p->first_segment])
                          ? p->size
                          : 0;
        }
    return values;
}

status trained_groups_reset(const struct model *model, struct error *error)
{
    struct trained_group group;
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        TRY(parameters_reset(group.parameters, error));
    return OK;
}

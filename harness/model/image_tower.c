#include "harness/model/image_tower.h"

#include "adapters/files/adapter_file.h"
#include "core/scope.h"
#include "harness/model/weights.h"

status image_tower_look(struct vit_file *found, bool *is_vit, const struct settings *s, struct error *error)
{
    struct vit_stated stated = vit_weights_stated(&s->stated);
    return vit_weights_look(found, is_vit, s->weights, &stated, error);
}

/* --- The tower --- */

static status draw_tower(struct model *model, enum pool pool, enum parameters_mode mode, struct error *error)
{
    struct vit_settings vit = model->settings.scratch;
    vit.pool = pool;
    TRY(vit_create(&model->clip, model->backend, &model->memory, &vit, mode, error));
    return vit_initialize(model->clip, model->seed, error);
}

/* The file's model is in the task's memory until its tower is copied. */
static status take_tower(struct model *model, bool is_vit, enum pool pool, enum parameters_mode mode,
                         struct error *error)
{
    const struct settings *s = &model->settings;
    struct vit_stated stated = vit_weights_stated(&s->stated);
    struct clip *clip = NULL;
    status result = is_vit ? vit_weights_load(&clip, model->backend, &model->task_memory, s->weights, PARAMETERS_FROZEN,
                                              &stated, &model->weights_read, error)
                           : weights_load(&clip, model->backend, &model->task_memory, s->weights, PARAMETERS_FROZEN,
                                          &s->stated, &model->weights_read, error);
    if (result == OK) {
        struct vit_settings vit = vit_settings_of(clip);
        vit.pool = pool;
        result = model_choice_check(s->model_options, &vit, error);
        vit.resolution = model_choice_resolution(s->model_options, vit.resolution);
        NEXT(result, vit_create(&model->clip, model->backend, &model->memory, &vit, mode, error));
    }
    NEXT(result, vit_copy_image_tower(model->clip, clip, error));
    clip_destroy(clip);
    arena_reset(&model->task_memory);
    return result;
}

static status read_tower(struct model *model, enum pool pool, enum parameters_mode mode, struct error *error)
{
    struct vit_stated stated = vit_weights_stated(&model->settings.stated);
    TRY(vit_weights_load(&model->clip, model->backend, &model->memory, model->settings.weights, mode, &stated,
                         &model->weights_read, error));
    model->clip->pool = pool;
    return OK;
}

/* Opens the file's experts where nothing is trained. */
static status open_experts(struct model *model, const struct vit_file *file, struct error *error)
{
    if (!file->experts || model->groups != GROUPS_NONE)
        return OK;
    return vit_weights_experts(&model->adapters, model->clip, &model->memory, model->settings.weights, error);
}

/* Without mixtures, the MLPs that the file leaves out would be missing. */
static status check_replaced(const struct model *model, const struct vit_file *file, struct error *error)
{
    if (!file->experts || model->groups & GROUP_ADAPTERS || model->groups == GROUPS_NONE)
        return OK;
    return error_set(
        error, ERROR_ARGUMENT,
        "model.weights: %s has experts in place of MLPs; set method.ffn and the keys of adapter as they were trained",
        model->settings.weights);
}

static status check_pool(const struct model *model, const struct vit_file *file, enum pool pool, struct error *error)
{
    static const char *const words[] = {[POOL_CLASS_TOKEN] = "class_token", [POOL_MEAN_PATCHES] = "mean_patches"};
    if (!file->states_pool || file->settings.pool == pool)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "model.weights: %s was trained with head.pool %s, but the suite's is %s; set head.pool=%s",
                     model->settings.weights, words[file->settings.pool], words[pool], words[file->settings.pool]);
}

/* Experts that are there have their blocks, which no score has to choose. */
static status take_blocks(struct model *model, const struct vit_file *file, struct error *error)
{
    struct block_choice *blocks = &model->settings.adapter.place.blocks;
    struct adapter_settings found = {0};
    SCOPED(safetensors_close_at) struct safetensors *opened = NULL;
    if (!file->experts || !(model->groups & GROUP_ADAPTERS) || blocks->rule != BLOCKS_BY_SCORE)
        return OK;
    TRY(safetensors_open(&opened, model->settings.weights, WEIGHTS_WHOLE, error));
    TRY(adapter_file_settings(opened, "", &found, error));
    *blocks = found.place.blocks;
    return OK;
}

status image_tower_load(struct model *model, enum pool pool, enum parameters_mode mode, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    if (model->settings.scratch.width > 0)
        return draw_tower(model, pool, mode, error);
    TRY(image_tower_look(&file, &is_vit, &model->settings, error));
    TRY(check_replaced(model, &file, error));
    TRY(check_pool(model, &file, pool, error));
    if (is_vit)
        TRY(model_choice_check(model->settings.model_options, &file.settings, error));
    size_t own = file.settings.resolution;
    if (is_vit && model_choice_resolution(model->settings.model_options, own) == own)
        TRY(read_tower(model, pool, mode, error));
    else
        TRY(take_tower(model, is_vit, pool, mode, error));
    TRY(take_blocks(model, &file, error));
    return open_experts(model, &file, error);
}

status image_tower_open(struct model *model, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    TRY(image_tower_look(&file, &is_vit, &model->settings, error));
    if (!is_vit)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected a vision transformer under the names of timm or Hugging Face's ViT",
                         model->settings.weights);
    TRY(read_tower(model, file.settings.pool, PARAMETERS_FROZEN, error));
    return open_experts(model, &file, error);
}

/* --- Its experts and its head --- */

/* A shared MLP is in the file although experts replace it in some of the blocks. */
static status check_blocks(const struct model *model, const struct vit_file *file, const struct adapter_place *found,
                           struct error *error)
{
    const struct adapter_place *place = &model->settings.adapter.place;
    const struct clip_dimensions *n = &model->clip->dimensions;
    for (size_t b = 0; b < file->settings.blocks; b++) {
        bool expected = adapter_place_has(place, n, TOWER_IMAGE, b), has = adapter_place_has(found, n, TOWER_IMAGE, b);
        if (expected != has)
            return error_set(error, ERROR_ARGUMENT,
                             "model.weights: %s has %s in block %zu, but adapter.blocks expects %s; set adapter.blocks "
                             "to the blocks in which the file has experts",
                             model->settings.weights, has ? "experts" : "an MLP", b, has ? "an MLP" : "experts");
        if (!has && file->replaced >> b & 1)
            return error_set(error, ERROR_FORMAT, "model.weights: %s has neither an MLP nor experts in block %zu",
                             model->settings.weights, b);
    }
    return OK;
}

static status load_from(struct model *model, const struct vit_file *file, const struct safetensors *opened,
                        struct error *error)
{
    const struct adapter_settings *s = &model->settings.adapter;
    struct adapter_settings found = {0};
    TRY(adapter_file_settings(opened, "", &found, error));
    if (found.experts != s->experts)
        return error_set(error, ERROR_ARGUMENT,
                         "model.weights: %s has %zu experts in a block, but adapter.experts is %zu",
                         model->settings.weights, found.experts, s->experts);
    if (found.place.banks != s->place.banks)
        return error_set(error, ERROR_ARGUMENT,
                         "model.weights: the experts of %s were trained with adapter.share_across_blocks %zu, but the "
                         "suite's is %zu",
                         model->settings.weights, found.place.banks, s->place.banks);
    TRY(check_blocks(model, file, &found.place, error));
    return adapters_load(model->adapters, opened, "", GROUP_ROUTERS_OPTIONAL, error);
}

status image_tower_load_experts(struct model *model, struct error *error)
{
    struct vit_file file;
    SCOPED(safetensors_close_at) struct safetensors *opened = NULL;
    bool is_vit;
    if (model->settings.scratch.width > 0)
        return OK;
    TRY(image_tower_look(&file, &is_vit, &model->settings, error));
    if (!file.experts)
        return adapters_check_start(model->adapters,
                                    (const struct block *[TOWERS]){model->clip->towers[TOWER_IMAGE].blocks}, error);
    TRY(safetensors_open(&opened, model->settings.weights, WEIGHTS_WHOLE, error));
    return load_from(model, &file, opened, error);
}

status image_tower_has_head(const struct model *model, size_t classes, bool *there, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    *there = false;
    if (model->settings.scratch.width > 0)
        return OK;
    TRY(image_tower_look(&file, &is_vit, &model->settings, error));
    *there = is_vit && file.classes == classes;
    return OK;
}

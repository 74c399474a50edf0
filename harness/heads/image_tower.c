#include "harness/heads/image_tower.h"

#include <stdlib.h>

#include "adapters/files/adapter_file.h"
#include "harness/heads/model_choice.h"
#include "harness/heads/weights.h"

status image_tower_look(struct vit_file *found, bool *is_vit, const struct settings *s, struct error *error)
{
    struct vit_stated stated = vit_weights_stated(&s->stated);
    return vit_weights_look(found, is_vit, s->weights, &stated, error);
}

/* --- The tower --- */

static status draw_tower(struct experiment *e, enum pool pool, enum parameters_mode mode, struct error *error)
{
    struct vit_settings vit = e->settings.scratch;
    vit.pool = pool;
    TRY(vit_create(&e->model.clip, e->model.backend, &e->model.memory, &vit, mode, error));
    return vit_initialize(e->model.clip, e->seed, error);
}

/* The file's model is in the task's memory until its tower is copied. */
static status take_tower(struct experiment *e, bool is_vit, enum pool pool, enum parameters_mode mode,
                         struct error *error)
{
    const struct settings *s = &e->settings;
    struct vit_stated stated = vit_weights_stated(&s->stated);
    struct clip *clip = NULL;
    status result = is_vit ? vit_weights_load(&clip, e->model.backend, &e->model.task_memory, s->weights,
                                              PARAMETERS_FROZEN, &stated, &e->model.weights_read, error)
                           : weights_load(&clip, e->model.backend, &e->model.task_memory, s->weights, PARAMETERS_FROZEN,
                                          &s->stated, &e->model.weights_read, error);
    if (result == OK) {
        struct vit_settings vit = vit_settings_of(clip);
        vit.pool = pool;
        result = model_choice_check(s->model_options, &vit, error);
        vit.resolution = model_choice_resolution(s->model_options, vit.resolution);
        NEXT(result, vit_create(&e->model.clip, e->model.backend, &e->model.memory, &vit, mode, error));
    }
    NEXT(result, vit_copy_image_tower(e->model.clip, clip, error));
    clip_destroy(clip);
    arena_reset(&e->model.task_memory);
    return result;
}

static status read_tower(struct experiment *e, enum pool pool, enum parameters_mode mode, struct error *error)
{
    struct vit_stated stated = vit_weights_stated(&e->settings.stated);
    TRY(vit_weights_load(&e->model.clip, e->model.backend, &e->model.memory, e->settings.weights, mode, &stated,
                         &e->model.weights_read, error));
    e->model.clip->pool = pool;
    return OK;
}

/* Opens the file's experts where nothing is trained. */
static status open_experts(struct experiment *e, const struct vit_file *file, struct error *error)
{
    if (!file->experts || e->model.groups != GROUPS_NONE)
        return OK;
    return vit_weights_experts(&e->model.adapters, e->model.clip, &e->model.memory, e->settings.weights, error);
}

/* Without mixtures, the MLPs that the file leaves out would be missing. */
static status check_replaced(const struct experiment *e, const struct vit_file *file, struct error *error)
{
    if (!file->experts || e->model.groups & GROUP_ADAPTERS || e->model.groups == GROUPS_NONE)
        return OK;
    return error_set(
        error, ERROR_ARGUMENT,
        "model.weights: %s has experts in place of MLPs; set method.ffn and the keys of adapter as they were trained",
        e->settings.weights);
}

static status check_pool(const struct experiment *e, const struct vit_file *file, enum pool pool, struct error *error)
{
    static const char *const words[] = {[POOL_CLASS_TOKEN] = "class_token", [POOL_MEAN_PATCHES] = "mean_patches"};
    if (!file->states_pool || file->settings.pool == pool)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "model.weights: %s was trained with head.pool %s, but the suite's is %s; set head.pool=%s",
                     e->settings.weights, words[file->settings.pool], words[pool], words[file->settings.pool]);
}

/* Experts that are there have their blocks, which no score has to choose. */
static status take_blocks(struct experiment *e, const struct vit_file *file, struct error *error)
{
    struct block_choice *blocks = &e->settings.adapter.place.blocks;
    struct adapter_settings found = {.top_k = 1};
    struct safetensors *opened;
    if (!file->experts || !(e->model.groups & GROUP_ADAPTERS) || blocks->rule != BLOCKS_BY_SCORE)
        return OK;
    TRY(safetensors_open(&opened, e->settings.weights, error));
    status result = adapter_file_settings(opened, "", &found, error);
    if (result == OK)
        *blocks = found.place.blocks;
    safetensors_close(opened);
    return result;
}

status image_tower_load(struct experiment *e, enum pool pool, enum parameters_mode mode, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    if (e->settings.scratch.width > 0)
        return draw_tower(e, pool, mode, error);
    TRY(image_tower_look(&file, &is_vit, &e->settings, error));
    TRY(check_replaced(e, &file, error));
    TRY(check_pool(e, &file, pool, error));
    if (is_vit) {
        TRY(model_choice_check(e->settings.model_options, &file.settings, error));
        vit_weights_note(&file, e->settings.weights, e->log);
    }
    size_t own = file.settings.resolution;
    if (is_vit && model_choice_resolution(e->settings.model_options, own) == own)
        TRY(read_tower(e, pool, mode, error));
    else
        TRY(take_tower(e, is_vit, pool, mode, error));
    TRY(take_blocks(e, &file, error));
    return open_experts(e, &file, error);
}

status image_tower_open(struct experiment *e, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    TRY(image_tower_look(&file, &is_vit, &e->settings, error));
    if (!is_vit)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected a vision transformer under the names of timm or Hugging Face's ViT",
                         e->settings.weights);
    vit_weights_note(&file, e->settings.weights, e->log);
    TRY(read_tower(e, file.settings.pool, PARAMETERS_FROZEN, error));
    return open_experts(e, &file, error);
}

/* --- Its experts and its head --- */

/* A shared MLP is in the file although experts replace it in some of the blocks. */
static status check_blocks(const struct experiment *e, const struct vit_file *file, const struct adapter_place *found,
                           struct error *error)
{
    const struct adapter_place *place = &e->settings.adapter.place;
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    for (size_t b = 0; b < file->settings.blocks; b++) {
        bool expected = adapter_place_has(place, n, TOWER_IMAGE, b), has = adapter_place_has(found, n, TOWER_IMAGE, b);
        if (expected != has)
            return error_set(error, ERROR_ARGUMENT,
                             "model.weights: %s has %s in block %zu, but adapter.blocks expects %s; set adapter.blocks "
                             "to the blocks in which the file has experts",
                             e->settings.weights, has ? "experts" : "an MLP", b, has ? "an MLP" : "experts");
        if (!has && file->replaced >> b & 1)
            return error_set(error, ERROR_FORMAT, "model.weights: %s has neither an MLP nor experts in block %zu",
                             e->settings.weights, b);
    }
    return OK;
}

static status load_from(struct experiment *e, const struct vit_file *file, const struct safetensors *opened,
                        struct error *error)
{
    const struct adapter_settings *s = &e->settings.adapter;
    struct adapter_settings found = {.top_k = 1};
    TRY(adapter_file_settings(opened, "", &found, error));
    if (found.experts != s->experts)
        return error_set(error, ERROR_ARGUMENT,
                         "model.weights: %s has %zu experts in a block, but adapter.experts is %zu",
                         e->settings.weights, found.experts, s->experts);
    if (found.place.banks != s->place.banks)
        return error_set(error, ERROR_ARGUMENT,
                         "model.weights: the experts of %s were trained with adapter.share_across_blocks %zu, but the "
                         "suite's is %zu",
                         e->settings.weights, found.place.banks, s->place.banks);
    TRY(check_blocks(e, file, &found.place, error));
    return adapters_load(e->model.adapters, opened, "", ADAPTER_ROUTERS_OPTIONAL, error);
}

status image_tower_load_experts(struct experiment *e, struct error *error)
{
    struct vit_file file;
    struct safetensors *opened;
    bool is_vit;
    if (e->settings.scratch.width > 0)
        return OK;
    TRY(image_tower_look(&file, &is_vit, &e->settings, error));
    if (!file.experts)
        return adapters_check_start(e->model.adapters,
                                    (const struct block *[TOWERS]){e->model.clip->towers[TOWER_IMAGE].blocks}, error);
    TRY(safetensors_open(&opened, e->settings.weights, error));
    status result = load_from(e, &file, opened, error);
    safetensors_close(opened);
    return result;
}

status image_tower_has_head(const struct experiment *e, size_t classes, bool *there, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    *there = false;
    if (e->settings.scratch.width > 0)
        return OK;
    TRY(image_tower_look(&file, &is_vit, &e->settings, error));
    *there = is_vit && file.classes == classes;
    return OK;
}

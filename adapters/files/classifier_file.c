#include "adapters/files/classifier_file.h"

#include <stdio.h>
#include <string.h>

#include "adapters/files/adapter_file.h"
#include "adapters/routers/router.h"

static status write_file(const struct vit_content *content, const struct adapters *adapters,
                         const struct adapter_metadata_entries *metadata, const char *path, struct error *error)
{
    struct safetensors_metadata entries[VIT_METADATA + ADAPTER_METADATA_KEYS];
    struct group_extra extra = {.tensors = content->tensors,
                                .tensor_count = content->tensor_count,
                                .metadata = entries,
                                .metadata_count = VIT_METADATA + metadata->count};
    memcpy(entries, content->metadata, sizeof content->metadata);
    memcpy(entries + VIT_METADATA, metadata->list, metadata->count * sizeof *metadata->list);
    if (adapters != NULL)
        return adapters_save(adapters, &extra, path, error);
    return safetensors_write(path, extra.tensors, extra.tensor_count, entries, extra.metadata_count, error);
}

static const struct clip_tensor *find_name(const struct vit_content *content, const char *own)
{
    const struct clip_tensor *name = content->names;
    while (strcmp(name->openai, own) != 0)
        name++;
    return name;
}

/* Adds one tensor of a block's mean in place of the MLP's. */
static status add_mean(struct vit_content *content, const struct clip *vit, const char *own, const float *mean,
                       const char *path, struct error *error)
{
    const struct parameter *p = parameters_find(vit->parameters, own);
    const struct clip_tensor *name = find_name(content, own);
    struct safetensor *out = &content->tensors[content->tensor_count++];
    float *values = content->values[0] + p->offset;
    *out = (struct safetensor){.name = name->names[0], .type = SAFETENSOR_F32, .rank = p->rank, .data = values};
    memcpy(out->shape, p->shape, (size_t)p->rank * sizeof *p->shape);
    TRY(vit->backend->ops->download(vit->backend, values, mean, p->size * sizeof *values, error));
    if (not_finite_at(values, p->size) < p->size)
        return error_set(error, ERROR_FORMAT,
                         "%s: the mean of the experts for tensor '%s' is not finite; nothing is "
                         "written",
                         path, p->name);
    return OK;
}

static status add_means(struct vit_content *content, const struct clip *vit, const struct adapters *adapters,
                        const char *path, struct error *error)
{
    static const char *const parts[EXPERT_PARTS] = {"c_fc.weight", "c_fc.bias", "c_proj.weight", "c_proj.bias"};
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    for (size_t i = 0; i < tower->adapted; i++) {
        float *mean[EXPERT_PARTS];
        TRY(adapters_mean(adapters, TOWER_IMAGE, tower->passes[i].bank, mean, error));
        for (int k = 0; k < EXPERT_PARTS; k++) {
            char own[CLIP_NAME];
            snprintf(own, sizeof own, "visual.transformer.resblocks.%zu.mlp.%s", tower->passes[i].block, parts[k]);
            TRY(add_mean(content, vit, own, mean[k], path, error));
        }
    }
    return OK;
}

status classifier_save(const struct clip *vit, const struct linear_head *head, const struct adapters *adapters,
                       const struct adapter_metadata *metadata, const char *path, struct error *error)
{
    struct vit_content content;
    struct adapter_metadata_entries said = {0};
    /* the mean of the experts is used in evaluation, and no block shares its MLP */
    bool dense = adapters != NULL && router_kind_of(&adapters->settings)->averages && vit->run == 1;
    TRY(metadata != NULL ? adapter_metadata_entries(&said, metadata, error) : OK);
    status result = vit_content_take(&content, vit, head, VIT_TIMM, path, error);
    if (dense)
        NEXT(result, add_means(&content, vit, adapters, path, error));
    NEXT(result, write_file(&content, dense ? NULL : adapters, &said, path, error));
    vit_content_free(&content);
    adapter_metadata_entries_free(&said);
    return result;
}

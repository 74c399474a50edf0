#include "adapters/prefixes.h"

#include <stdio.h>
#include <stdlib.h>

#include "adapters/gated_prefixes.h"
#include "core/alloc.h"
#include "core/rng.h"

enum { TASKS_MOST = 1024, PREFIX_NUMBERS = 64 }; /* PREFIX_NUMBERS: of RNG_INIT, which others do not use */

#define PREFIX_NAME "%stransformer.resblocks.%zu.attn.prefix_pool" /* "visual." or nothing, and the block */

static struct prefix_operands operands(const struct prefix_layer *layer, const struct block_context *context,
                                       const struct block *block, const struct tensor *qkv)
{
    const struct prefixes *p = layer->prefixes;
    return (struct prefix_operands){.batch = qkv->shape[0],
                                    .positions = qkv->shape[1],
                                    .width = block->width,
                                    .heads = block->heads,
                                    .length = p->settings.length[layer->tower],
                                    .type = qkv->type,
                                    .rows = context->rows,
                                    .rows_per_sample = context->rows_per_sample,
                                    .router = context->router,
                                    .weights = p->towers[layer->tower].weights,
                                    .values = parameters_weight(p->parameters, layer->index).value,
                                    .qkv = qkv->data};
}

static status forward(void *state, const struct block_context *context, const struct block *block,
                      const struct attention_values *values, struct error *error)
{
    return context->backend->ops->prefix_attention(
        context->backend,
        &(struct prefix_attention){.prefix = operands(state, context, block, &values->qkv),
                                   .out = values->attended.data},
        error);
}

static status backward(void *state, const struct block_context *context, const struct block *block,
                       const struct attention_values *values, const struct attention_values *gradients,
                       struct error *error)
{
    const struct prefix_layer *layer = state;
    return context->backend->ops->prefix_attention_backward(
        context->backend,
        &(struct prefix_attention_backward){.prefix = operands(layer, context, block, &values->qkv),
                                            .routers = layer->prefixes->settings.tasks,
                                            .dout = gradients->attended.data,
                                            .dqkv = gradients->qkv.data,
                                            .dvalues =
                                                parameters_weight(layer->prefixes->parameters, layer->index).gradient},
        error);
}

static status declare(struct prefixes *p, enum tower tower, size_t width, struct error *error)
{
    const struct prefix_settings *s = &p->settings;
    size_t blocks = p->towers[tower].blocks;
    char name[64];
    p->towers[tower].layers = xcalloc(blocks, sizeof *p->towers[tower].layers);
    p->towers[tower].hooks = xcalloc(blocks, sizeof *p->towers[tower].hooks);
    if (s->blocks[tower] > blocks || s->length[tower] > PREFIX_LENGTH)
        return error_set(error, ERROR_ARGUMENT,
                         "prefixes of %zu keys in %zu blocks: expected at most %d keys, and a tower of this model has "
                         "%zu blocks",
                         s->length[tower], s->blocks[tower], PREFIX_LENGTH, blocks);
    for (size_t b = 0; s->length[tower] > 0 && b < s->blocks[tower]; b++) {
        struct prefix_layer *layer = &p->towers[tower].layers[b];
        *layer = (struct prefix_layer){.prefixes = p, .tower = tower, .block = b};
        if (s->heads[tower] > 0) {
            TRY(gated_layer_declare(layer, width, &p->towers[tower].hooks[b], error));
            continue;
        }
        snprintf(name, sizeof name, PREFIX_NAME, tower == TOWER_IMAGE ? "visual." : "", b);
        TRY(parameters_add(p->parameters, name, 4, (size_t[]){s->tasks, 2, s->length[tower], width}, s->tasks, 0,
                           &layer->index, error));
        p->towers[tower].hooks[b] =
            (struct attention_hook){.state = layer, .trained = true, .forward = forward, .backward = backward};
    }
    return OK;
}

status prefixes_create(struct prefixes **result, struct backend *backend, struct arena *arena,
                       const struct clip_dimensions *n, const struct prefix_settings *settings,
                       enum parameters_mode mode, struct error *error)
{
    struct prefixes *p = xcalloc(1, sizeof *p);
    p->backend = backend;
    p->settings = *settings;
    p->text_weight = 1;
    p->tested = -1;
    p->towers[TOWER_IMAGE].blocks = n->image_blocks;
    p->towers[TOWER_TEXT].blocks = n->text_blocks;
    parameters_create(&p->parameters, backend);
    status created = declare(p, TOWER_IMAGE, n->image_width, error);
    NEXT(created, declare(p, TOWER_TEXT, n->text_width, error));
    NEXT(created, parameters_allocate(p->parameters, arena, mode, error));
    if (created != OK) {
        prefixes_destroy(p);
        return created;
    }
    *result = p;
    return OK;
}

void prefixes_destroy(struct prefixes *p)
{
    if (p == NULL)
        return;
    parameters_destroy(p->parameters);
    for (int t = 0; t < TOWERS; t++) {
        free(p->towers[t].layers);
        free(p->towers[t].hooks);
    }
    free(p);
}

status prefixes_initialize(struct prefixes *p, uint64_t seed, struct error *error)
{
    status result = OK;
    for (size_t i = 0; result == OK && i < p->parameters->count; i++) {
        const struct parameter *tensor = &p->parameters->list[i];
        size_t half = tensor->size / tensor->shape[0] / 2;
        struct rng rng = rng_make(seed, RNG_INIT, PREFIX_NUMBERS, (uint32_t)i);
        float *values = xmalloc(array_size(tensor->size, sizeof *values));
        for (size_t k = 0; k < tensor->size; k++)
            values[k] = k / half % 2 == 0 ? 2 * rng_uniform(&rng, k) - 1 : 0;
        result = parameters_upload(p->parameters, tensor, values, error);
        free(values);
    }
    return result;
}

const struct attention_hook *prefixes_hooks(const struct prefixes *p, enum tower tower)
{
    return p->settings.length[tower] > 0 && p->settings.blocks[tower] > 0 ? p->towers[tower].hooks : NULL;
}

status prefixes_begin_task(struct prefixes *p, size_t task, struct error *error)
{
    struct parameters *group = p->parameters;
    int32_t *flags = xcalloc(group->flags_count, sizeof *flags);
    flags[task] = 1;
    p->trained = (int)task;
    status result = parameters_reset(group, error);
    NEXT(result, p->backend->ops->upload(p->backend, group->flags, flags, group->flags_count * sizeof *flags, error));
    free(flags);
    return result;
}

/* --- Files --- */

status prefixes_save(const struct prefixes *p, const struct group_extra *extra, const char *path, struct error *error)
{
    size_t count;
    struct group_tensor *list = group_tensors_of_tasks(p->parameters, p->settings.tasks, &count);
    status result = group_tensors_save(list, count, NULL, 0, extra, path, error);
    free(list);
    return result;
}

static const struct safetensor *find(const struct safetensors *file, enum tower tower, size_t block, size_t task)
{
    char name[128];
    snprintf(name, sizeof name, PREFIX_NAME ".%zu", tower == TOWER_IMAGE ? "visual." : "", block, task);
    return safetensors_find(file, name);
}

bool prefix_file_is(const struct safetensors *file)
{
    return find(file, TOWER_IMAGE, 0, 0) != NULL || find(file, TOWER_TEXT, 0, 0) != NULL;
}

static status read_settings(const struct safetensors *file, const struct clip *clip, struct prefix_settings *s,
                            struct error *error)
{
    *s = (struct prefix_settings){0};
    for (int tower = 0; tower < TOWERS; tower++) {
        enum tower t = (enum tower)tower;
        const struct safetensor *first = find(file, t, 0, 0);
        bool gated = first != NULL && first->rank == 2;
        if (first != NULL && ((first->rank != 3 && !gated) || first->shape[first->rank - 2] == 0))
            return error_set(error, ERROR_FORMAT,
                             "%s: tensor %s: expected shape [2, keys, width] or [values, width], found %s",
                             safetensors_path(file), first->name, shape_text(first->rank, first->shape).text);
        s->length[t] = first != NULL ? first->shape[first->rank - 2] : 0;
        while (s->blocks[t] < clip->towers[t].count && find(file, t, s->blocks[t], 0) != NULL)
            s->blocks[t]++;
        while (s->tasks < TASKS_MOST && find(file, t, 0, s->tasks) != NULL)
            s->tasks++;
        if (gated)
            TRY(gated_settings_read(file, t, s, error));
    }
    return OK;
}

status prefixes_open(struct prefixes **prefixes, const struct clip *clip, struct arena *arena,
                     const struct safetensors *file, struct error *error)
{
    struct prefix_settings settings;
    size_t count;
    if (*prefixes == NULL) {
        TRY(read_settings(file, clip, &settings, error));
        TRY(prefixes_create(prefixes, clip->backend, arena, &clip->dimensions, &settings, PARAMETERS_FROZEN, error));
    }
    struct parameters *group = (*prefixes)->parameters;
    struct group_tensor *list = group_tensors_of_tasks(group, (*prefixes)->settings.tasks, &count);
    status result = group_tensors_load(list, count, file, "", GROUP_COMPLETE, error);
    free(list);
    NEXT(result, gated_heads_check(*prefixes, file, error));
    return result;
}

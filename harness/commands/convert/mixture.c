#include "harness/commands/convert/mixture.h"

#include <math.h>
#include <stdlib.h>

#include "adapters/files/adapter_file.h"
#include "adapters/files/classifier_file.h"
#include "core/alloc.h"
#include "harness/heads/weights.h"

/* --- The dense model --- */

/* The CLIP is in the step's memory until its tower is copied. */
static status take_tower(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    struct clip *clip = NULL;
    status result = weights_load(&clip, m->backend, &m->step, s->weights, PARAMETERS_FROZEN, &s->stated, NULL, error);
    if (result == OK) {
        struct vit_settings vit = vit_settings_of(clip);
        result = vit_create(&m->vit, m->backend, &m->memory, &vit, PARAMETERS_FROZEN, error);
    }
    NEXT(result, vit_copy_image_tower(m->vit, clip, error));
    clip_destroy(clip);
    arena_reset(&m->step);
    return result;
}

static status load_dense(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    const struct vit_stated stated = {.heads = s->stated.config.image_heads,
                                      .activation = s->stated.config.activation,
                                      .by = "--heads or --activation"};
    struct vit_file file;
    bool is_vit;
    TRY(vit_weights_look(&file, &is_vit, s->weights, &stated, error));
    if (!is_vit)
        return take_tower(m, s, error);
    TRY(vit_weights_load(&m->vit, m->backend, &m->memory, s->weights, PARAMETERS_FROZEN, &stated, NULL, error));
    if (file.classes == 0)
        return OK;
    return vit_load_head(&m->head, m->backend, &m->memory, s->weights, PARAMETERS_FROZEN, error);
}

/* --- The mixture --- */

/* With a shared MLP, one block could not have experts while another keeps the MLP. */
static status check_sharing(const struct mixture *m, const char *weights, struct error *error)
{
    if (m->vit->run == 1)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: runs of %zu blocks share an MLP, but experts belong to one block; convert a model whose "
                     "blocks have their own MLPs",
                     weights, m->vit->run);
}

static status make_experts(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    struct adapter_settings adapter = s->adapter;
    const struct block *blocks[TOWERS] = {m->vit->towers[TOWER_IMAGE].blocks, NULL};
    adapter.activation = m->vit->activation;
    TRY(check_sharing(m, s->weights, error));
    TRY(adapters_create(&m->adapters, m->backend, &m->memory, &m->vit->dimensions, &adapter, PARAMETERS_FROZEN, error));
    TRY(adapters_initialize(m->adapters, blocks, s->seed, error));
    return clip_replace_mlps(m->vit, TOWER_IMAGE, adapters_hooks(m->adapters, TOWER_IMAGE), error);
}

static status open_parts(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    TRY(backend_open(&m->backend, &s->backend, error));
    TRY(m->backend->ops->arena_create(m->backend, &m->memory, 0, "model", error));
    TRY(m->backend->ops->arena_create(m->backend, &m->step, 0, "step", error));
    TRY(load_dense(m, s, error));
    return make_experts(m, s, error);
}

status mixture_open(struct mixture *m, const struct mixture_settings *settings, struct error *error)
{
    *m = (struct mixture){0};
    return open_parts(m, settings, error);
}

void mixture_close(struct mixture *m)
{
    adapters_destroy(m->adapters);
    linear_head_destroy(m->head);
    clip_destroy(m->written);
    clip_destroy(m->vit);
    if (m->backend != NULL) {
        m->backend->ops->arena_destroy(m->backend, &m->step);
        m->backend->ops->arena_destroy(m->backend, &m->memory);
        backend_close(m->backend);
    }
}

static status read_experts(struct mixture *m, const char *path, struct error *error)
{
    struct safetensors *file;
    struct adapters *read = NULL;
    const int router = 0;
    TRY(safetensors_open(&file, path, error));
    status result = adapters_open(&read, m->backend, &m->memory, &m->vit->dimensions, file, &router, 1, error);
    safetensors_close(file);
    TRY(result);
    adapters_destroy(m->adapters);
    m->adapters = read;
    return OK;
}

status mixture_write(struct mixture *m, const char *path, struct error *error)
{
    const struct vit_stated with_experts = {.experts = true};
    TRY(classifier_save(m->vit, m->head, m->adapters, NULL, path, error));
    TRY(vit_load(&m->written, m->backend, &m->memory, path, PARAMETERS_FROZEN, &with_experts, error));
    return read_experts(m, path, error);
}

/* --- Both on the same images --- */

/* features [count, width], on the host */
static status encode(struct mixture *m, const uint8_t *pixels, size_t count, bool experts, float *features,
                     struct error *error)
{
    size_t r = m->vit->dimensions.resolution;
    struct encoding encoding = {.arena = &m->step};
    struct tensor batch = {0};
    struct tower_pass pass;
    struct tensor routers, output;
    arena_reset(&m->step);
    TRY(tensor_take(&routers, &m->step, TENSOR_I32, "routers", 1, &count, error));
    TRY(m->backend->ops->zero(m->backend, routers.data, tensor_bytes(&routers), error));
    if (experts) {
        encoding.hooks = adapters_hooks(m->adapters, TOWER_IMAGE);
        encoding.router = routers.data;
    }
    TRY(tensor_take(&batch, &m->step, TENSOR_U8, "images", 4, (size_t[]){count, r, r, 3}, error));
    TRY(m->backend->ops->upload(m->backend, batch.data, pixels, tensor_bytes(&batch), error));
    TRY(clip_encode_images(experts ? m->written : m->vit, &encoding, &batch, &pass, &output, error));
    TRY(m->backend->ops->download(m->backend, features, output.data, tensor_bytes(&output), error));
    size_t n = tensor_elements(&output);
    return not_finite_at(features, n) == n ? OK
                                           : error_set(error, ERROR_FORMAT,
                                                       "features of the %s are not finite: numbers overflow on their "
                                                       "way through the model",
                                                       experts ? "mixture" : "dense model");
}

status mixture_compare(struct mixture *m, const uint8_t *pixels, size_t count, struct deviation *deviation,
                       struct error *error)
{
    size_t n = count * m->vit->dimensions.image_width;
    float *dense = xmalloc(array_size(n, 2 * sizeof *dense)), *mixture = dense + n;
    status result = encode(m, pixels, count, false, dense, error);
    NEXT(result, encode(m, pixels, count, true, mixture, error));
    for (size_t i = 0; result == OK && i < n; i++) {
        deviation->largest = fmax(deviation->largest, fabs((double)dense[i]));
        deviation->difference = fmax(deviation->difference, fabs((double)dense[i] - (double)mixture[i]));
    }
    free(dense);
    return result;
}

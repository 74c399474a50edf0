#include "harness/evaluate/encoder.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "harness/heads/weights.h"

static status open_adapters(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    encoder->router = settings->router;
    if (settings->adapters == NULL)
        return OK;
    if (settings->adapters->deltas)
        return saved_deltas_load(settings->adapters, encoder->clip, &encoder->model, &encoder->deltas, error);
    return saved_adapters_load(settings->adapters, encoder->clip, &encoder->model, &settings->router, 1,
                               &encoder->adapters, error);
}

/* An image tower alone, with its experts. */
static status open_tower(struct encoder *encoder, const struct encoder_settings *settings, const struct vit_file *file,
                         struct error *error)
{
    struct vit_stated stated = vit_weights_stated(&settings->stated);
    const char *needs = settings->adapters != NULL ? "adapters" : settings->vocabulary != NULL ? "texts" : NULL;
    if (needs != NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: an image tower without a text tower, as of a classifier; %s need a CLIP",
                         settings->weights, needs);
    TRY(vit_weights_load(&encoder->clip, encoder->backend, &encoder->model, settings->weights, PARAMETERS_FROZEN,
                         &stated, NULL, error));
    vit_weights_note(file, settings->weights, settings->log);
    encoder->router = file->experts ? 0 : ROUTER_NONE;
    return file->experts
               ? vit_weights_experts(&encoder->adapters, encoder->clip, &encoder->model, settings->weights, error)
               : OK;
}

static status open_parts(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    TRY(backend_open(&encoder->backend, &settings->backend, error));
    const struct backend_ops *ops = encoder->backend->ops;
    TRY(ops->arena_create(encoder->backend, &encoder->model, 0, "model", error));
    TRY(ops->arena_create(encoder->backend, &encoder->step, 0, "step", error));
    struct vit_stated stated = vit_weights_stated(&settings->stated);
    struct vit_file file;
    bool is_vit;
    TRY(vit_weights_look(&file, &is_vit, settings->weights, &stated, error));
    if (is_vit)
        return open_tower(encoder, settings, &file, error);
    TRY(weights_load(&encoder->clip, encoder->backend, &encoder->model, settings->weights, PARAMETERS_FROZEN,
                     &settings->stated, NULL, error));
    if (settings->vocabulary != NULL)
        TRY(vocabulary_open(&encoder->tokenizer, settings->vocabulary, encoder->clip, settings->weights, NULL, error));
    return open_adapters(encoder, settings, error);
}

status encoder_open(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    *encoder = (struct encoder){0};
    status result = open_parts(encoder, settings, error);
    if (result != OK)
        encoder_close(encoder);
    return result;
}

void encoder_close(struct encoder *encoder)
{
    tokenizer_close(encoder->tokenizer);
    adapters_destroy(encoder->adapters);
    deltas_destroy(encoder->deltas);
    clip_destroy(encoder->clip);
    if (encoder->backend != NULL) {
        encoder->backend->ops->arena_destroy(encoder->backend, &encoder->step);
        encoder->backend->ops->arena_destroy(encoder->backend, &encoder->model);
        backend_close(encoder->backend);
    }
    *encoder = (struct encoder){0};
}

size_t encoder_width(const struct encoder *encoder)
{
    const struct clip_dimensions *n = &encoder->clip->dimensions;
    return n->embed > 0 ? n->embed : n->image_width;
}

/* The router of every sample and the hooks that apply it. */
static status switch_adapters(struct encoder *encoder, enum tower tower, size_t count, struct encoding *encoding,
                              struct error *error)
{
    *encoding = (struct encoding){.arena = &encoder->step};
    if (encoder->adapters == NULL || encoder->router == ROUTER_NONE)
        return OK;
    struct tensor routers;
    TRY(tensor_take(&routers, &encoder->step, TENSOR_I32, "routers", 1, &count, error));
    int32_t *host = xmalloc(array_size(count, sizeof *host));
    for (size_t i = 0; i < count; i++)
        host[i] = encoder->router;
    status result = encoder->backend->ops->upload(encoder->backend, routers.data, host, tensor_bytes(&routers), error);
    free(host);
    encoding->hooks = adapters_hooks(encoder->adapters, tower);
    encoding->router = routers.data;
    return result;
}

static status fetch_normalised(struct encoder *encoder, const struct tensor *output, float *features,
                               struct error *error)
{
    struct tensor normal;
    TRY(tensor_take(&normal, &encoder->step, TENSOR_F32, "normalised features", 2, output->shape, error));
    TRY(encoder->backend->ops->normalize(encoder->backend,
                                         &(struct normalize){.x = matrix_of(output), .y = matrix_of(&normal)}, error));
    TRY(encoder->backend->ops->download(encoder->backend, features, normal.data, tensor_bytes(&normal), error));
    size_t at = not_finite_at(features, tensor_elements(&normal));
    if (at == tensor_elements(&normal))
        return OK;
    encoder->refused = at / normal.shape[1];
    return error_set(
        error, ERROR_FORMAT,
        "its features are not finite: numbers overflow on their way through the model; are these the right "
        "weights?");
}

status encoder_images(struct encoder *encoder, const uint8_t *pixels, size_t count, float *features,
                      struct error *error)
{
    size_t r = encoder->clip->dimensions.resolution;
    struct encoding encoding;
    struct tensor batch = {0};
    struct tower_pass pass;
    struct tensor output;
    arena_reset(&encoder->step);
    TRY(switch_adapters(encoder, TOWER_IMAGE, count, &encoding, error));
    TRY(tensor_take(&batch, &encoder->step, TENSOR_U8, "images", 4, (size_t[]){count, r, r, 3}, error));
    TRY(encoder->backend->ops->upload(encoder->backend, batch.data, pixels, tensor_bytes(&batch), error));
    TRY(clip_encode_images(encoder->clip, &encoding, &batch, &pass, &output, error));
    return fetch_normalised(encoder, &output, features, error);
}

status encoder_tokens(struct encoder *encoder, const int32_t *tokens, size_t count, float *features,
                      struct error *error)
{
    struct encoding encoding;
    struct texts texts;
    struct tower_pass pass;
    struct tensor output;
    arena_reset(&encoder->step);
    TRY(switch_adapters(encoder, TOWER_TEXT, count, &encoding, error));
    TRY(texts_create(&texts, encoder->clip, &encoder->step, tokens, count, error));
    TRY(clip_encode_texts(encoder->clip, &encoding, &texts, &pass, &output, error));
    return fetch_normalised(encoder, &output, features, error);
}

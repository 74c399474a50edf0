#include "harness/evaluate/encoder.h"

#include "harness/heads/heads.h"
#include "harness/heads/image_tower.h"
#include "harness/heads/model.h"

/* An image tower alone, with its experts, is read as a classifier without its head. */
static status choose_head(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    const char *needs = settings->adapters != NULL ? "adapters" : settings->vocabulary != NULL ? "texts" : NULL;
    TRY(image_tower_look(&file, &is_vit, &encoder->model.settings, error));
    if (is_vit && needs != NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: an image tower without a text tower, as of a classifier; %s need a CLIP",
                         settings->weights, needs);
    encoder->model.settings.head = is_vit ? &head_linear : &head_text;
    encoder->router = is_vit && file.experts ? 0 : settings->adapters != NULL ? settings->router : ROUTER_NONE;
    return OK;
}

static status open_parts(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    struct model *model = &encoder->model;
    model->settings = (struct settings){.weights = settings->weights,
                                        .vocabulary = settings->vocabulary,
                                        .stated = settings->stated,
                                        .backend = settings->backend};
    TRY(choose_head(encoder, settings, error));
    TRY(model_open(model, error));
    if (settings->vocabulary != NULL)
        TRY(model_open_tokenizer(model, error));
    return settings->adapters != NULL ? saved_adapters_load(settings->adapters, model, &encoder->router, 1, error) : OK;
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
    tokenizer_close(encoder->model.tokenizer);
    model_close(&encoder->model);
    *encoder = (struct encoder){0};
}

size_t encoder_width(const struct encoder *encoder)
{
    return model_feature_width(&encoder->model);
}

status upload_pixels(struct model *model, const uint8_t *pixels, const uint32_t *items, size_t n, struct tensor *images,
                     struct error *error)
{
    size_t r = model->clip->dimensions.resolution, bytes = r * r * 3;
    TRY(tensor_take(images, &model->step_memory, TENSOR_U8, "images", 4, (size_t[]){n, r, r, 3}, error));
    for (size_t i = 0; i < n; i++)
        TRY(model->backend->ops->upload(model->backend, (uint8_t *)images->data + i * bytes,
                                        pixels + (items != NULL ? items[i] : i) * bytes, bytes, error));
    return OK;
}

status encode_pixels(struct model *model, const uint8_t *pixels, const uint32_t *items, size_t n, int router,
                     const float *weights, struct tensor *output, struct error *error)
{
    struct routing routing;
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor images = {0};
    arena_reset(&model->step_memory);
    TRY(upload_pixels(model, pixels, items, n, &images, error));
    TRY(routing_begin(&routing, model, TOWER_IMAGE, n, router, &encoding, error));
    status result = weights != NULL ? routing_weigh(&routing, weights, error) : OK;
    NEXT(result, clip_encode_images(model->clip, &encoding, &images, &pass, output, error));
    routing_end(&routing);
    return result;
}

static status fetch_normalised(struct encoder *encoder, const struct tensor *output, float *features,
                               struct error *error)
{
    struct model *model = &encoder->model;
    struct tensor normal;
    TRY(tensor_take(&normal, &model->step_memory, TENSOR_F32, "normalised features", 2, output->shape, error));
    TRY(model->backend->ops->normalize(model->backend,
                                       &(struct normalize){.x = matrix_of(output), .y = matrix_of(&normal)}, error));
    TRY(model->backend->ops->download(model->backend, features, normal.data, tensor_bytes(&normal), error));
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
    struct tensor output;
    TRY(encode_pixels(&encoder->model, pixels, NULL, count, encoder->router, NULL, &output, error));
    return fetch_normalised(encoder, &output, features, error);
}

status encoder_tokens(struct encoder *encoder, const int32_t *tokens, size_t count, float *features,
                      struct error *error)
{
    struct model *model = &encoder->model;
    struct routing routing;
    struct encoding encoding;
    struct texts texts;
    struct tower_pass pass;
    struct tensor output;
    arena_reset(&model->step_memory);
    TRY(routing_begin(&routing, model, TOWER_TEXT, count, encoder->router, &encoding, error));
    status result = texts_create(&texts, model->clip, &model->step_memory, tokens, count, error);
    NEXT(result, clip_encode_texts(model->clip, &encoding, &texts, &pass, &output, error));
    routing_end(&routing);
    return result == OK ? fetch_normalised(encoder, &output, features, error) : result;
}

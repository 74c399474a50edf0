/* Computes normalised features of images and texts with a CLIP, its tokenizer and, if given, adapters, or of images
 * with a classifier's image tower and its experts.
 *
 *     struct encoder_settings settings = {.weights = "mini", .vocabulary = "mini", .router = ROUTER_NONE, .backend = {.name = "cpu"}};
 *     struct encoder encoder;
 *     TRY(encoder_open(&encoder, &settings, error));
 *     TRY(encoder_images(&encoder, pixels, count, features, error));      // features [count, encoder_width]
 *     TRY(encoder_tokens(&encoder, tokens, count, features, error));
 *     encoder_close(&encoder);
 */
#pragma once

#include "harness/selectors/saved_adapters.h"

struct encoder_settings {
    const char *weights;                   /* a safetensors file, or "mini" */
    const char *vocabulary;                /* a file, "mini", or NULL: images only */
    const struct saved_adapters *adapters; /* borrowed during the call; NULL: none */
    int router;                            /* a router of the adapters, or ROUTER_NONE: adapters off */
    struct clip_stated stated;             /* heads and activation, as far as given */
    struct backend_settings backend;
};

struct encoder {
    struct model model; /* its tokenizer NULL: images only */
    int router;         /* ROUTER_NONE: adapters off */
    size_t refused;     /* the row that is not finite, after ERROR_FORMAT */
};

/* After a failure there is nothing to close. Strings are borrowed during the call. */
status encoder_open(struct encoder *encoder, const struct encoder_settings *settings, struct error *error);
void encoder_close(struct encoder *encoder);

size_t encoder_width(const struct encoder *encoder); /* of a feature */

/* L2-normalised features [count, width] on the host, of pixels u8 [count, R, R, 3] and of tokens [count, context]. A
 * row depends neither on its neighbours nor on the number of threads. ERROR_FORMAT if a row is not finite; the
 * caller adds which input it belongs to. */
status encoder_images(struct encoder *encoder, const uint8_t *pixels, size_t count, float *features,
                      struct error *error);
status encoder_tokens(struct encoder *encoder, const int32_t *tokens, size_t count, float *features,
                      struct error *error);

/* The listed images (NULL: 0 … n − 1) of pixels, u8 [n, R, R, 3] in the step's arena. */
status upload_pixels(struct model *model, const uint8_t *pixels, const uint32_t *items, size_t n, struct tensor *images,
                     struct error *error);

/* output [n, width], in the step's arena, which is reset: the features of such images through a router of the model
 * (ROUTER_NONE: none), with weights [n] of what prefixes add (NULL: 1). */
status encode_pixels(struct model *model, const uint8_t *pixels, const uint32_t *items, size_t n, int router,
                     const float *weights, struct tensor *output, struct error *error);

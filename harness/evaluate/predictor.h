/* Predictions for images that belong to no suite: router, class, confidence.
 *
 *     struct predictor *predictor;
 *     TRY(predictor_open(&predictor, &(struct predictor_settings){.model = settings, .metadata = &saved.metadata, .adapters = &saved,
 *                                                                 .selects = true, .top = 1}, log, error));
 *     TRY(predictor_answer(predictor, pixels, n, answers, error));     // u8 [n, R, R, 3], R = predictor_resolution
 *     … answers[i].router, answers[i].ranks[0].confidence …
 *     predictor_close(predictor);
 *
 * An image is compared with the classes of its router's task, or with those of all tasks if it has no router (or
 * all_labels is set). Evaluation gives the same answer for the same image, router and classes.
 *
 * struct encoder computes normalised features of images and texts with a CLIP, its tokenizer and, if given, adapters,
 * or of images with a classifier's image tower and its experts.
 *
 *     struct encoder_settings settings = {.weights = "mini", .vocabulary = "mini", .router = ROUTER_NONE, .backend = {.name = "cpu"}};
 *     struct encoder encoder;
 *     TRY(encoder_open(&encoder, &settings, error));
 *     TRY(encoder_images(&encoder, pixels, count, features, error));      // features [count, encoder_width]
 *     TRY(encoder_tokens(&encoder, tokens, count, features, error));
 *     encoder_close(&encoder);
 */
#pragma once

#include "core/scope.h"
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

struct predictor_settings {
    struct settings model; /* weights, vocabulary, activation, threads, backend and evaluation_batch are read */
    const struct adapter_metadata *metadata; /* the tasks with the classes to choose from */
    const struct saved_adapters *adapters;   /* NULL: none */
    bool selects;                            /* the adapters' selector chooses the router */
    int router;                              /* used unless selects; −1: none */
    bool all_labels;
    size_t top;              /* ranks of an answer */
    const struct stop *stop; /* may be NULL */
};

struct answer_rank {
    size_t task, class_index; /* of the metadata's tasks and of its classes */
    double confidence;        /* softmax over the classes to choose from */
};

struct answer {
    int router;                /* −1: zero-shot CLIP */
    float error;               /* smallest of the selector's errors; NAN without a selector */
    size_t count;              /* of ranks: `top`, or the number of classes if that is smaller */
    struct answer_rank *ranks; /* [top], memory of the caller; best first */
};

struct predictor;

/* metadata, adapters and stop are borrowed until predictor_close. */
status predictor_open(struct predictor **predictor, const struct predictor_settings *settings, const struct log *log,
                      struct error *error);
void predictor_close(struct predictor *predictor); /* NULL is allowed */
SCOPED_POINTER(struct predictor, predictor_close)

size_t predictor_resolution(const struct predictor *predictor);
bool predictor_squashes(const struct predictor *predictor); /* how images are resized: struct loader_settings */
size_t predictor_batch(const struct predictor *predictor);  /* images per call of predictor_answer */
const char *predictor_device(const struct predictor *predictor);

/* With prefixes that a selector weighs, class prompts have the mean weight of all images with the same prefixes, as
 * in the evaluation of a test set (methods/prefixes/diki.c). All images must then pass through calls of this function before
 * the first is answered. */
bool predictor_sees_first(const struct predictor *predictor);
status predictor_see(struct predictor *predictor, const uint8_t *pixels, size_t n, struct error *error);

/* n is predictor_batch, or less in the last call, because images that share a decision on the router belong into one
 * call. */
status predictor_answer(struct predictor *predictor, const uint8_t *pixels, size_t n, struct answer *answers,
                        struct error *error);

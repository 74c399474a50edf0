/* The classification head, where the towers meet: cosine logits of images against class texts, their cross-entropy,
 * and back. A contrastive loss is the sum of two: images against texts and texts against images.
 *
 *     struct class_head head;
 *     TRY(class_head_logits(backend, arena, &image_features, &text_features, exp_logit_scale, &head, error));
 *     TRY(class_head_loss(backend, &head, &(struct image_labels){.labels = labels}, 0.2f, 1.0f, loss, error));
 *     TRY(class_head_backward(backend, arena, &head, &dimage, &dtext, error));
 */
#ifndef MTIL_MODELS_CLASS_HEAD_H
#define MTIL_MODELS_CLASS_HEAD_H

#include "models/backend.h"

struct class_head {
    float scale;
    struct tensor image, text;             /* normalised, [B, D] and [C, D] */
    struct tensor image_norms, text_norms; /* [B], [C] */
    struct tensor logits, dlogits;         /* [B, C]; dlogits starts at zero */
};

/* logits = scale · image/‖image‖ · (text/‖text‖)ᵀ; everything is taken from the arena. */
status class_head_logits(struct backend *backend, struct arena *arena, const struct tensor *image_features,
                         const struct tensor *text_features, float scale, struct class_head *head, struct error *error);

/* *loss (device) += weight · cross-entropy of the rows against the labels, with label smoothing; its gradient joins
 * dlogits. */
status class_head_loss(struct backend *backend, struct class_head *head, const struct image_labels *labels,
                       float smoothing, float weight, float *loss, struct error *error);

/* Gradients of the features before normalisation, from dlogits; dtext may be NULL. */
status class_head_backward(struct backend *backend, struct arena *arena, const struct class_head *head,
                           struct tensor *dimage, struct tensor *dtext, struct error *error);

#endif

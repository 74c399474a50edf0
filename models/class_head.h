/* The two classification heads. Where the towers meet: cosine logits of images against class texts, their cross-entropy,
 * and back; or the contrastive loss of a batch.
 *
 *     struct class_head head;
 *     TRY(class_head_logits(backend, arena, &image_features, &text_features, exp_logit_scale, &head, error));
 *     TRY(class_head_loss(backend, &head, &(struct image_labels){.labels = labels}, 0.2f, 1.0f, loss, error));
 *     TRY(class_head_backward(backend, arena, &head, &dimage, &dtext, error));
 */
#pragma once

#include "models/block.h"

struct class_head {
    float scale;
    struct tensor image, text;             /* normalised, [B, D] and [C, D] */
    struct tensor image_norms, text_norms; /* [B], [C] */
    struct tensor logits, dlogits;         /* [B, C]; dlogits starts at zero */
    float *right;                          /* device, as in struct cross_entropy; NULL: not wanted */
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

/* The loss of CLIP (Radford et al. 2021, Figure 3) over B pairs, an image and the text of its label each: half the
 * cross-entropy of every image over the pairs' texts, half that of every text over the images, with label smoothing.
 * Pairs of one label have the same text. Whether the target of an image or of a text is its own pair, as in CLIP, or
 * all pairs of its label in equal parts, the sum and the gradients are the same. */
struct class_contrast {
    const struct tensor *image_features, *text_features; /* not normalised, [B, D], [C, D] */
    const int32_t *labels;                               /* [B] */
    float scale, smoothing, weight;
    float *loss; /* device; += weight · the loss */
};
/* Gradients of the features, from the arena: zero for texts of no image. */
status class_head_contrast(struct backend *backend, struct arena *arena, const struct class_contrast *contrast,
                           struct tensor *dimage, struct tensor *dtext, struct error *error);

/* A trained classification head: logits W f + b of the features of images, their cross-entropy, and back.
 *
 *     struct linear_head *head;
 *     TRY(linear_head_create(&head, backend, &arena, width, classes, PARAMETERS_TRAINED, error));   // zero
 *     struct linear_pass pass;
 *     TRY(linear_head_logits(head, &step_arena, &features, &pass, error));
 *     TRY(linear_head_loss(head, &pass, &(struct image_labels){.labels = labels}, 0.1f, 1.0f, loss, error));
 *     TRY(linear_head_backward(head, &step_arena, &pass, &dfeatures, error));
 *     linear_head_destroy(head);
 */

struct linear_head {
    struct backend *backend;
    struct parameters *parameters; /* "head.weight" [classes, width], "head.bias" [classes]: one flag, 0 */
    struct linear linear;          /* exact: logits are f32 in any precision */
};

/* Takes memory for the weights from the arena; they start at zero, as torchvision's heads and heads on a trained tower do
 * (Dosovitskiy et al. 2021). */
status linear_head_create(struct linear_head **head, struct backend *backend, struct arena *arena, size_t width,
                          size_t classes, enum parameters_mode mode, struct error *error);
void linear_head_destroy(struct linear_head *head); /* NULL is allowed */
SCOPED_POINTER(struct linear_head, linear_head_destroy)

/* The values that a forward pass keeps; logits and dlogits are in its arena, features borrowed until the backward
 * pass. */
struct linear_pass {
    struct tensor features;        /* [B, width] */
    struct tensor logits, dlogits; /* [B, classes]; dlogits starts at zero */
    float *right;                  /* as in struct class_head */
};
status linear_head_logits(const struct linear_head *head, struct arena *arena, const struct tensor *features,
                          struct linear_pass *pass, struct error *error);

/* *loss (device) += weight · cross-entropy with label smoothing, the mean over the images; its gradient joins dlogits. */
status linear_head_loss(const struct linear_head *head, struct linear_pass *pass, const struct image_labels *labels,
                        float smoothing, float weight, float *loss, struct error *error);

/* Adds the gradients of W and b, where they are trained; dfeatures [B, width] is taken from the arena (NULL: not
 * wanted). */
status linear_head_backward(const struct linear_head *head, struct arena *arena, const struct linear_pass *pass,
                            struct tensor *dfeatures, struct error *error);

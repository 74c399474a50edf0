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
#pragma once

#include "models/block.h"

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

/* What a forward pass keeps; logits and dlogits are in its arena, features borrowed until the backward pass. */
struct linear_pass {
    struct tensor features;        /* [B, width] */
    struct tensor logits, dlogits; /* [B, classes]; dlogits starts at zero */
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

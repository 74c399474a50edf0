/* Where the towers meet: normalised features, logits, cross-entropy, and back (spec 1 and 3).
 *
 *     struct contrastive c;
 *     TRY(contrastive_logits(backend, arena, &image_features, &text_features, exp_logit_scale, &c, error));
 *     TRY(contrastive_loss(backend, &c, labels, 0.2f, 1.0f, loss, error));
 *     TRY(contrastive_backward(backend, arena, &c, &dimage, &dtext, error));
 */
#ifndef MTIL_MODELS_CONTRASTIVE_H
#define MTIL_MODELS_CONTRASTIVE_H

#include "models/backend.h"

struct contrastive {
    float scale;
    struct tensor image, text;             /* normalised, [B, D] and [C, D] */
    struct tensor image_norms, text_norms; /* [B], [C] */
    struct tensor logits, dlogits;         /* [B, C]; dlogits starts at zero */
};

/* logits = scale · image/‖image‖ · (text/‖text‖)ᵀ; everything is taken from the arena. */
status contrastive_logits(struct backend *backend, struct arena *arena, const struct tensor *image_features,
                          const struct tensor *text_features, float scale, struct contrastive *result,
                          struct error *error);

/* *loss (device) += weight · cross-entropy of the rows against labels (device [B]), with label smoothing; its gradient
 * joins dlogits. */
status contrastive_loss(struct backend *backend, struct contrastive *c, const int32_t *labels, float smoothing,
                        float weight, float *loss, struct error *error);

/* Gradients of the features before normalisation, from dlogits; dtext may be NULL. */
status contrastive_backward(struct backend *backend, struct arena *arena, const struct contrastive *c,
                            struct tensor *dimage, struct tensor *dtext, struct error *error);

#endif

/* Distillation of a teacher's image-text similarities (Zheng et al. 2023, ZSCL, arXiv 2303.06628, after Hinton et al.
 * 2015, arXiv 1503.02531). With ā and b̄ the teacher's features of reference images and texts, a the student's features
 * of the images, all normalised, and e = exp(logit_scale): t = e · ā · b̄ᵀ, s = e · a · b̄ᵀ, both [B, S];
 *
 *     D(t, s) = T² · mean over rows of −Σ_j softmax(t / T)_j · log softmax(s / T)_j
 *     loss += image_weight · D(t, s) + text_weight · D(tᵀ, sᵀ)
 *
 * A cross-entropy, so it is not 0 for s = t. Its gradient reaches the student's image tower only, because the text
 * features are the teacher's.
 *
 *     struct distillation distillation = {.student = clip, .images = &images, .teacher_images = &features,
 *                                         .teacher_texts = &texts, .scale = scale, .temperature = 2,
 *                                         .image_weight = 1, .text_weight = 1, .loss = loss};
 *     TRY(distillation_add(&distillation, &step_arena, error));       // gradients of the image tower +=
 */
#pragma once

#include "models/clip.h"

struct distillation {
    struct clip *student;
    const struct tensor *images;                         /* as of clip_encode_images */
    const struct tensor *teacher_images, *teacher_texts; /* normalised, [B, embed] and [S, embed] */
    float scale, temperature, image_weight, text_weight;
    float *loss; /* device */
};

/* Releases everything it takes from the arena. */
status distillation_add(const struct distillation *distillation, struct arena *arena, struct error *error);

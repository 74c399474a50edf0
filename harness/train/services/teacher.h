/* A frozen copy of a CLIP, the teacher of knowledge distillation (Hinton et al. 2015, arXiv 1503.02531; for continual
 * learning Li & Hoiem 2016, arXiv 1606.09282).
 *
 *     TRY(teacher_open(&teacher, student, &run_arena, error));        // a copy of the weights: 4 bytes each
 *     TRY(teacher_copy(&teacher, student, error));                    // copies the student's current weights
 *     TRY(teacher_texts(&teacher, &prompts, &step_arena, &texts, error));           // normalised, once per task
 *     TRY(teacher_images(&teacher, &images, &step_arena, &features, error));        // normalised, per step
 *     teacher_close(&teacher);
 */
#pragma once

#include "models/clip.h"

struct teacher {
    struct clip *clip; /* NULL: not open */
};

/* A copy of the student, in memory of the arena. */
status teacher_open(struct teacher *teacher, const struct clip *student, struct arena *arena, struct error *error);
void teacher_close(struct teacher *teacher);

status teacher_copy(struct teacher *teacher, const struct clip *student, struct error *error);

/* Normalised features [count, embed] of tokens [count, context] (host), in chunks; the scratch arena is released. */
status teacher_texts(const struct teacher *teacher, const int32_t *tokens, const struct tensor *features,
                     struct arena *scratch, struct error *error);

/* Normalised features [B, embed] of images as of clip_encode_images; features and activations are taken from the
 * arena. */
status teacher_images(const struct teacher *teacher, const struct tensor *images, struct arena *arena,
                      struct tensor *features, struct error *error);

/* Shared by methods with a teacher: a task is trained on its labels while the similarities of reference images and
 * texts are distilled from the teacher. The state of such a method begins with
 * a struct guided; functions with the arguments of a hook can be used as hooks. lwf.c is an example.
 *
 * struct teacher is a frozen copy of a CLIP, the teacher of knowledge distillation (Hinton et al. 2015, arXiv
 * 1503.02531; for continual learning Li & Hoiem 2016, arXiv 1606.09282).
 *
 *     TRY(teacher_open(&teacher, student, &run_arena, error));        // a copy of the weights: 4 bytes each
 *     TRY(teacher_texts(&teacher, &prompts, &step_arena, &texts, error));           // normalised, once per task
 *     teacher_close(&teacher);
 */
#pragma once

#include "harness/methods/methods.h"
#include "harness/train/services/references.h"
#include "models/clip.h"

struct teacher {
    struct clip *clip; /* NULL: not open */
};

/* Copies the student into memory of the arena. */
status teacher_open(struct teacher *teacher, const struct clip *student, struct arena *arena, struct error *error);
void teacher_close(struct teacher *teacher);

/* Normalised features [count, embed] of tokens [count, context] (host), in chunks; the scratch arena is released. */
status teacher_texts(const struct teacher *teacher, const int32_t *tokens, const struct tensor *features,
                     struct arena *scratch, struct error *error);

struct guided {
    bool follows; /* the teacher is the model at the start of each task; else at the start of the run */
    struct teacher teacher;
    struct reference_images images;
    struct tensor texts; /* the teacher's features of the task's reference texts */
    int32_t done;        /* iterations of the task; 0: it has not begun */
};

/* Keys of these methods, with the values of ZSCL's paper. */
#define GUIDED_OPTIONS                                                                                                 \
    OPTION_NUMBER(REAL, "temperature", 0.01, 100, "2", "temperature of the distillation"),                             \
        OPTION_NUMBER(REAL, "image_weight", 0, 1e6, "1", "weight of the distillation over the texts of each image"),   \
        OPTION_NUMBER(REAL, "text_weight", 0, 1e6, "1", "weight of the distillation over the images of each text"),    \
        OPTION_NUMBER(INTEGER, "reference_batch", 0, 65536, "0",                                                       \
                      "reference images per iteration; 0: as many as training images")

/* folder: the reference images; NULL: the training images of the current task. */
status guided_open(struct method_run *run, const char *folder, struct error *error);

/* The teacher is the model at the start of each task, and the reference images are the task's own. */
status guided_open_following(struct method_run *run, struct error *error);
void guided_close(struct method_run *run);
void guided_cost(const struct method_run *run, struct method_cost *cost);

/* Reference texts of the task: tokens [count, context] on the host. */
status guided_begin_task(struct method_run *run, const struct task *task, bool resumed, const int32_t *tokens,
                         size_t count, struct error *error);
status guided_loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error);
status guided_after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error);
status guided_end_task(struct method_run *run, const struct task *task, struct error *error);
status guided_keep(struct method_run *run, const struct serializer *serializer, struct error *error);

/* The hooks that all of these methods share. */
#define GUIDED_HOOKS .loss_repeats = true, .trains = GROUPS_TOWERS, .cost = guided_cost, .after_step = guided_after_step

/* Images on which a method compares the model with a teacher: any folder, or the training images of the current task,
 * in the evaluation transform. Batch i of a task depends on (seed, task, i) only and is independent of the training
 * batches; all batches have the same size.
 *
 *     TRY(reference_images_open(&images, "/data/imagenet", error));                 // NULL: those of the current task
 *     TRY(reference_images_begin(&images, run, task, batch, first, arena, error));    // batch `first` is in images.batch
 *     TRY(reference_images_next(&images, error));                                   // the next one, at the same place
 *     reference_images_close(&images);
 *
 * Instead of a folder, the caller may set dataset and in_order before reference_images_begin: batch i is then images i · B,
 * i · B + 1, … of the dataset, beginning again after the last one.
 *
 * The device holds one batch of pixels, the host the batches decoded ahead.
 *
 * Texts on which a method compares the model with a teacher: the lines of a file, or random token sequences (LwF-VR,
 * Ding et al. 2022, arXiv 2207.09248).
 *
 *     TRY(reference_texts_read(&texts, run, "captions.txt", NULL, error));        // one sentence per line
 *     TRY(reference_texts_draw(&texts, run, task->index, 1000, 10, error));       // by (seed, task) alone
 *     … texts.tokens, texts.count …
 *     reference_texts_free(&texts);
 */
#pragma once

#include "harness/train/method.h"

struct batches;

struct reference_images {
    struct dataset *dataset; /* NULL: the current task's */
    bool in_order;           /* not shuffled, cycling */
    uint32_t *order;         /* the images of all batches of the task, if in_order */
    struct batches *batches; /* NULL: no task was begun */
    size_t left;             /* remaining batches of the task */
    struct tensor batch;     /* device, as of clip_encode_images; its address is the same throughout a task */
};

/* Lists the folder. */
status reference_images_open(struct reference_images *images, const char *folder, struct error *error);
void reference_images_close(struct reference_images *images);

/* arena: of the task. */
status reference_images_begin(struct reference_images *images, const struct method_run *run, const struct task *task,
                              size_t batch, size_t first, struct arena *arena, struct error *error);

/* Does nothing after the last batch of the task. */
status reference_images_next(struct reference_images *images, struct error *error);

struct reference_texts {
    int32_t *tokens; /* host [count, context] */
    size_t count;
};

/* Sentences longer than the model's context are truncated but keep their end token; a warning counts them. An empty
 * line or file is an error. column: of lines with tabs, the one with the sentence, by its number from 1 or its name in the
 * first line; NULL: a line is a sentence, and one with a tab, a header and an address are errors. */
status reference_texts_read(struct reference_texts *texts, const struct method_run *run, const char *path,
                            const char *column, struct error *error);

/* Start token, `words` tokens drawn from the whole vocabulary (including start and end token; the first end token
 * counts), end token. Frees previous texts. */
status reference_texts_draw(struct reference_texts *texts, const struct method_run *run, size_t task, size_t count,
                            size_t words, struct error *error);
void reference_texts_free(struct reference_texts *texts);

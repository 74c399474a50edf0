/* Texts on which a method compares the model with a teacher: the lines of a file, or random token sequences (LwF-VR,
 * Ding et al. 2022, arXiv 2207.09248).
 *
 *     TRY(reference_texts_read(&texts, run, "captions.txt", error));              // one sentence per line
 *     TRY(reference_texts_draw(&texts, run, task->index, 1000, 10, error));       // by (seed, task) alone
 *     … texts.tokens, texts.count …
 *     reference_texts_free(&texts);
 */
#pragma once

#include "harness/train/method.h"

struct reference_texts {
    int32_t *tokens; /* host [count, context] */
    size_t count;
};

/* Sentences longer than the model's context are truncated but keep their end token; a warning counts them. An empty
 * line or file is an error. */
status reference_texts_read(struct reference_texts *texts, const struct method_run *run, const char *path,
                            struct error *error);

/* Start token, `words` tokens drawn from the whole vocabulary (including start and end token; the first end token
 * counts), end token. Frees previous texts. */
status reference_texts_draw(struct reference_texts *texts, const struct method_run *run, size_t task, size_t count,
                            size_t words, struct error *error);
void reference_texts_free(struct reference_texts *texts);

/* SentencePiece (Kudo & Richardson 2018): the tokenizers of SigLIP and SigLIP 2, read from their .model file.
 *
 *     struct sentencepiece *pieces;
 *     TRY(sentencepiece_open_memory(&pieces, "spiece.model", bytes, size, error));
 *     int32_t row[64];
 *     size_t count = sentencepiece_encode(pieces, "a photo of a cat", 16, row, 64);   // of the whole text
 *     sentencepiece_close(pieces);
 *
 * A model is a protocol buffer (sentencepiece_model.proto): pieces with scores, and how texts are normalised. Two kinds are read:
 * unigram (Kudo 2018; SigLIP's c4_en), where the best path of pieces is found by Viterbi's algorithm, and byte-pair encoding (Gemma's
 * of SigLIP 2), where the neighbours of the highest score are merged first and characters without a piece become bytes. It agrees with
 * the library, also in how floats are added and in which of two equal paths is taken.
 */
#ifndef MTIL_MODELS_TOKENIZER_SENTENCEPIECE_H
#define MTIL_MODELS_TOKENIZER_SENTENCEPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct sentencepiece;

/* name stands for the path in messages; the bytes are copied. */
status sentencepiece_open_memory(struct sentencepiece **pieces, const char *name, const void *bytes, size_t size,
                                 struct error *error);
void sentencepiece_close(struct sentencepiece *pieces); /* NULL is allowed */

size_t sentencepiece_count(const struct sentencepiece *pieces); /* ids are below this */
bool sentencepiece_is_unigram(const struct sentencepiece *pieces);
int32_t sentencepiece_end(const struct sentencepiece *pieces); /* </s> */
int32_t sentencepiece_pad(const struct sentencepiece *pieces); /* <pad> */

/* Writes the first ids [most] of size bytes of UTF-8 to row and returns the number of all. Neither start nor end is added. */
size_t sentencepiece_encode(const struct sentencepiece *pieces, const char *text, size_t size, int32_t *row,
                            size_t most);

#endif

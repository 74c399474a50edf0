/* SentencePiece (Kudo & Richardson 2018): the tokenizers of SigLIP and SigLIP 2, read from their .model file.
 *
 *     struct sentencepiece *pieces;
 *     TRY(sentencepiece_open(&pieces, "spiece.model", error));
 *     int32_t ids[64];
 *     struct token_row row = {.ids = ids, .most = 64};
 *     sentencepiece_encode(pieces, "a photo of a cat", 16, &row);   // row.count: of the whole text
 *     sentencepiece_close(pieces);
 *
 * A model is a protocol buffer (sentencepiece_model.proto): pieces with scores, and how texts are normalised. Two kinds are
 * read: unigram (Kudo 2018; SigLIP's c4_en), where the best path of pieces is found by Viterbi's algorithm, and byte-pair
 * encoding (Gemma's of SigLIP 2), where the neighbours of the highest score are merged first and characters without a piece
 * become bytes. It agrees with the library, also in how floats are added and in which of two equal paths is taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/scope.h"
#include "core/status.h"

struct sentencepiece;

struct sentencepiece_traits {
    size_t count;     /* of pieces */
    bool unigram;     /* or byte pairs */
    int32_t end, pad; /* pad: what stands after the end; of unigrams the end itself */
};

/* A row that is being filled; count goes on when it is full. */
struct token_row {
    int32_t *ids;
    size_t most, count;
};

static inline void token_row_add(struct token_row *row, int32_t id)
{
    if (row->count < row->most)
        row->ids[row->count] = id;
    row->count++;
}

status sentencepiece_open(struct sentencepiece **pieces, const char *path, struct error *error);
void sentencepiece_close(struct sentencepiece *pieces); /* NULL is allowed */
SCOPED_POINTER(struct sentencepiece, sentencepiece_close)

struct sentencepiece_traits sentencepiece_traits(const struct sentencepiece *pieces);

/* Adds the ids of size bytes of UTF-8. Neither start nor end is added. */
void sentencepiece_encode(const struct sentencepiece *pieces, const char *text, size_t size, struct token_row *row);

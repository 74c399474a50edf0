/* The content of a SentencePiece .model file (sentencepiece_model.proto of the library). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* The file's numbers. Unused pieces are treated as absent. */
enum piece_kind { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USER, PIECE_UNUSED, PIECE_BYTE };

struct piece_entry {
    const char *text; /* no C string */
    size_t size;
    float score;
    enum piece_kind kind;
};

struct piece_model {
    uint8_t *bytes; /* a copy of the file, which everything points into */
    struct piece_entry *pieces;
    size_t count;
    bool unigram; /* or byte pairs */
    bool byte_fallback, dummy_prefix, remove_spaces;
    int32_t unknown, end, pad;
    int32_t bytes_of[256]; /* pieces of single bytes, with byte_fallback */
    /* the map by which texts are normalised: a double array, and what it points to; units 0: none */
    const uint8_t *map;
    size_t units;
    const char *replacements; /* C strings, one after the other */
    size_t replacements_size;
};

/* On failure nothing is left to free. */
status piece_model_read(struct piece_model *model, const char *name, const void *bytes, size_t size,
                        struct error *error);
void piece_model_free(struct piece_model *model);

uint32_t piece_model_unit(const struct piece_model *model, size_t at);

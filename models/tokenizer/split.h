/* Cuts a cleaned text into the pieces that are merged one by one: words, single digits, runs of punctuation, contractions.
 *
 *     struct splitter splitter;
 *     TRY(splitter_create(&splitter, error));                            // compiles the expression once; then read-only
 *     struct split split;
 *     split_begin(&split, &splitter, clean.data, clean.size);             // one per text and thread
 *     struct piece piece;
 *     while (split_next(&split, &piece)) ...
 *     split_end(&split);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct splitter {
    void *code; /* PCRE2's */
};

struct split {
    const struct splitter *splitter;
    const char *text;
    size_t size, at;
    void *match; /* PCRE2's */
};

enum split_kind { PIECE_PLAIN, PIECE_START, PIECE_END }; /* the last two: the literal words for the special tokens */

struct piece {
    const char *text; /* borrowed from the text */
    size_t size;      /* at least 1 */
    enum split_kind kind;
};

status splitter_create(struct splitter *splitter, struct error *error);
void splitter_destroy(struct splitter *splitter);

/* text is valid UTF-8 (not checked again) and must live until split_end; it may be NULL when size is 0. */
void split_begin(struct split *split, const struct splitter *splitter, const char *text, size_t size);
bool split_next(struct split *split, struct piece *piece); /* false: no more */
void split_end(struct split *split);

#include "models/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "models/tokenizer/clean.h"
#include "models/tokenizer/split.h"
#include "models/tokenizer/vocabulary.h"

struct tokenizer {
    struct vocabulary vocabulary;
    struct splitter splitter;
};

static const uint64_t no_merge = UINT64_MAX; /* ranks above every other */

/* A piece while it is merged: symbols [count], and the merge of each with its right neighbour (rank << 32 | symbol). */
struct word {
    uint32_t *symbols;
    uint64_t *merges;
    size_t count;
};

/* The row that is being filled; count goes on when the row is full. */
struct output {
    int32_t *row;
    size_t context, count;
};

/* ---- opening ---- */

static status create(struct tokenizer **tokenizer, struct vocabulary vocabulary, struct error *error)
{
    struct tokenizer *made = xcalloc(1, sizeof *made);
    status result = splitter_create(&made->splitter, error);
    if (result != OK) {
        vocabulary_free(&vocabulary);
        free(made);
        return result;
    }
    made->vocabulary = vocabulary;
    *tokenizer = made;
    return OK;
}

status tokenizer_open(struct tokenizer **tokenizer, const char *path, struct error *error)
{
    struct vocabulary vocabulary;
    *tokenizer = NULL;
    TRY(vocabulary_load(&vocabulary, path, error));
    return create(tokenizer, vocabulary, error);
}

status tokenizer_open_memory(struct tokenizer **tokenizer, const char *name, const void *bytes, size_t size,
                             struct error *error)
{
    struct vocabulary vocabulary;
    *tokenizer = NULL;
    TRY(vocabulary_load_memory(&vocabulary, name, bytes, size, error));
    return create(tokenizer, vocabulary, error);
}

void tokenizer_close(struct tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    vocabulary_free(&tokenizer->vocabulary);
    splitter_destroy(&tokenizer->splitter);
    free(tokenizer);
}

size_t tokenizer_vocabulary(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.size;
}

int32_t tokenizer_start(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.start;
}

int32_t tokenizer_end(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.end;
}

/* ---- merging one piece ---- */

static uint64_t merge_of(const struct vocabulary *vocabulary, uint32_t left, uint32_t right)
{
    const uint64_t *merge = pairs_find(&vocabulary->merges, left, right);
    return merge != NULL ? *merge : no_merge;
}

static void start_word(struct word *word, const struct vocabulary *vocabulary, const struct piece *piece)
{
    word->count = piece->size;
    for (size_t i = 0; i < piece->size; i++)
        word->symbols[i] = vocabulary->bytes[(unsigned char)piece->text[i]];
    word->symbols[piece->size - 1] = vocabulary->last_bytes[(unsigned char)piece->text[piece->size - 1]];
    for (size_t i = 0; i + 1 < word->count; i++)
        word->merges[i] = merge_of(vocabulary, word->symbols[i], word->symbols[i + 1]);
}

/* The merge of the lowest rank, no_merge when none is left. */
static uint64_t best_merge(const struct word *word)
{
    uint64_t best = no_merge;
    for (size_t i = 0; i + 1 < word->count; i++)
        if (word->merges[i] < best)
            best = word->merges[i];
    return best;
}

/* Applies one merge at all places, from left to right; "aaa" becomes "aa a". */
static void apply_merge(struct word *word, const struct vocabulary *vocabulary, uint64_t merge)
{
    size_t kept = 0, at = 0;
    while (at < word->count) {
        bool merged = at + 1 < word->count && word->merges[at] == merge;
        word->symbols[kept] = merged ? (uint32_t)merge : word->symbols[at];
        /* Until the neighbours are known, no_merge marks a place to look up again. */
        word->merges[kept] = merged || at + 1 >= word->count ? no_merge : word->merges[at];
        if (merged && kept > 0)
            word->merges[kept - 1] = no_merge;
        kept++;
        at += merged ? 2 : 1;
    }
    word->count = kept;
    for (size_t i = 0; i + 1 < kept; i++)
        if (word->merges[i] == no_merge &&
            (word->symbols[i] == (uint32_t)merge || word->symbols[i + 1] == (uint32_t)merge))
            word->merges[i] = merge_of(vocabulary, word->symbols[i], word->symbols[i + 1]);
}

/* ---- a whole text ---- */

static void put(struct output *output, int32_t id)
{
    if (output->count < output->context)
        output->row[output->count] = id;
    output->count++;
}

static void put_piece(struct output *output, const struct vocabulary *vocabulary, struct word *word,
                      const struct piece *piece)
{
    uint64_t merge;
    if (piece->kind != PIECE_PLAIN) {
        put(output, piece->kind == PIECE_START ? vocabulary->start : vocabulary->end);
        return;
    }
    start_word(word, vocabulary, piece);
    while ((merge = best_merge(word)) != no_merge)
        apply_merge(word, vocabulary, merge);
    for (size_t i = 0; i < word->count; i++)
        put(output, vocabulary->ids[word->symbols[i]]);
}

static status put_text(struct output *output, const struct tokenizer *tokenizer, const struct text *clean,
                       struct error *error)
{
    struct split split;
    struct piece piece;
    struct word word;
    TRY(split_begin(&split, &tokenizer->splitter, clean->data, clean->size, error));
    uint64_t *scratch = xmalloc((clean->size + 1) * (sizeof *word.merges + sizeof *word.symbols));
    word = (struct word){.merges = scratch, .symbols = (uint32_t *)(scratch + clean->size + 1)};
    while (split_next(&split, &piece))
        put_piece(output, &tokenizer->vocabulary, &word, &piece);
    free(scratch);
    split_end(&split);
    return OK;
}

static void finish_row(struct output *output, const struct vocabulary *vocabulary)
{
    put(output, vocabulary->end);
    if (output->count > output->context)
        output->row[output->context - 1] = vocabulary->end;
    for (size_t i = output->count; i < output->context; i++)
        output->row[i] = 0;
}

status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, int32_t *row, size_t context,
                        size_t *tokens, struct error *error)
{
    struct output output = {.row = row, .context = context};
    struct text clean = {0};
    if (context < 2)
        return error_set(error, ERROR_ARGUMENT, "a row of %zu tokens is too short for the start and end tokens",
                         context);
    status result = tokenizer_clean(&clean, text, error);
    put(&output, tokenizer->vocabulary.start);
    NEXT(result, put_text(&output, tokenizer, &clean, error));
    text_free(&clean);
    if (result != OK)
        return result;
    finish_row(&output, &tokenizer->vocabulary);
    *tokens = output.count;
    return OK;
}

#include "models/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/alloc.h"
#include "core/text.h"
#include "models/tokenizer/clean.h"
#include "models/tokenizer/sentencepiece.h"
#include "models/tokenizer/vocabulary.h"

struct tokenizer {
    struct vocabulary vocabulary;
    pcre2_code *expression;       /* by which a text is split */
    struct sentencepiece *pieces; /* SigLIP's, without the others; NULL: CLIP's */
};

/* Cuts a cleaned text into the pieces that are merged one by one: words, single digits, runs of punctuation, contractions, and the
 * words of the special tokens. White space is single spaces after cleaning. Runs are possessive, because backtracking could never
 * help. U+0345 is a mark whose capital is a letter; the reference's engine, ignoring case, matches it nowhere. */
static const char expression[] =
    "<start_of_text>|<end_of_text>|'s|'t|'re|'ve|'m|'ll|'d|\\p{L}++|\\p{N}|[^ \\p{L}\\p{N}\\x{345}]++";

struct piece {
    const char *text; /* borrowed */
    size_t size;      /* at least 1 */
};

/* A piece while it is merged: symbols [count], and the merge of each with its right neighbour (rank << 32 | symbol). */
struct word {
    uint32_t *symbols;
    uint64_t *merges;
    size_t count;
};

/* ---- opening ---- */

static status compile(pcre2_code **code, struct error *error)
{
    int number;
    PCRE2_SIZE offset;
    *code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_CASELESS,
                          &number, &offset, NULL);
    if (*code == NULL)
        return error_set(error, ERROR_MEMORY, "cannot compile the tokenizer's expression (PCRE2 error %d)", number);
    pcre2_jit_compile(*code, PCRE2_JIT_COMPLETE); /* without a JIT compiler the expression is interpreted */
    return OK;
}

status tokenizer_open(struct tokenizer **tokenizer, const char *path, struct error *error)
{
    SCOPED(tokenizer_close_at) struct tokenizer *made = xcalloc(1, sizeof *made);
    *tokenizer = NULL;
    if (text_ends_with(path, ".model")) {
        TRY(sentencepiece_open(&made->pieces, path, error));
    } else {
        TRY(vocabulary_load(&made->vocabulary, path, error));
        TRY(compile(&made->expression, error));
    }
    *tokenizer = TAKE(made);
    return OK;
}

void tokenizer_close(struct tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    sentencepiece_close(tokenizer->pieces);
    vocabulary_free(&tokenizer->vocabulary);
    pcre2_code_free(tokenizer->expression);
    free(tokenizer);
}

size_t tokenizer_vocabulary(const struct tokenizer *tokenizer)
{
    return tokenizer->pieces != NULL ? sentencepiece_traits(tokenizer->pieces).count : tokenizer->vocabulary.size;
}

int32_t tokenizer_start(const struct tokenizer *tokenizer)
{
    return tokenizer->pieces != NULL ? -1 : tokenizer->vocabulary.start;
}

int32_t tokenizer_end(const struct tokenizer *tokenizer)
{
    return tokenizer->pieces != NULL ? sentencepiece_traits(tokenizer->pieces).end : tokenizer->vocabulary.end;
}

int32_t tokenizer_pad(const struct tokenizer *tokenizer)
{
    return tokenizer->pieces != NULL ? sentencepiece_traits(tokenizer->pieces).pad : 0;
}

/* ---- merging one piece ---- */

static void start_word(struct word *word, const struct vocabulary *vocabulary, const struct piece *piece)
{
    word->count = piece->size;
    for (size_t i = 0; i < piece->size; i++)
        word->symbols[i] = vocabulary->bytes[(unsigned char)piece->text[i]];
    word->symbols[piece->size - 1] = vocabulary->last_bytes[(unsigned char)piece->text[piece->size - 1]];
    for (size_t i = 0; i + 1 < word->count; i++)
        word->merges[i] = vocabulary_merge(vocabulary, word->symbols[i], word->symbols[i + 1]);
}

/* The merge of the lowest rank. */
static uint64_t best_merge(const struct word *word)
{
    uint64_t best = VOCABULARY_NO_MERGE;
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
        /* Until the neighbours are known, VOCABULARY_NO_MERGE marks a place to look up again. */
        word->merges[kept] = merged || at + 1 >= word->count ? VOCABULARY_NO_MERGE : word->merges[at];
        if (merged && kept > 0)
            word->merges[kept - 1] = VOCABULARY_NO_MERGE;
        kept++;
        at += merged ? 2 : 1;
    }
    word->count = kept;
    for (size_t i = 0; i + 1 < kept; i++)
        if (word->merges[i] == VOCABULARY_NO_MERGE &&
            (word->symbols[i] == (uint32_t)merge || word->symbols[i + 1] == (uint32_t)merge))
            word->merges[i] = vocabulary_merge(vocabulary, word->symbols[i], word->symbols[i + 1]);
}

/* ---- a whole text ---- */

static bool piece_is(const struct piece *piece, const char *word)
{
    return piece->size == strlen(word) && memcmp(piece->text, word, piece->size) == 0;
}

static void put_piece(struct token_row *row, const struct vocabulary *vocabulary, struct word *word,
                      const struct piece *piece)
{
    uint64_t merge;
    bool start = piece_is(piece, "<start_of_text>");
    if (start || piece_is(piece, "<end_of_text>")) {
        token_row_add(row, start ? vocabulary->start : vocabulary->end);
        return;
    }
    start_word(word, vocabulary, piece);
    while ((merge = best_merge(word)) != VOCABULARY_NO_MERGE)
        apply_merge(word, vocabulary, merge);
    for (size_t i = 0; i < word->count; i++)
        token_row_add(row, vocabulary->ids[word->symbols[i]]);
}

static void put_text(struct token_row *row, const struct tokenizer *tokenizer, const struct text *clean)
{
    const char *text = clean->data != NULL ? clean->data : "";
    struct word word;
    OWNED uint64_t *scratch = xmalloc((clean->size + 1) * (sizeof *word.merges + sizeof *word.symbols));
    word = (struct word){.merges = scratch, .symbols = (uint32_t *)(scratch + clean->size + 1)};
    pcre2_match_data *match = xgiven(pcre2_match_data_create(1, NULL), sizeof(PCRE2_SIZE[2]));
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(match);
    for (size_t at = 0;
         pcre2_match(tokenizer->expression, (PCRE2_SPTR)text, clean->size, at, PCRE2_NO_UTF_CHECK, match, NULL) >= 0;
         at = range[1])
        put_piece(row, &tokenizer->vocabulary, &word, &(struct piece){text + range[0], range[1] - range[0]});
    pcre2_match_data_free(match);
}

/* big_vision's canonicalize_text for SigLIP's unigrams: "_" becomes a space, other ASCII punctuation goes. SigLIP 2, whose tokenizer
 * is Gemma's byte pairs, was trained with texts in lower case alone. */
static void canonicalise(struct text *clean)
{
    size_t kept = 0;
    for (size_t i = 0; i < clean->size; i++) {
        char c = clean->data[i] == '_' ? ' ' : clean->data[i];
        bool punctuation = c != 0 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~", c) != NULL;
        if (!punctuation && (c != ' ' || (kept > 0 && clean->data[kept - 1] != ' ')))
            clean->data[kept++] = c;
    }
    clean->size = kept > 0 && clean->data[kept - 1] == ' ' ? kept - 1 : kept;
}

static void put_clean(struct token_row *row, const struct tokenizer *tokenizer, struct text *clean)
{
    if (tokenizer->pieces == NULL) {
        token_row_add(row, tokenizer->vocabulary.start);
        put_text(row, tokenizer, clean);
        return;
    }
    if (sentencepiece_traits(tokenizer->pieces).unigram)
        canonicalise(clean);
    sentencepiece_encode(tokenizer->pieces, clean->data, clean->size, row);
}

status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, int32_t *row, size_t context,
                        size_t *tokens, struct error *error)
{
    struct token_row output = {.ids = row, .most = context};
    SCOPED(text_free) struct text clean = {0};
    if (context < 2)
        return error_set(error, ERROR_ARGUMENT, "a row of %zu tokens is too short for the start and end tokens",
                         context);
    TRY(tokenizer_clean(&clean, text, error));
    put_clean(&output, tokenizer, &clean);
    token_row_add(&output, tokenizer_end(tokenizer));
    if (output.count > context)
        row[context - 1] = tokenizer_end(tokenizer);
    for (size_t i = output.count; i < context; i++)
        row[i] = tokenizer_pad(tokenizer);
    *tokens = output.count;
    return OK;
}

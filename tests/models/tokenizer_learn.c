/* Learns a vocabulary (Sennrich et al., ACL 2016, Algorithm 1): counts the words, then repeatedly merges the most
 * frequent pair of symbols. Only words that contain the pair are counted again. */
#include "tests/models/tokenizer_learn.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/array.h"
#include "core/file.h"
#include "models/tokenizer/clean.h"
#include "models/tokenizer/pairs.h"
#include "models/tokenizer/split.h"
#include "models/tokenizer/vocabulary.h"

enum { BYTES = 256 };

/* A distinct piece of the texts. */
struct word {
    uint32_t *symbols;
    size_t count;
    uint64_t frequency;
};

/* The position of a piece in the collected text. */
struct span {
    size_t start, size;
};

struct learner {
    struct splitter splitter;
    struct text text; /* all plain pieces, one after another */
    struct span *spans;
    size_t spans_count;
    struct word *words;
    size_t words_count;
    uint32_t *symbols; /* of all words */
    struct pairs counts;
    char **names; /* of symbols: 0–255 the bytes, 256–511 the bytes at a word's end, then one per merge */
    size_t names_count;
    struct text file; /* the output */
};

static status out_of_memory(struct error *error)
{
    return error_set(error, ERROR_MEMORY, "no memory to learn a vocabulary");
}

/* ---- pieces ---- */

static status collect_piece(struct learner *learner, const struct piece *piece, struct error *error)
{
    GROW(learner->spans, learner->spans_count);
    learner->spans[learner->spans_count++] = (struct span){learner->text.size, piece->size};
    text_add_bytes(&learner->text, piece->text, piece->size);
    return learner->text.failed ? out_of_memory(error) : OK;
}

static status collect_text(struct learner *learner, const char *text, struct text *clean, struct error *error)
{
    struct split split;
    struct piece piece;
    TRY(tokenizer_clean(clean, text, error));
    TRY(split_begin(&split, &learner->splitter, clean->data, clean->size, error));
    status result = OK;
    while (result == OK && split_next(&split, &piece))
        if (piece.kind == PIECE_PLAIN)
            result = collect_piece(learner, &piece, error);
    split_end(&split);
    return result;
}

static status collect_texts(struct learner *learner, const char *const *texts, size_t count, struct error *error)
{
    struct text clean = {0};
    status result = OK;
    for (size_t i = 0; result == OK && i < count; i++) {
        result = collect_text(learner, texts[i], &clean, error);
        if (result != OK)
            error_context(error, "text %zu", i + 1);
    }
    text_free(&clean);
    return result;
}

static int compare_spans(const void *a, const void *b, void *text)
{
    const struct span *x = a, *y = b;
    const char *bytes = text;
    int order = memcmp(bytes + x->start, bytes + y->start, x->size < y->size ? x->size : y->size);
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

/* Turns pieces into words: sorted, counted, spelled in byte symbols. */
static status make_words(struct learner *learner, struct error *error)
{
    learner->words = malloc(array_size(learner->spans_count + 1, sizeof *learner->words));
    learner->symbols = malloc(array_size(learner->text.size + 1, sizeof *learner->symbols));
    if (learner->words == NULL || learner->symbols == NULL)
        return out_of_memory(error);
    if (learner->spans_count > 0)
        qsort_r(learner->spans, learner->spans_count, sizeof *learner->spans, compare_spans, learner->text.data);
    uint32_t *symbols = learner->symbols;
    for (size_t i = 0; i < learner->spans_count; i++) {
        const struct span *span = &learner->spans[i];
        if (i > 0 && compare_spans(span, span - 1, learner->text.data) == 0) {
            learner->words[learner->words_count - 1].frequency++;
            continue;
        }
        learner->words[learner->words_count++] = (struct word){symbols, span->size, 1};
        for (size_t j = 0; j < span->size; j++)
            *symbols++ = (unsigned char)learner->text.data[span->start + j] + (j + 1 == span->size ? BYTES : 0);
    }
    return OK;
}

/* ---- merges ---- */

/* Adds the pairs of the word to the counts, or subtracts them. */
static status count_word(struct learner *learner, const struct word *word, bool add, struct error *error)
{
    for (size_t i = 0; i + 1 < word->count; i++) {
        uint64_t *count = pairs_at(&learner->counts, word->symbols[i], word->symbols[i + 1]);
        if (count == NULL)
            return out_of_memory(error);
        *count += add ? word->frequency : 0 - word->frequency;
    }
    return OK;
}

/* By count, then by the bytes of the names, independent of the order of the texts. */
static bool is_better(const struct learner *learner, const struct pair *pair, const struct pair *best)
{
    if (best == NULL || pair->value != best->value)
        return best == NULL || pair->value > best->value;
    int order = strcmp(learner->names[pair->left], learner->names[best->left]);
    if (order == 0)
        order = strcmp(learner->names[pair->right], learner->names[best->right]);
    return order < 0;
}

static const struct pair *best_pair(const struct learner *learner)
{
    const struct pair *best = NULL;
    for (size_t i = 0; i < learner->counts.capacity; i++) {
        const struct pair *pair = &learner->counts.slots[i];
        if (pair->used && pair->value >= 2 && is_better(learner, pair, best))
            best = pair;
    }
    return best;
}

static bool holds_pair(const struct word *word, uint32_t left, uint32_t right)
{
    for (size_t i = 0; i + 1 < word->count; i++)
        if (word->symbols[i] == left && word->symbols[i + 1] == right)
            return true;
    return false;
}

static void merge_word(struct word *word, uint32_t left, uint32_t right, uint32_t merged)
{
    size_t kept = 0;
    for (size_t at = 0; at < word->count; at++) {
        bool pair = at + 1 < word->count && word->symbols[at] == left && word->symbols[at + 1] == right;
        word->symbols[kept++] = pair ? merged : word->symbols[at];
        at += pair;
    }
    word->count = kept;
}

/* pair is passed by value, because counting reallocates its table. */
static status apply_merge(struct learner *learner, struct pair pair, struct error *error)
{
    uint32_t merged = (uint32_t)learner->names_count;
    const char *left = learner->names[pair.left], *right = learner->names[pair.right];
    text_add(&learner->file, "%s %s\n", left, right);
    char *name = path_format("%s%s", left, right);
    if (name == NULL || learner->file.failed) {
        free(name);
        return out_of_memory(error);
    }
    learner->names[learner->names_count++] = name;
    for (size_t i = 0; i < learner->words_count; i++) {
        struct word *word = &learner->words[i];
        if (!holds_pair(word, pair.left, pair.right))
            continue;
        TRY(count_word(learner, word, false, error));
        merge_word(word, pair.left, pair.right, merged);
        TRY(count_word(learner, word, true, error));
    }
    return OK;
}

static status name_bytes(struct learner *learner, size_t merges, struct error *error)
{
    learner->names = malloc(array_size(merges + 2 * BYTES, sizeof *learner->names));
    if (learner->names == NULL)
        return out_of_memory(error);
    for (unsigned i = 0; i < 2 * BYTES; i++) {
        char byte[BYTE_NAME];
        vocabulary_byte_name(i % BYTES, byte);
        char *name = path_format("%s%s", byte, i < BYTES ? "" : "</w>");
        if (name == NULL)
            return out_of_memory(error);
        learner->names[learner->names_count++] = name;
    }
    return OK;
}

static status learn(struct learner *learner, const char *const *texts, size_t count, size_t merges, const char *path,
                    struct error *error)
{
    TRY(splitter_create(&learner->splitter, error));
    TRY(collect_texts(learner, texts, count, error));
    TRY(make_words(learner, error));
    TRY(name_bytes(learner, merges, error));
    for (size_t i = 0; i < learner->words_count; i++)
        TRY(count_word(learner, &learner->words[i], true, error));
    text_add(&learner->file, "#version: 0.2 (%zu texts)\n", count);
    size_t learned = 0;
    for (const struct pair *best; learned < merges && (best = best_pair(learner)) != NULL; learned++)
        TRY(apply_merge(learner, *best, error));
    if (learned == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: expected texts with a pair of letters that occurs twice, found none in %zu texts", path,
                         count);
    return file_write(path, learner->file.data, learner->file.size, error);
}

static void release(struct learner *learner)
{
    splitter_destroy(&learner->splitter);
    text_free(&learner->text);
    text_free(&learner->file);
    pairs_free(&learner->counts);
    for (size_t i = 0; i < learner->names_count; i++)
        free(learner->names[i]);
    free(learner->names);
    free(learner->spans);
    free(learner->words);
    free(learner->symbols);
}

status tokenizer_learn(const char *const *texts, size_t count, size_t merges, const char *path, struct error *error)
{
    struct learner learner = {0};
    if (merges > VOCABULARY_MERGES)
        merges = VOCABULARY_MERGES; /* more would not be read */
    status result = learn(&learner, texts, count, merges, path, error);
    release(&learner);
    return result;
}

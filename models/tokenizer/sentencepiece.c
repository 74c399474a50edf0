#include "models/tokenizer/sentencepiece.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/text.h"

struct sentencepiece {
    struct piece_model model;
    uint32_t *slots; /* open addressing; id + 1 of a piece, 0: free */
    size_t capacity; /* a power of two */
    size_t longest, longest_user;
    float lowest, highest; /* scores of normal pieces; the highest is positive (FLT_MIN at least), as in the library */
};

static const char space[] = "\xe2\x96\x81"; /* U+2581, which stands for a space */
enum { SPACE = sizeof space - 1 };

/* ---- pieces ---- */

static size_t slot_of(const struct sentencepiece *s, const char *text, size_t size)
{
    size_t at = digest_quick(text, size, 0) & (s->capacity - 1);
    for (; s->slots[at] != 0; at = (at + 1) & (s->capacity - 1)) {
        const struct piece_entry *piece = &s->model.pieces[s->slots[at] - 1];
        if (piece->size == size && memcmp(piece->text, text, size) == 0)
            break;
    }
    return at;
}

/* The id of a piece of text that may be used; -1: there is none. */
static int32_t find_piece(const struct sentencepiece *s, const char *text, size_t size)
{
    return size <= s->longest ? (int32_t)s->slots[slot_of(s, text, size)] - 1 : -1;
}

static status index_pieces(struct sentencepiece *s, const char *name, struct error *error)
{
    const struct piece_model *model = &s->model;
    for (s->capacity = 16; s->capacity < 2 * model->count; s->capacity *= 2)
        ;
    s->slots = xcalloc(s->capacity, sizeof *s->slots);
    bool first = true;
    s->highest = FLT_MIN;
    for (size_t i = 0; i < model->count; i++) {
        const struct piece_entry *piece = &model->pieces[i];
        if (piece->kind != PIECE_NORMAL && piece->kind != PIECE_USER) /* no text */
            continue;
        size_t at = slot_of(s, piece->text, piece->size);
        if (piece->size == 0 || s->slots[at] != 0)
            return error_set(error, ERROR_FORMAT, "%s: piece %zu, \"%.*s\", is empty or there twice", name, i,
                             (int)piece->size, piece->text);
        s->slots[at] = (uint32_t)i + 1;
        s->longest = piece->size > s->longest ? piece->size : s->longest;
        if (piece->kind == PIECE_USER) {
            s->longest_user = piece->size > s->longest_user ? piece->size : s->longest_user;
            continue;
        }
        s->lowest = first || piece->score < s->lowest ? piece->score : s->lowest;
        s->highest = piece->score > s->highest ? piece->score : s->highest;
        first = false;
    }
    return OK;
}

status sentencepiece_open_memory(struct sentencepiece **pieces, const char *name, const void *bytes, size_t size,
                                 struct error *error)
{
    struct sentencepiece *made = xcalloc(1, sizeof *made);
    *pieces = NULL;
    status result = piece_model_read(&made->model, name, bytes, size, error);
    NEXT(result, index_pieces(made, name, error));
    if (result != OK) {
        sentencepiece_close(made);
        return result;
    }
    *pieces = made;
    return OK;
}

void sentencepiece_close(struct sentencepiece *pieces)
{
    if (pieces == NULL)
        return;
    piece_model_free(&pieces->model);
    free(pieces->slots);
    free(pieces);
}

const struct piece_model *sentencepiece_model(const struct sentencepiece *pieces)
{
    return &pieces->model;
}

/* ---- normalisation ---- */

static size_t character_size(const char *text, size_t left)
{
    static const uint8_t sizes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    size_t size = sizes[(uint8_t)*text >> 4];
    return size < left ? size : left;
}

/* Bytes of the longest piece that the model's maker defined, at the start of the text; 0: none. */
static size_t user_piece(const struct sentencepiece *s, const char *text, size_t left)
{
    for (size_t size = left < s->longest_user ? left : s->longest_user; size > 0; size--) {
        int32_t id = find_piece(s, text, size);
        if (id >= 0 && s->model.pieces[id].kind == PIECE_USER)
            return size;
    }
    return 0;
}

/* The longest rule of the model's map at the start of the text; returns the bytes that it replaces. The map is a double array
 * (Aoe 1989, as darts-clone stores it) of 32-bit units. */
static size_t replaced(const struct piece_model *m, const char *text, size_t left, const char **by)
{
    size_t longest = 0, node = 0;
    for (size_t i = 0; node < m->units; i++) {
        uint32_t unit = piece_model_unit(m, node);
        if (i > 0 && (unit & 0x800000ff) != (uint8_t)text[i - 1])
            break;
        node ^= (size_t)(unit >> 10) << ((unit & 0x200) >> 6);
        if (i > 0 && unit & 0x100 && node < m->units) {
            uint32_t value = piece_model_unit(m, node) & 0x7fffffff;
            if (value < m->replacements_size) {
                *by = m->replacements + value;
                longest = i;
            }
        }
        if (i == left)
            break;
        node ^= (uint8_t)text[i];
    }
    return longest;
}

/* The next characters of the text as they are normalised, *size bytes at *part; returns the bytes of the text. */
static size_t next_part(const struct sentencepiece *s, const char *text, size_t left, const char **part, size_t *size)
{
    size_t taken = user_piece(s, text, left);
    *part = text;
    if (taken == 0 && s->model.units > 0 && (taken = replaced(&s->model, text, left, part)) > 0) {
        *size = strlen(*part);
        return taken;
    }
    *size = taken > 0 ? taken : character_size(text, left);
    return *size;
}

static bool ends_with_space(const struct text *out)
{
    return out->size >= SPACE && memcmp(out->data + out->size - SPACE, space, SPACE) == 0;
}

static void normalise(const struct sentencepiece *s, const char *text, size_t size, struct text *out)
{
    const struct piece_model *m = &s->model;
    bool after_space = m->remove_spaces;
    const char *part;
    size_t part_size, at = 0;
    while (m->remove_spaces && at < size) {
        size_t taken = next_part(s, text + at, size - at, &part, &part_size);
        if (part_size != 1 || *part != ' ')
            break;
        at += taken;
    }
    if (at == size)
        return;
    if (m->dummy_prefix)
        text_add_bytes(out, space, SPACE);
    while (at < size) {
        at += next_part(s, text + at, size - at, &part, &part_size);
        for (; after_space && part_size > 0 && *part == ' '; part_size--)
            part++;
        for (size_t i = 0; i < part_size; i++)
            if (part[i] == ' ')
                text_add_bytes(out, space, SPACE);
            else
                text_add_bytes(out, part + i, 1);
        if (part_size > 0)
            after_space = part[part_size - 1] == ' ';
        after_space = after_space && m->remove_spaces;
    }
    while (m->remove_spaces && ends_with_space(out))
        out->size -= SPACE;
}

/* ---- unigram ---- */

/* The best path that ends at a place in the text. */
struct path {
    int32_t id;
    size_t start; /* of its last piece; SIZE_MAX: there is no path */
    float score;
};

/* Scores add in float, as in SentencePiece 0.2.3; 0.2.1 added in double, which decides otherwise between some equal paths. */
static void offer(struct path *path, int32_t id, size_t start, float score)
{
    if (path->start == SIZE_MAX || score > path->score)
        *path = (struct path){id, start, score};
}

/* A piece of the maker's is worth more than others: −0.1, as long as no score is positive. */
static float score_of(const struct sentencepiece *s, int32_t id)
{
    const struct piece_entry *piece = &s->model.pieces[id];
    return piece->kind == PIECE_USER ? (float)((double)((float)piece->size * s->highest) - 0.1) : piece->score;
}

static void find_paths(const struct sentencepiece *s, const struct text *text, struct path *paths)
{
    const float unknown = s->lowest - 10.0f;
    for (size_t start = 0; start < text->size;) {
        size_t left = text->size - start, one = character_size(text->data + start, left);
        bool single = false;
        for (size_t size = one; size <= left && size <= s->longest;
             size += size < left ? character_size(text->data + start + size, left - size) : 1) {
            int32_t id = find_piece(s, text->data + start, size);
            if (id < 0)
                continue;
            offer(&paths[start + size], id, start, score_of(s, id) + paths[start].score);
            single = single || size == one;
        }
        if (!single)
            offer(&paths[start + one], s->model.unknown, start, unknown + paths[start].score);
        start += one;
    }
}

/* The pieces of the best path, from the last to the first; neighbours that are unknown become one. */
static void encode_unigram(const struct sentencepiece *s, const struct text *text, struct token_row *row)
{
    struct path *paths = xmalloc(array_size(text->size + 1, sizeof *paths));
    for (size_t i = 0; i <= text->size; i++)
        paths[i] = (struct path){.start = i > 0 ? SIZE_MAX : 0};
    find_paths(s, text, paths);
    size_t count = 0, *ends = xmalloc(array_size(text->size + 1, sizeof *ends));
    for (size_t at = text->size; at > 0; at = paths[at].start)
        ends[count++] = at;
    for (size_t i = count; i-- > 0;)
        if (paths[ends[i]].id != s->model.unknown || i + 1 == count || paths[ends[i + 1]].id != s->model.unknown)
            token_row_add(row, paths[ends[i]].id);
    free(ends);
    free(paths);
}

/* ---- byte-pair encoding ---- */

/* A piece of the text so far. */
struct symbol {
    const char *text;
    size_t size;
    bool fixed;   /* the maker's */
    int32_t with; /* the piece that it and its right neighbour make; −1: none */
};

static void find_merge(const struct sentencepiece *s, struct symbol *symbols, size_t at, size_t count)
{
    bool can = at + 1 < count && !symbols[at].fixed && !symbols[at + 1].fixed;
    symbols[at].with = can ? find_piece(s, symbols[at].text, symbols[at].size + symbols[at + 1].size) : -1;
}

/* The first of the best merges; count: there is none. */
static size_t best_merge(const struct sentencepiece *s, const struct symbol *symbols, size_t count)
{
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (symbols[i].with >= 0 &&
            (best == count || s->model.pieces[symbols[i].with].score > s->model.pieces[symbols[best].with].score))
            best = i;
    return best;
}

static size_t merge_all(const struct sentencepiece *s, struct symbol *symbols, size_t count)
{
    for (size_t at; (at = best_merge(s, symbols, count)) < count;) {
        symbols[at].size += symbols[at + 1].size;
        memmove(&symbols[at + 1], &symbols[at + 2], (--count - at - 1) * sizeof *symbols);
        find_merge(s, symbols, at, count);
        if (at > 0)
            find_merge(s, symbols, at - 1, count);
    }
    return count;
}

static size_t split(const struct sentencepiece *s, const struct text *text, struct symbol *symbols)
{
    size_t count = 0;
    for (size_t at = 0; at < text->size; at += symbols[count++].size) {
        size_t user = user_piece(s, text->data + at, text->size - at);
        symbols[count] = (struct symbol){.text = text->data + at,
                                         .size = user > 0 ? user : character_size(text->data + at, text->size - at),
                                         .fixed = user > 0};
    }
    for (size_t i = 0; i < count; i++)
        find_merge(s, symbols, i, count);
    return count;
}

static void encode_pairs(const struct sentencepiece *s, const struct text *text, struct token_row *row)
{
    struct symbol *symbols = xmalloc(array_size(text->size, sizeof *symbols));
    size_t count = merge_all(s, symbols, split(s, text, symbols));
    bool after_unknown = false;
    for (size_t i = 0; i < count; i++) {
        const struct symbol *symbol = &symbols[i];
        int32_t id = find_piece(s, symbol->text, symbol->size);
        for (size_t k = 0; id < 0 && s->model.byte_fallback && k < symbol->size; k++)
            token_row_add(row, s->model.bytes_of[(uint8_t)symbol->text[k]]);
        if (id >= 0 || (!s->model.byte_fallback && !after_unknown))
            token_row_add(row, id >= 0 ? id : s->model.unknown);
        after_unknown = id < 0;
    }
    free(symbols);
}

void sentencepiece_encode(const struct sentencepiece *s, const char *text, size_t size, struct token_row *row)
{
    struct text normal = {0};
    normalise(s, text, size, &normal);
    if (normal.size > 0)
        (s->model.unigram ? encode_unigram : encode_pairs)(s, &normal, row);
    text_free(&normal);
}

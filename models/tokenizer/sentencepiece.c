#include "models/tokenizer/sentencepiece.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/text.h"

/* The file's numbers. Unused pieces are treated as absent. */
enum piece_kind { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USER, PIECE_UNUSED, PIECE_BYTE };
enum { UNIGRAM = 1, BYTE_PAIRS = 2 };
enum { PIECE = 1, TRAINER, NORMALIZER };
enum { MOST_PIECES = 1 << 20 };

struct piece_entry {
    const char *text; /* no C string */
    size_t size;
    float score;
    enum piece_kind kind;
};

struct sentencepiece {
    struct sentencepiece_traits traits;
    struct bytes bytes;         /* of the file, which everything points into */
    struct piece_entry *pieces; /* [traits.count] */
    bool byte_fallback, dummy_prefix, remove_spaces;
    int32_t unknown;
    int32_t bytes_of[256]; /* pieces of single bytes, with byte_fallback */
    /* the map by which texts are normalised: a double array, and what it points to; units 0: none */
    const uint8_t *map;
    size_t units;
    const char *replacements; /* C strings, one after the other */
    size_t replacements_size;
    uint32_t *slots; /* open addressing; id + 1 of a piece, 0: free */
    size_t capacity; /* a power of two */
    size_t longest, longest_user;
    float lowest, highest; /* scores of normal pieces; the highest is positive (FLT_MIN at least), as in the library */
};

/* ---- the file ---- */

/* A message of a protocol buffer, read field by field. */
struct message {
    const uint8_t *at, *end;
};

struct field {
    uint64_t number, value; /* value: of a number */
    const uint8_t *bytes;   /* of bytes, or of a fixed number */
    size_t size;
};

static bool read_varint(struct message *m, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (m->at == m->end)
            return false;
        *value |= (uint64_t)(*m->at & 0x7f) << shift;
        if ((*m->at++ & 0x80) == 0)
            return true;
    }
    return false;
}

/* false: the end, or with m->at != m->end damage. */
static bool read_field(struct message *m, struct field *field)
{
    enum { VARINT, FIXED_64, BYTES, FIXED_32 = 5 };
    const uint8_t *start = m->at;
    uint64_t tag, size;
    bool good = m->at < m->end && read_varint(m, &tag);
    if (!good)
        return false;
    *field = (struct field){.number = tag >> 3};
    switch (tag & 7) {
    case VARINT:
        good = read_varint(m, &field->value);
        size = 0;
        break;
    case BYTES:
        good = read_varint(m, &size);
        break;
    default:
        size = (tag & 7) == FIXED_64 ? 8 : 4;
        good = (tag & 7) == FIXED_64 || (tag & 7) == FIXED_32;
    }
    good = good && size <= (size_t)(m->end - m->at);
    field->bytes = m->at;
    field->size = good ? (size_t)size : 0;
    m->at = good ? m->at + field->size : start;
    return good;
}

static struct message message_of(const struct field *field)
{
    return (struct message){field->bytes, field->bytes + field->size};
}

static uint32_t number_of(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool read_piece(struct sentencepiece *s, struct message m)
{
    enum { TEXT = 1, SCORE, KIND };
    struct piece_entry *piece = &s->pieces[s->traits.count++];
    struct field field;
    *piece = (struct piece_entry){.text = "", .kind = PIECE_NORMAL};
    while (read_field(&m, &field)) {
        if (field.number == TEXT) {
            piece->text = (const char *)field.bytes;
            piece->size = field.size;
        } else if (field.number == SCORE && field.size == 4) {
            uint32_t bits = number_of(field.bytes);
            memcpy(&piece->score, &bits, sizeof bits);
        } else if (field.number == KIND) {
            piece->kind = field.value >= PIECE_NORMAL && field.value <= PIECE_BYTE ? (enum piece_kind)field.value : 0;
        }
    }
    return m.at == m.end && piece->kind != 0 && isfinite(piece->score);
}

struct trainer {
    uint64_t kind, suffix_spaces;
};

static bool read_trainer(struct sentencepiece *s, struct trainer *trainer, struct message m)
{
    enum { MODEL_KIND = 3, SUFFIX_SPACES = 24, BYTE_FALLBACK = 35, END_ID = 42, PAD_ID = 43 };
    struct field field;
    while (read_field(&m, &field)) {
        if (field.number == MODEL_KIND)
            trainer->kind = field.value;
        else if (field.number == SUFFIX_SPACES)
            trainer->suffix_spaces = field.value;
        else if (field.number == BYTE_FALLBACK)
            s->byte_fallback = field.value != 0;
        else if (field.number == END_ID)
            s->traits.end = (int32_t)(uint32_t)field.value;
        else if (field.number == PAD_ID)
            s->traits.pad = (int32_t)(uint32_t)field.value;
    }
    return m.at == m.end;
}

/* Four bytes of the array's size, the array, and the strings. */
static bool read_map(struct sentencepiece *s, const struct field *field)
{
    if (field->size == 0)
        return true;
    size_t size = field->size >= 4 ? number_of(field->bytes) : 0;
    if (size == 0 || size % 4 != 0 || size >= field->size - 4 || field->bytes[field->size - 1] != 0)
        return false;
    s->map = field->bytes + 4;
    s->units = size / 4;
    s->replacements = (const char *)s->map + size;
    s->replacements_size = field->size - 4 - size;
    return true;
}

static bool read_normalizer(struct sentencepiece *s, struct message m)
{
    enum { MAP = 2, DUMMY_PREFIX, REMOVE_SPACES, ESCAPE_SPACES };
    struct field field;
    bool good = true;
    while (good && read_field(&m, &field)) {
        if (field.number == MAP)
            good = read_map(s, &field);
        else if (field.number == DUMMY_PREFIX)
            s->dummy_prefix = field.value != 0;
        else if (field.number == REMOVE_SPACES)
            s->remove_spaces = field.value != 0;
        else if (field.number == ESCAPE_SPACES)
            good = field.value != 0;
    }
    return good && m.at == m.end;
}

static size_t count_pieces(struct message m)
{
    struct field field;
    size_t count = 0;
    while (read_field(&m, &field))
        count += field.number == PIECE;
    return count;
}

static bool read_all(struct sentencepiece *s, struct trainer *trainer, struct message m)
{
    struct field field;
    bool good = true;
    while (good && read_field(&m, &field)) {
        if (field.number == PIECE)
            good = read_piece(s, message_of(&field));
        else if (field.number == TRAINER)
            good = read_trainer(s, trainer, message_of(&field));
        else if (field.number == NORMALIZER)
            good = read_normalizer(s, message_of(&field));
    }
    return good && m.at == m.end;
}

/* Finds the pieces with a meaning of their own. */
static status find_special(struct sentencepiece *s, const char *name, struct error *error)
{
    size_t unknown = 0, bytes = 0;
    for (size_t i = 0; i < s->traits.count; i++) {
        const struct piece_entry *piece = &s->pieces[i];
        if (piece->kind == PIECE_UNKNOWN) {
            s->unknown = (int32_t)i;
            unknown++;
        } else if (piece->kind == PIECE_BYTE && piece->size == 6 && memcmp(piece->text, "<0x", 3) == 0) {
            const char digits[] = {piece->text[3], piece->text[4], 0}; /* of "<0x41>" */
            s->bytes_of[strtoul(digits, NULL, 16) & 0xff] = (int32_t)i;
            bytes++;
        }
    }
    if (unknown != 1 || s->traits.end < 0 || (size_t)s->traits.end >= s->traits.count ||
        s->traits.pad >= (int32_t)s->traits.count)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected one piece for the unknown and one for the end of a text, found %zu and number %d "
            "of %zu",
            name, unknown, s->traits.end, s->traits.count);
    if (s->byte_fallback && bytes != 256)
        return error_set(error, ERROR_FORMAT, "%s: expected a piece for each of 256 bytes, found %zu", name, bytes);
    if (s->traits.pad < 0 || s->traits.unigram)
        s->traits.pad = s->traits.end;
    return OK;
}

static status read_model(struct sentencepiece *s, const char *name, struct message m, struct error *error)
{
    struct trainer trainer = {.kind = UNIGRAM};
    size_t count = count_pieces(m);
    if (count == 0 || count > MOST_PIECES)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected a SentencePiece model of at most %d pieces, found %zu; is it a .model file?",
                         name, MOST_PIECES, count);
    s->pieces = xcalloc(count, sizeof *s->pieces);
    if (!read_all(s, &trainer, m))
        return error_set(error, ERROR_FORMAT, "%s: the SentencePiece model is damaged; fetch it again", name);
    if ((trainer.kind != UNIGRAM && trainer.kind != BYTE_PAIRS) || trainer.suffix_spaces != 0)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected a unigram or byte-pair model with spaces before words, as SigLIP's and SigLIP 2's", name);
    if (trainer.kind == UNIGRAM && s->byte_fallback)
        return error_set(error, ERROR_FORMAT, "%s: a unigram model with pieces for bytes is not read", name);
    s->traits.unigram = trainer.kind == UNIGRAM;
    return find_special(s, name, error);
}

/* ---- pieces ---- */

static size_t slot_of(const struct sentencepiece *s, const char *text, size_t size)
{
    size_t at = digest_quick(text, size, 0) & (s->capacity - 1);
    for (; s->slots[at] != 0; at = (at + 1) & (s->capacity - 1)) {
        const struct piece_entry *piece = &s->pieces[s->slots[at] - 1];
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
    for (s->capacity = 16; s->capacity < 2 * s->traits.count; s->capacity *= 2)
        ;
    s->slots = xcalloc(s->capacity, sizeof *s->slots);
    bool first = true;
    s->highest = FLT_MIN;
    for (size_t i = 0; i < s->traits.count; i++) {
        const struct piece_entry *piece = &s->pieces[i];
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

status sentencepiece_open(struct sentencepiece **pieces, const char *path, struct error *error)
{
    enum { LIMIT = 1 << 26 }; /* bytes; Gemma's model has 4 MB */
    SCOPED(sentencepiece_close_at) struct sentencepiece *made = xcalloc(1, sizeof *made);
    *pieces = NULL;
    *made = (struct sentencepiece){.dummy_prefix = true, .remove_spaces = true, .traits = {.end = 2, .pad = -1}};
    TRY(file_read(path, LIMIT, &made->bytes, error));
    TRY(read_model(made, path, (struct message){made->bytes.data, made->bytes.data + made->bytes.size}, error));
    TRY(index_pieces(made, path, error));
    *pieces = TAKE(made);
    return OK;
}

void sentencepiece_close(struct sentencepiece *pieces)
{
    if (pieces == NULL)
        return;
    bytes_free(&pieces->bytes);
    free(pieces->pieces);
    free(pieces->slots);
    free(pieces);
}

struct sentencepiece_traits sentencepiece_traits(const struct sentencepiece *pieces)
{
    return pieces->traits;
}

/* ---- normalisation ---- */

static const char space[] = "\xe2\x96\x81"; /* U+2581, which stands for a space */
enum { SPACE = sizeof space - 1 };

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
        if (id >= 0 && s->pieces[id].kind == PIECE_USER)
            return size;
    }
    return 0;
}

/* The longest rule of the model's map at the start of the text; returns the bytes that it replaces. The map is a double array
 * (Aoe 1989, as darts-clone stores it) of 32-bit units. */
static size_t replaced(const struct sentencepiece *s, const char *text, size_t left, const char **by)
{
    size_t longest = 0, node = 0;
    for (size_t i = 0; node < s->units; i++) {
        uint32_t unit = number_of(s->map + 4 * node);
        if (i > 0 && (unit & 0x800000ff) != (uint8_t)text[i - 1])
            break;
        node ^= (size_t)(unit >> 10) << ((unit & 0x200) >> 6);
        if (i > 0 && unit & 0x100 && node < s->units) {
            uint32_t value = number_of(s->map + 4 * node) & 0x7fffffff;
            if (value < s->replacements_size) {
                *by = s->replacements + value;
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
    if (taken == 0 && s->units > 0 && (taken = replaced(s, text, left, part)) > 0) {
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
    bool after_space = s->remove_spaces;
    const char *part;
    size_t part_size, at = 0;
    while (s->remove_spaces && at < size) {
        size_t taken = next_part(s, text + at, size - at, &part, &part_size);
        if (part_size != 1 || *part != ' ')
            break;
        at += taken;
    }
    if (at == size)
        return;
    if (s->dummy_prefix)
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
        after_space = after_space && s->remove_spaces;
    }
    while (s->remove_spaces && ends_with_space(out))
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
    const struct piece_entry *piece = &s->pieces[id];
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
            offer(&paths[start + one], s->unknown, start, unknown + paths[start].score);
        start += one;
    }
}

/* The pieces of the best path, from the last to the first; neighbours that are unknown become one. */
static void encode_unigram(const struct sentencepiece *s, const struct text *text, struct token_row *row)
{
    OWNED struct path *paths = xmalloc(array_size(text->size + 1, sizeof *paths));
    for (size_t i = 0; i <= text->size; i++)
        paths[i] = (struct path){.start = i > 0 ? SIZE_MAX : 0};
    find_paths(s, text, paths);
    OWNED size_t *ends = xmalloc(array_size(text->size + 1, sizeof *ends));
    size_t count = 0;
    for (size_t at = text->size; at > 0; at = paths[at].start)
        ends[count++] = at;
    for (size_t i = count; i-- > 0;)
        if (paths[ends[i]].id != s->unknown || i + 1 == count || paths[ends[i + 1]].id != s->unknown)
            token_row_add(row, paths[ends[i]].id);
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
            (best == count || s->pieces[symbols[i].with].score > s->pieces[symbols[best].with].score))
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
    OWNED struct symbol *symbols = xmalloc(array_size(text->size, sizeof *symbols));
    size_t count = merge_all(s, symbols, split(s, text, symbols));
    bool after_unknown = false;
    for (size_t i = 0; i < count; i++) {
        const struct symbol *symbol = &symbols[i];
        int32_t id = find_piece(s, symbol->text, symbol->size);
        for (size_t k = 0; id < 0 && s->byte_fallback && k < symbol->size; k++)
            token_row_add(row, s->bytes_of[(uint8_t)symbol->text[k]]);
        if (id >= 0 || (!s->byte_fallback && !after_unknown))
            token_row_add(row, id >= 0 ? id : s->unknown);
        after_unknown = id < 0;
    }
}

void sentencepiece_encode(const struct sentencepiece *s, const char *text, size_t size, struct token_row *row)
{
    SCOPED(text_free) struct text normal = {0};
    normalise(s, text, size, &normal);
    if (normal.size > 0)
        (s->traits.unigram ? encode_unigram : encode_pairs)(s, &normal, row);
}

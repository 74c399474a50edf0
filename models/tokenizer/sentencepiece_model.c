#include "models/tokenizer/sentencepiece_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum { MOST_PIECES = 1 << 20, UNIGRAM = 1, BYTE_PAIRS = 2 };

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

uint32_t piece_model_unit(const struct piece_model *model, size_t at)
{
    return number_of(model->map + 4 * at);
}

static bool read_piece(struct piece_model *model, struct message m)
{
    enum { TEXT = 1, SCORE, KIND };
    struct piece_entry *piece = &model->pieces[model->count++];
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

static bool read_trainer(struct piece_model *model, struct trainer *trainer, struct message m)
{
    enum { MODEL_KIND = 3, SUFFIX_SPACES = 24, BYTE_FALLBACK = 35, END_ID = 42, PAD_ID = 43 };
    struct field field;
    while (read_field(&m, &field)) {
        if (field.number == MODEL_KIND)
            trainer->kind = field.value;
        else if (field.number == SUFFIX_SPACES)
            trainer->suffix_spaces = field.value;
        else if (field.number == BYTE_FALLBACK)
            model->byte_fallback = field.value != 0;
        else if (field.number == END_ID)
            model->end = (int32_t)(uint32_t)field.value;
        else if (field.number == PAD_ID)
            model->pad = (int32_t)(uint32_t)field.value;
    }
    return m.at == m.end;
}

/* Four bytes of the array's size, the array, and the strings. */
static bool read_map(struct piece_model *model, const struct field *field)
{
    if (field->size == 0)
        return true;
    size_t size = field->size >= 4 ? number_of(field->bytes) : 0;
    if (size == 0 || size % 4 != 0 || size >= field->size - 4 || field->bytes[field->size - 1] != 0)
        return false;
    model->map = field->bytes + 4;
    model->units = size / 4;
    model->replacements = (const char *)model->map + size;
    model->replacements_size = field->size - 4 - size;
    return true;
}

static bool read_normalizer(struct piece_model *model, struct message m)
{
    enum { MAP = 2, DUMMY_PREFIX, REMOVE_SPACES, ESCAPE_SPACES };
    struct field field;
    bool good = true;
    while (good && read_field(&m, &field)) {
        if (field.number == MAP)
            good = read_map(model, &field);
        else if (field.number == DUMMY_PREFIX)
            model->dummy_prefix = field.value != 0;
        else if (field.number == REMOVE_SPACES)
            model->remove_spaces = field.value != 0;
        else if (field.number == ESCAPE_SPACES)
            good = field.value != 0;
    }
    return good && m.at == m.end;
}

enum { PIECE = 1, TRAINER, NORMALIZER };

static size_t count_pieces(struct message m)
{
    struct field field;
    size_t count = 0;
    while (read_field(&m, &field))
        count += field.number == PIECE;
    return count;
}

static bool read_all(struct piece_model *model, struct trainer *trainer, struct message m)
{
    struct field field;
    bool good = true;
    while (good && read_field(&m, &field)) {
        if (field.number == PIECE)
            good = read_piece(model, message_of(&field));
        else if (field.number == TRAINER)
            good = read_trainer(model, trainer, message_of(&field));
        else if (field.number == NORMALIZER)
            good = read_normalizer(model, message_of(&field));
    }
    return good && m.at == m.end;
}

/* Finds the pieces with a meaning of their own. */
static status find_special(struct piece_model *model, const char *name, struct error *error)
{
    size_t unknown = 0, bytes = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct piece_entry *piece = &model->pieces[i];
        if (piece->kind == PIECE_UNKNOWN) {
            model->unknown = (int32_t)i;
            unknown++;
        } else if (piece->kind == PIECE_BYTE && piece->size == 6 && memcmp(piece->text, "<0x", 3) == 0) {
            const char digits[] = {piece->text[3], piece->text[4], 0}; /* of "<0x41>" */
            model->bytes_of[strtoul(digits, NULL, 16) & 0xff] = (int32_t)i;
            bytes++;
        }
    }
    if (unknown != 1 || model->end < 0 || (size_t)model->end >= model->count || model->pad >= (int32_t)model->count)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected one piece for the unknown and one for the end of a text, found %zu and number %d "
            "of %zu",
            name, unknown, model->end, model->count);
    if (model->byte_fallback && bytes != 256)
        return error_set(error, ERROR_FORMAT, "%s: expected a piece for each of 256 bytes, found %zu", name, bytes);
    if (model->pad < 0)
        model->pad = model->end;
    return OK;
}

static status read_model(struct piece_model *model, const char *name, struct message m, struct error *error)
{
    struct trainer trainer = {.kind = UNIGRAM};
    size_t count = count_pieces(m);
    if (count == 0 || count > MOST_PIECES)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected a SentencePiece model of at most %d pieces, found %zu; is it a .model file?",
                         name, MOST_PIECES, count);
    model->pieces = xcalloc(count, sizeof *model->pieces);
    if (!read_all(model, &trainer, m))
        return error_set(error, ERROR_FORMAT, "%s: the SentencePiece model is damaged; fetch it again", name);
    if ((trainer.kind != UNIGRAM && trainer.kind != BYTE_PAIRS) || trainer.suffix_spaces != 0)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected a unigram or byte-pair model with spaces before words, as SigLIP's and SigLIP 2's", name);
    if (trainer.kind == UNIGRAM && model->byte_fallback)
        return error_set(error, ERROR_FORMAT, "%s: a unigram model with pieces for bytes is not read", name);
    model->unigram = trainer.kind == UNIGRAM;
    return find_special(model, name, error);
}

status piece_model_read(struct piece_model *model, const char *name, const void *bytes, size_t size,
                        struct error *error)
{
    *model = (struct piece_model){
        .dummy_prefix = true, .remove_spaces = true, .end = 2, .pad = -1, .bytes = xmalloc(size + 1)};
    if (size > 0)
        memcpy(model->bytes, bytes, size);
    status result = read_model(model, name, (struct message){model->bytes, model->bytes + size}, error);
    if (result != OK)
        piece_model_free(model);
    return result;
}

void piece_model_free(struct piece_model *model)
{
    free(model->bytes);
    free(model->pieces);
    *model = (struct piece_model){0};
}

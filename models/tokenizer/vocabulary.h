/* A byte-pair vocabulary: symbols, their token ids, and which pairs merge into what.
 *
 *     struct vocabulary vocabulary;
 *     TRY(vocabulary_load(&vocabulary, "bpe_simple_vocab_16e6.txt.gz", error));
 *     uint32_t left = vocabulary.bytes['a'], right = vocabulary.last_bytes['t'];   // "a", "t</w>"
 *     uint64_t merge = vocabulary_merge(&vocabulary, left, right);                 // rank << 32 | symbol of "at</w>"
 *     int32_t id = vocabulary.ids[(uint32_t)merge];
 *     vocabulary_free(&vocabulary);
 *
 * The formats are OpenAI's list of merges, where ids follow from the order, and Hugging Face's vocab.json with merges.txt,
 * or tokenizer.json, where ids are given.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum {
    BYTE_NAME = 8,
    VOCABULARY_MERGES = 48894 /* at most; OpenAI's file goes on after them, unused */
};

struct vocabulary {
    size_t size; /* ids are below this */
    int32_t start, end;
    uint32_t bytes[256], last_bytes[256]; /* symbols of a byte inside and at the end of a word */
    int32_t *ids;                         /* by symbol */
    struct vocabulary_pair *pairs;        /* [capacity]; pair_count are used */
    size_t capacity, pair_count;
};

/* path as in tokenizer_open. Call vocabulary_free after a failure, too. */
status vocabulary_load(struct vocabulary *vocabulary, const char *path, struct error *error);

/* The merge of two symbols: rank << 32 | symbol; VOCABULARY_NO_MERGE: there is none. */
#define VOCABULARY_NO_MERGE UINT64_MAX /* ranks above every other */
uint64_t vocabulary_merge(const struct vocabulary *vocabulary, uint32_t left, uint32_t right);

void vocabulary_free(struct vocabulary *vocabulary);

/* A byte's name in files: printable bytes as themselves, the others as U+0100 and following; and the byte's id. */
void vocabulary_byte_name(unsigned byte, char name[BYTE_NAME]);
int32_t vocabulary_byte_id(unsigned byte);

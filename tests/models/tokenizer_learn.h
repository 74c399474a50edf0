/* Learns a small byte-pair vocabulary for small models of tests.
 *
 *     TRY(tokenizer_learn(texts, count, 400, "mini-vocabulary.txt", error));
 *     TRY(tokenizer_open(&tokenizer, "mini-vocabulary.txt", error));
 */
#pragma once

#include <stddef.h>

#include "core/status.h"

/* Learns at most merges merges from texts (the most frequent pair first, ties by bytes) until no pair occurs twice, and writes
 * them to path in the format that tokenizer_open reads (same cleaning, same splitting). */
status tokenizer_learn(const char *const *texts, size_t count, size_t merges, const char *path, struct error *error);

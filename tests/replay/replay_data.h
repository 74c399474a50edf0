/* The parts of a folder in the format of fixtures/data: each compares one with what the folder records, as decisions of a report
 * under the part's name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/replay/pyjson.h"
#include "tests/replay/report.h"

/* Tells what is left out, and why. */
#define skip_item(part, ...) (printf("  %s: skipped: ", part), printf(__VA_ARGS__), putchar('\n'))

/* folder/name as JSON; NULL, told or reported, when it is absent or cannot be read. The caller drops the reference. */
json_t *part_json(struct report *report, const char *part, const char *folder, const char *name);

void part_roots(struct report *report, const char *folder);
void part_mat_variants(struct report *report, const char *folder);
void part_splits(struct report *report, const char *folder);
void part_decode(struct report *report, const char *folder);
void part_preprocess(struct report *report, const char *folder);
void part_corrupted(struct report *report, const char *folder);
void part_tokenizer(struct report *report, const char *folder);

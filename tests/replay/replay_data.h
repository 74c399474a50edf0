/* The parts of the runner for folders in the format of fixtures/data: each compares one part of a folder with what
 * it records.
 *
 *     struct part part = {.name = "splits"};
 *     part_splits(&part, "shared/fixtures/data");
 *     return part_finish(&part) ? 0 : 1;              // "splits: 5 items, 0 deviations"
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "core/status.h"

struct part {
    const char *name;
    size_t items, deviations, skipped; /* skipped: what there was nothing to compare with, told by part_skip */
    bool absent;                       /* the folder has no such part */
};

/* Counts an item; where it deviates, also that, and prints the first few descriptions. */
void part_check(struct part *part, bool good, const char *description, ...) PRINTF_LIKE(3, 4);

/* Counts and tells what is left out, and why. */
void part_skip(struct part *part, const char *description, ...) PRINTF_LIKE(2, 3);

/* Prints the part's line; true when nothing deviates. A part that is absent or had nothing to compare is skipped. */
bool part_finish(const struct part *part);

/* folder/name as JSON; NULL (and the part is absent or deviates) when it cannot be read. The caller drops the
 * reference. */
json_t *part_json(struct part *part, const char *folder, const char *name);

/* The string of a key, "" when there is none. */
const char *part_text(const json_t *object, const char *key);

void part_roots(struct part *part, const char *folder);
void part_mat_variants(struct part *part, const char *folder);
void part_splits(struct part *part, const char *folder);
void part_decode(struct part *part, const char *folder);
void part_preprocess(struct part *part, const char *folder);
void part_corrupted(struct part *part, const char *folder);

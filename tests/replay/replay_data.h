/* The parts of a folder in the format of fixtures/data: each compares one with what the folder records, as decisions of a report
 * under the part's name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/digest.h"
#include "datasets/image/image.h"
#include "tests/replay/pyjson.h"
#include "tests/replay/report.h"

/* Tells what is left out, and why. */
#define skip_item(part, ...) (printf("  %s: skipped: ", part), printf(__VA_ARGS__), putchar('\n'))

/* Whether the image has the sides "w" and "h" of its entry; hex: the digest of its pixels. */
bool image_fits(const struct image *image, const json_t *entry, char hex[DIGEST_SIZE]);

/* By how much the pixels of libjpeg-turbo's versions differ. */
int recorded_difference(const json_t *file);

bool ends_with(const char *name, const char *end);

/* folder/name as JSON; NULL, told or reported, when it is absent or cannot be read. The caller drops the reference. */
json_t *part_json(struct report *report, const char *part, const char *folder, const char *name);

void part_roots(struct report *report, const char *folder);
void part_splits(struct report *report, const char *folder);
void part_images(struct report *report, const char *folder);
void part_corrupted(struct report *report, const char *folder);
void part_tokenizer(struct report *report, const char *folder);

/* The results per test image of an evaluation, and their form in the database.
 *
 *     struct per_image kept = {.kind = PER_IMAGE_BITS, .images = n, .right = right};
 *     struct bytes packed;
 *     TRY(per_image_pack(&kept, &packed, error));          // the caller frees with bytes_free
 *     TRY(per_image_unpack(&again, PER_IMAGE_BITS, n, packed.data, packed.size, error));
 *     per_image_free(&again);
 *
 * The form, least significant bit and byte first: ⌈images / 8⌉ bytes of "right" bits; for predictions, then a 16-bit
 * class per image, then a signed 16-bit router per image (−1: zero-shot CLIP).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/file.h"
#include "core/status.h"

enum per_image_kind { PER_IMAGE_NONE, PER_IMAGE_BITS, PER_IMAGE_PREDICTIONS };

const char *per_image_name(enum per_image_kind kind); /* "none", "bits", "predictions" */

/* Arrays of `images` elements, in the order of the test set; borrowed when given, owned when unpacked. */
struct per_image {
    enum per_image_kind kind;
    size_t images;
    uint8_t *right;      /* 0 or 1 */
    uint16_t *predicted; /* class of the task, or counted over tasks (a joint label space); predictions only */
    int16_t *router;     /* −1: zero-shot CLIP; predictions only */
};

size_t per_image_correct(const struct per_image *per_image); /* images that are right */

status per_image_pack(const struct per_image *per_image, struct bytes *packed, struct error *error);

/* ERROR_FORMAT when size does not fit kind and images. */
status per_image_unpack(struct per_image *per_image, enum per_image_kind kind, size_t images, const uint8_t *data,
                        size_t size, struct error *error);
void per_image_free(struct per_image *per_image);

/* Adds to a connection the results as a table of SQL, unpacked from `per_image` and `test_labels`,
 *
 *     SELECT truth, count(*), sum("right") FROM images(1, 0, 10) GROUP BY truth;    -- run, task, after_task
 *
 * and the function image_counts, with which `verify` counts what contradicts something else in them.
 *
 * Columns: image (its number in the test set), truth (its class; null: not stored), right (0, 1), predicted and router
 * (null where only bits are kept). A cell that was not kept has no rows; a damaged one is an error.
 * Returns SQLite's code. */
struct sqlite3;
int per_image_register(struct sqlite3 *connection);

#include "results/store/per_image.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "classes, routers and labels are stored as they lie in memory");

static const char *const names[] = {"none", "bits", "predictions"};

const char *per_image_name(enum per_image_kind kind)
{
    return names[kind];
}

size_t per_image_correct(const struct per_image *per_image)
{
    size_t correct = 0;
    for (size_t i = 0; i < per_image->images; i++)
        correct += per_image->right[i] != 0;
    return correct;
}

static size_t bits_size(size_t images)
{
    return images / 8 + (images % 8 != 0);
}

static size_t packed_size(enum per_image_kind kind, size_t images)
{
    if (kind == PER_IMAGE_NONE || images > INT_MAX)
        return 0;
    return bits_size(images) + (kind == PER_IMAGE_PREDICTIONS ? 4 * images : 0);
}

status per_image_pack(const struct per_image *per_image, struct bytes *packed, struct error *error)
{
    size_t images = per_image->images, size = packed_size(per_image->kind, images);
    if (size == 0)
        return error_set(error, ERROR_ARGUMENT, "per-image results of kind %s and %zu images cannot be stored",
                         per_image_name(per_image->kind), images);
    *packed = (struct bytes){.data = xcalloc(size + 1, 1), .size = size};
    for (size_t i = 0; i < images; i++)
        packed->data[i / 8] |= (uint8_t)((per_image->right[i] != 0) << (i % 8));
    if (per_image->kind == PER_IMAGE_PREDICTIONS) {
        uint8_t *predicted = packed->data + bits_size(images);
        memcpy(predicted, per_image->predicted, 2 * images);
        memcpy(predicted + 2 * images, per_image->router, 2 * images);
    }
    return OK;
}

status per_image_unpack(struct per_image *per_image, enum per_image_kind kind, size_t images, const uint8_t *data,
                        size_t size, struct error *error)
{
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
    size_t expected = packed_size(kind, images);
    if (size != expected || size == 0)
        return error_set(error, ERROR_FORMAT, "per-image results (%s) of %zu images: expected %zu bytes, found %zu",
                         per_image_name(kind), images, expected, size);
    *per_image = (struct per_image){.kind = kind, .images = images, .right = xmalloc(images)};
    for (size_t i = 0; i < images; i++)
        per_image->right[i] = data[i / 8] >> (i % 8) & 1;
    if (kind == PER_IMAGE_BITS)
        return OK;
    per_image->predicted = memcpy(xmalloc(2 * images), data + bits_size(images), 2 * images);
    per_image->router = memcpy(xmalloc(2 * images), data + bits_size(images) + 2 * images, 2 * images);
    return OK;
}

void per_image_free(struct per_image *per_image)
{
    free(per_image->right);
    free(per_image->predicted);
    free(per_image->router);
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
}

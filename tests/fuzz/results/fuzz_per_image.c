/* What a database holds of an evaluation's images: 8 bytes of how many, one of what kind, then the blob. What unpacks
 * packs to the same. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "results/store/per_image.h"

/* Bits behind the last image say nothing. */
static int same(const struct bytes *packed, const uint8_t *data, size_t size, size_t images)
{
    size_t last = images / 8;
    if (packed->size != size || memcmp(packed->data, data, last) != 0)
        return 0;
    if (images % 8 != 0 && ((packed->data[last] ^ data[last]) & ((1 << images % 8) - 1)) != 0)
        return 0;
    last += images % 8 != 0;
    return memcmp(packed->data + last, data + last, size - last) == 0;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct per_image kept;
    struct bytes packed;
    struct error error;
    uint64_t images;
    if (size < sizeof images + 1)
        return 0;
    memcpy(&images, data, sizeof images);
    enum per_image_kind kind = (enum per_image_kind)(data[sizeof images] % 3);
    data += sizeof images + 1;
    size -= sizeof images + 1;
    if (per_image_unpack(&kept, kind, images, data, size, &error) != OK)
        return kept.right != NULL;
    int failed = per_image_correct(&kept) > images || per_image_pack(&kept, &packed, &error) != OK;
    if (!failed) {
        failed = !same(&packed, data, size, images);
        bytes_free(&packed);
    }
    per_image_free(&kept);
    return failed;
}

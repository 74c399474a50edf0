/* Files of decoded images. Header and index get right checksums, so that what they claim is looked at: resolution,
 * number of images, and entries, of which the input has `entries`, with the rest of it as pixels. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/cache/cache_file.h"
#include "tests/fuzz/input.h"

struct claims {
    uint32_t resolution, entries;
    uint64_t count;
};

static void find_all(const uint8_t *data, size_t size, const struct cache_label *label)
{
    struct cache_file file;
    if (cache_file_open(&file, input_file(data, size), label, &fuzz_error) == OK) {
        for (size_t i = 0; i < file.count; i++) {
            struct image image;
            if (cache_file_find(&file, i, &image) != CACHE_FOUND)
                continue;
            fuzz_touch(image.pixels, (size_t)image.width * (size_t)image.height * 3);
            image_free(&image);
        }
        cache_file_close(&file);
    }
}

static void set_checksums(uint8_t *file, size_t size, struct cache_header *header)
{
    if (header->count <= (size - CACHE_HEADER) / sizeof(struct cache_entry))
        header->index_checksum =
            cache_checksum(file + CACHE_HEADER, (size_t)header->count * sizeof(struct cache_entry));
    header->checksum = cache_header_checksum(header);
    memcpy(file, header, sizeof *header);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    enum { MOST_ENTRIES = 64 };
    struct claims claims;
    struct cache_header header;
    memset(&header, 0, sizeof header);
    find_all(data, size, &header.label);
    if (size < sizeof claims)
        return 0;
    memcpy(&claims, data, sizeof claims);
    size_t left = size - sizeof claims, index = claims.entries % MOST_ENTRIES * sizeof(struct cache_entry);
    index = index < left ? index : left;
    size_t start = (size_t)cache_pixels_start(claims.entries % MOST_ENTRIES), whole = start + left - index;
    uint8_t *file = calloc(1, whole);
    if (file == NULL)
        return 0;
    memcpy(file + CACHE_HEADER, data + sizeof claims, index);
    memcpy(file + start, data + sizeof claims + index, left - index);
    memcpy(header.magic, CACHE_MAGIC, sizeof header.magic);
    header.byte_order = CACHE_BYTE_ORDER;
    header.size = whole;
    header.count = claims.count;
    header.label.resolution = claims.resolution;
    set_checksums(file, whole, &header);
    find_all(file, whole, &header.label);
    free(file);
    return 0;
}

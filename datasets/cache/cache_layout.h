/* Internal: the layout of a cache file, shared by reader and writer.
 *
 *     0                 struct cache_header, then zeros
 *     CACHE_HEADER      struct cache_entry [count]
 *     pixels_start      [height, width, 3] per image, in any order
 */
#ifndef MTIL_DATASETS_CACHE_CACHE_LAYOUT_H
#define MTIL_DATASETS_CACHE_CACHE_LAYOUT_H

#include "datasets/cache/cache_file.h"

#define CACHE_MAGIC "mtilpix1" /* the last character changes with the layout */

enum { CACHE_HEADER = 8192, CACHE_ALIGNMENT = 4096, CACHE_BYTE_ORDER = 0x01020304 };

struct cache_header {
    char magic[8];
    uint32_t byte_order, checksum; /* checksum: of the header, with 0 in this place */
    uint64_t size, count;          /* bytes of the whole file; number of images */
    uint32_t index_checksum, unused;
    struct cache_label label;
    uint32_t padding; /* up to a multiple of 8 */
};
_Static_assert(sizeof(struct cache_header) <= CACHE_HEADER, "the header has its place");
_Static_assert(sizeof(struct cache_header) == 40 + sizeof(struct cache_label) + sizeof(uint32_t), "without gaps");

uint32_t cache_checksum(const void *data, size_t size);
uint32_t cache_header_checksum(const struct cache_header *header);
uint64_t cache_pixels_start(uint64_t count);

#endif

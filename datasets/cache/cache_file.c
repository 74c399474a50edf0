#include "datasets/cache/cache_file.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "datasets/cache/cache_layout.h"

uint32_t cache_checksum(const void *data, size_t size)
{
    return (uint32_t)crc32_z(0, data, size);
}

uint32_t cache_header_checksum(const struct cache_header *header)
{
    struct cache_header copy = *header;
    copy.checksum = 0;
    return cache_checksum(&copy, sizeof copy);
}

uint64_t cache_pixels_start(uint64_t count)
{
    uint64_t end = CACHE_HEADER + count * sizeof(struct cache_entry);
    return (end + CACHE_ALIGNMENT - 1) / CACHE_ALIGNMENT * CACHE_ALIGNMENT;
}

static status check_header(const struct file_map *map, const char *path, struct cache_header *header,
                           struct error *error)
{
    if (map->size < CACHE_HEADER)
        return error_set(error, ERROR_FORMAT, "%s: expected a cache of images, found a file of %zu bytes", path,
                         map->size);
    memcpy(header, map->data, sizeof *header);
    if (memcmp(header->magic, CACHE_MAGIC, sizeof header->magic) != 0 || header->byte_order != CACHE_BYTE_ORDER)
        return error_set(error, ERROR_FORMAT, "%s: is no cache of images that this program writes here", path);
    if (header->checksum != cache_header_checksum(header))
        return error_set(error, ERROR_FORMAT, "%s: its header is damaged", path);
    if (header->size != map->size || header->count > (map->size - CACHE_HEADER) / sizeof(struct cache_entry))
        return error_set(error, ERROR_FORMAT, "%s: expected %llu bytes, found %zu", path,
                         (unsigned long long)header->size, map->size);
    return OK;
}

static bool entry_fits(const struct cache_entry *entry, uint64_t start, uint64_t size, uint32_t resolution)
{
    if (entry->offset == 0)
        return true;
    if (entry->width == 0 || entry->height == 0 || (uint64_t)entry->width * entry->height > IMAGE_PIXELS_MOST)
        return false;
    if (resolution != 0 && (entry->width != resolution || entry->height != resolution))
        return false;
    return entry->offset >= start && entry->offset <= size &&
           size - entry->offset >= (uint64_t)entry->width * entry->height * 3;
}

static status check_index(const struct cache_file *file, const struct cache_header *header, const char *path,
                          struct error *error)
{
    uint64_t start = cache_pixels_start(header->count);
    if (header->index_checksum != cache_checksum(file->entries, file->count * sizeof *file->entries))
        return error_set(error, ERROR_FORMAT, "%s: its index is damaged", path);
    for (size_t i = 0; i < file->count; i++)
        if (!entry_fits(&file->entries[i], start, header->size, header->label.resolution))
            return error_set(error, ERROR_FORMAT, "%s: image %zu does not lie in the file", path, i);
    return OK;
}

static status check(struct cache_file *file, const char *path, const struct cache_label *label, struct error *error)
{
    struct cache_header header;
    TRY(check_header(&file->map, path, &header, error));
    if (memcmp(&header.label, label, sizeof *label) != 0)
        return error_set(error, ERROR_FORMAT, "%s: was made from other files than there are now", path);
    file->count = (size_t)header.count;
    file->entries = (const struct cache_entry *)(const void *)(file->map.data + CACHE_HEADER);
    TRY(check_index(file, &header, path, error));
    file->seen = calloc(file->count + 1, sizeof *file->seen);
    return file->seen != NULL ? OK : error_set(error, ERROR_MEMORY, "%s: no memory for its index", path);
}

status cache_file_open(struct cache_file *file, const char *path, const struct cache_label *label, struct error *error)
{
    *file = (struct cache_file){0};
    TRY(file_map_open(&file->map, path, error));
    status result = check(file, path, label, error);
    if (result != OK)
        cache_file_close(file);
    return result;
}

status cache_file_describe(const char *path, struct cache_label *label, size_t *count, struct error *error)
{
    struct file_map map;
    struct cache_header header;
    TRY(file_map_open(&map, path, error));
    status result = check_header(&map, path, &header, error);
    file_map_close(&map);
    TRY(result);
    *count = (size_t)header.count;
    *label = header.label;
    label->dataset[sizeof label->dataset - 1] = label->root[sizeof label->root - 1] = 0;
    return OK;
}

/* Two threads may both compare a checksum: they find the same. */
enum cache_found cache_file_find(struct cache_file *file, size_t item, struct image *image)
{
    const struct cache_entry *entry = &file->entries[item];
    if (item >= file->count || entry->offset == 0)
        return CACHE_ABSENT;
    const uint8_t *pixels = file->map.data + entry->offset;
    unsigned char found = atomic_load_explicit(&file->seen[item], memory_order_relaxed);
    if (found == CACHE_ABSENT) {
        bool good = cache_checksum(pixels, (size_t)entry->width * entry->height * 3) == entry->checksum;
        found = good ? CACHE_FOUND : CACHE_DAMAGED;
        atomic_store_explicit(&file->seen[item], found, memory_order_relaxed);
    }
    *image = (struct image){(uint8_t *)pixels, (int)entry->width, (int)entry->height};
    return (enum cache_found)found;
}

void cache_file_close(struct cache_file *file)
{
    file_map_close(&file->map);
    free(file->seen);
    *file = (struct cache_file){0};
}

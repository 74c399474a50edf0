#include "datasets/cache/cache_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

uint32_t cache_checksum(const void *data, size_t size)
{
    return (uint32_t)XXH3_64bits(data, size);
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

static status read_header(int file, uint64_t size, const char *path, struct cache_header *header, struct error *error)
{
    if (size < CACHE_HEADER)
        return error_set(error, ERROR_FORMAT, "%s: expected a cache of images, found a file of %llu bytes", path,
                         (unsigned long long)size);
    TRY(file_read_at(file, path, header, sizeof *header, 0, error));
    if (memcmp(header->magic, CACHE_MAGIC, sizeof header->magic) != 0 || header->byte_order != CACHE_BYTE_ORDER)
        return error_set(error, ERROR_FORMAT, "%s: not an image cache of this version", path);
    if (header->checksum != cache_header_checksum(header))
        return error_set(error, ERROR_FORMAT, "%s: its header is damaged", path);
    if (header->size != size || header->count > (size - CACHE_HEADER) / sizeof(struct cache_entry))
        return error_set(error, ERROR_FORMAT, "%s: expected %llu bytes, found %llu", path,
                         (unsigned long long)header->size, (unsigned long long)size);
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
            return error_set(error, ERROR_FORMAT, "%s: image %zu lies outside the file", path, i);
    return OK;
}

static status read_index(struct cache_file *file, const struct cache_header *header, const char *path,
                         struct error *error)
{
    file->count = (size_t)header->count;
    file->entries = malloc((file->count + 1) * sizeof *file->entries);
    if (file->entries == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for its index", path);
    TRY(file_read_at(file->file, path, file->entries, file->count * sizeof *file->entries, CACHE_HEADER, error));
    return check_index(file, header, path, error);
}

status cache_file_open(struct cache_file *file, const char *path, const struct cache_label *label, struct error *error)
{
    struct cache_header header;
    uint64_t size;
    *file = (struct cache_file){0};
    TRY(file_open(path, &file->file, &size, error));
    status result = read_header(file->file, size, path, &header, error);
    if (result == OK && memcmp(&header.label, label, sizeof *label) != 0)
        result = error_set(error, ERROR_FORMAT, "%s: was made from other files than the current ones", path);
    NEXT(result, read_index(file, &header, path, error));
    if (result != OK) {
        close(file->file);
        free(file->entries);
        *file = (struct cache_file){0};
    }
    return result;
}

status cache_file_describe(const char *path, struct cache_label *label, size_t *count, struct error *error)
{
    struct cache_header header;
    uint64_t size;
    int file;
    TRY(file_open(path, &file, &size, error));
    status result = read_header(file, size, path, &header, error);
    close(file);
    TRY(result);
    *count = (size_t)header.count;
    *label = header.label;
    label->dataset[sizeof label->dataset - 1] = label->root[sizeof label->root - 1] = 0;
    return OK;
}

enum cache_found cache_file_find(const struct cache_file *file, size_t item, struct image *image)
{
    const struct cache_entry *entry = &file->entries[item];
    if (item >= file->count || entry->offset == 0 ||
        image_create(image, (int)entry->width, (int)entry->height, NULL) != OK)
        return CACHE_ABSENT;
    size_t size = (size_t)entry->width * entry->height * 3;
    if (file_read_at(file->file, "", image->pixels, size, entry->offset, NULL) == OK &&
        cache_checksum(image->pixels, size) == entry->checksum)
        return CACHE_FOUND;
    image_free(image);
    return CACHE_DAMAGED;
}

void cache_file_close(struct cache_file *file)
{
    if (file->entries != NULL)
        close(file->file);
    free(file->entries);
    *file = (struct cache_file){0};
}

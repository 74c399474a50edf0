#include "datasets/cache/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <xxhash.h>

#include "core/alloc.h"
#include "core/file_writer.h"
#include "core/text.h"

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

/* Only the label, for lists: checks nothing but header and size. */
static status describe_file(const char *path, struct cache_label *label, size_t *count, struct error *error)
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

/* --- writing, under a temporary name and a lock that ends with the process ---------------------------------------- */

static status write_at(const struct cache_writer *writer, const void *data, size_t size, uint64_t offset,
                       struct error *error)
{
    const uint8_t *bytes = data;
    while (size > 0) {
        ssize_t part = pwrite(writer->file, bytes, size, (off_t)offset);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return error_errno(error, part < 0 ? errno : ENOSPC, "%s: cannot write %zu bytes", writer->temporary, size);
        bytes += part;
        size -= (size_t)part;
        offset += (uint64_t)part;
    }
    return OK;
}

/* A writer that finished in between has renamed the locked file, so it must not be written any more. */
static bool still_has_its_name(const struct cache_writer *writer)
{
    struct stat ours, named;
    return fstat(writer->file, &ours) == 0 && stat(writer->temporary, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

static status lock(struct cache_writer *writer, struct error *error)
{
    TRY(file_open_own(AT_FDCWD, writer->temporary, O_RDWR, &writer->file, error));
    int number = flock(writer->file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (number == EWOULDBLOCK || (number == 0 && !still_has_its_name(writer)))
        return error_set(error, ERROR_BUSY, "%s: another process is writing it", writer->path);
    return number == 0 ? OK : error_errno(error, number, "%s: cannot be locked", writer->temporary);
}

static void release(struct cache_writer *writer)
{
    if (writer->file >= 0)
        close(writer->file);
    free(writer->path);
    free(writer->temporary);
    free(writer->entries);
    *writer = (struct cache_writer){.file = -1};
}

status cache_writer_open(struct cache_writer *writer, const char *path, const struct cache_label *label, size_t count,
                         uint64_t available, struct error *error)
{
    *writer = (struct cache_writer){.file = -1,
                                    .path = xstrdup(path),
                                    .temporary = path_format("%s" CACHE_FILE_UNFINISHED, path),
                                    .label = *label,
                                    .count = count,
                                    .entries = xcalloc(count + 1, sizeof *writer->entries),
                                    .available = available};
    atomic_store(&writer->used, cache_pixels_start(count));
    status result = lock(writer, error);
    if (result != OK) {
        release(writer);
        return result;
    }
    if (ftruncate(writer->file, 0) == 0)
        return OK;
    error_errno(error, errno, "%s: cannot be emptied", writer->temporary);
    cache_writer_abandon(writer);
    return ERROR_IO;
}

status cache_writer_add(struct cache_writer *writer, size_t item, const struct image *image, struct error *error)
{
    size_t size = (size_t)image->width * (size_t)image->height * 3;
    uint64_t offset = atomic_fetch_add(&writer->used, size);
    if (offset + size > writer->available)
        return error_set(error, ERROR_IO, "%s: the images need more than the limit of %llu MB", writer->path,
                         (unsigned long long)(writer->available / 1000000));
    TRY(write_at(writer, image->pixels, size, offset, error));
    writer->entries[item] = (struct cache_entry){.offset = offset,
                                                 .width = (uint32_t)image->width,
                                                 .height = (uint32_t)image->height,
                                                 .checksum = cache_checksum(image->pixels, size)};
    return OK;
}

static status write_head(struct cache_writer *writer, struct error *error)
{
    struct cache_header header;
    size_t index = writer->count * sizeof *writer->entries;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, CACHE_MAGIC, sizeof header.magic);
    header.byte_order = CACHE_BYTE_ORDER;
    header.size = atomic_load(&writer->used);
    header.count = writer->count;
    header.index_checksum = cache_checksum(writer->entries, index);
    header.label = writer->label;
    header.checksum = cache_header_checksum(&header);
    TRY(write_at(writer, writer->entries, index, CACHE_HEADER, error));
    TRY(write_at(writer, &header, sizeof header, 0, error));
    return ftruncate(writer->file, (off_t)header.size) == 0
               ? OK
               : error_errno(error, errno, "%s: cannot get its size", writer->temporary);
}

/* No sync: checksums find what a power cut leaves incomplete. */
status cache_writer_finish(struct cache_writer *writer, struct error *error)
{
    status result = write_head(writer, error);
    if (result == OK && rename(writer->temporary, writer->path) != 0)
        result = error_errno(error, errno, "%s: cannot rename to this", writer->path);
    if (result == OK)
        release(writer);
    else
        cache_writer_abandon(writer);
    return result;
}

void cache_writer_abandon(struct cache_writer *writer)
{
    if (writer->file >= 0)
        unlink(writer->temporary);
    release(writer);
}

/* --- the folder --------------------------------------------------------------------------------------------------- */

char *cache_folder_default(void)
{
    const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given != NULL && given[0] == '/') /* a relative path is to be ignored (XDG specification) */
        return path_format("%s/mtil", given);
    return home != NULL && home[0] != 0 ? path_format("%s/.cache/mtil", home) : NULL;
}

char *cache_folder_file(const char *folder, const struct cache_label *label, const char *list)
{
    enum { DIGITS = 16 };
    const char *split = label->split == SPLIT_TRAIN ? "train" : "test";
    if (label->resolution == 0)
        return path_format("%s/%s-%s-whole-%.*s" CACHE_FILE_ENDING, folder, label->dataset, split, DIGITS, list);
    return path_format("%s/%s-%s-%u-%.*s" CACHE_FILE_ENDING, folder, label->dataset, split, label->resolution, DIGITS,
                       list);
}

/* False: the file is not the cache's, or gone. */
static bool describe(struct cache_item *item)
{
    struct stat information;
    bool unfinished = text_ends_with(item->path, CACHE_FILE_ENDING CACHE_FILE_UNFINISHED);
    if ((!unfinished && !text_ends_with(item->path, CACHE_FILE_ENDING)) || stat(item->path, &information) != 0 ||
        !S_ISREG(information.st_mode))
        return false;
    item->bytes = (uint64_t)information.st_blocks * 512;
    item->used = information.st_mtime;
    item->state = unfinished ? CACHE_UNFINISHED : CACHE_COMPLETE;
    if (!unfinished && describe_file(item->path, &item->label, &item->images, NULL) != OK)
        item->state = CACHE_BROKEN;
    return true;
}

status cache_folder_list(struct cache_listing *listing, const char *folder, struct error *error)
{
    SCOPED(directory_free) struct directory directory = {0};
    *listing = (struct cache_listing){0};
    if (!file_exists(folder))
        return OK;
    TRY(directory_list(&directory, folder, error));
    listing->files = xcalloc(directory.count + 1, sizeof *listing->files);
    for (size_t i = 0; i < directory.count; i++) {
        struct cache_item item = {.path = path_format("%s/%s", folder, directory.names[i])};
        if (describe(&item))
            listing->files[listing->count++] = item;
        else
            free(item.path);
    }
    return OK;
}

void cache_listing_free(struct cache_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->files[i].path);
    free(listing->files);
    *listing = (struct cache_listing){0};
}

/* Unless it is being written. */
static bool remove_left_over(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    bool removed = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 && unlink(path) == 0;
    if (file >= 0)
        close(file);
    return removed;
}

status cache_folder_available(const char *folder, const char *path, uint64_t limit, uint64_t *available,
                              struct error *error)
{
    SCOPED(cache_listing_free) struct cache_listing listing = {0};
    struct statvfs disk;
    uint64_t taken = 0;
    TRY(cache_folder_list(&listing, folder, error));
    temporary_clear(folder);
    for (size_t i = 0; i < listing.count; i++) {
        const struct cache_item *item = &listing.files[i];
        bool gone = item->state == CACHE_UNFINISHED && remove_left_over(item->path);
        if (!gone && strncmp(item->path, path, strlen(path)) !=
                         0) /* both the file and its unfinished version can be made again */
            taken += item->bytes;
    }
    if (statvfs(folder, &disk) != 0)
        return error_errno(error, errno, "%s: cannot ask how much room there is", folder);
    uint64_t spare = (uint64_t)disk.f_bavail * disk.f_frsize / 10 * 9;
    *available = limit > taken ? limit - taken : 0;
    if (*available > spare)
        *available = spare;
    return OK;
}

static bool is_to_go(const struct cache_item *item, const char *root)
{
    if (item->state == CACHE_UNFINISHED)
        return root == NULL && remove_left_over(item->path);
    return root == NULL || strcmp(item->label.root, root) == 0;
}

status cache_folder_clear(struct cache_listing *removed, const char *folder, const char *root, struct error *error)
{
    struct cache_listing all;
    size_t gone = 0;
    TRY(cache_folder_list(&all, folder, error));
    OWNED char *resolved = root != NULL ? realpath(root, NULL) : NULL;
    status result = OK;
    for (size_t i = 0; i < all.count; i++) {
        struct cache_item item = all.files[i];
        if (result == OK && is_to_go(&item, resolved != NULL ? resolved : root)) {
            if (unlink(item.path) != 0 && errno != ENOENT)
                result = error_errno(error, errno, "%s: cannot be removed", item.path);
            else {
                all.files[gone++] = item;
                continue;
            }
        }
        free(item.path);
    }
    if (root == NULL)
        temporary_clear(folder);
    all.count = gone;
    *removed = all;
    if (result != OK)
        cache_listing_free(removed);
    return result;
}

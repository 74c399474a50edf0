/* A file is written under a temporary name and a lock that ends with the process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "datasets/cache/cache_file.h"

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

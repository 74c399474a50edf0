/* Files and folders: whole reads, maps, and writes that are there completely or not at all.
 *
 *     struct bytes bytes;
 *     TRY(file_read("suite.yaml", FILE_LIMIT, &bytes, error));
 *     ...
 *     bytes_free(&bytes);
 *
 *     struct file_writer writer;
 *     TRY(file_writer_open(&writer, "out/weights.safetensors", error));   // writes out/weights.safetensors.tmp-PID
 *     TRY(file_writer_write(&writer, data, size, error));                // on failure the temporary file is gone
 *     TRY(file_writer_close(&writer, error));                            // fsync, then rename over the target
 */
#ifndef MTIL_CORE_FILE_H
#define MTIL_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

struct bytes {
    uint8_t *data; /* one more byte than size is readable and zero, so that text is a C string */
    size_t size;
};

#define FILE_LIMIT ((size_t)1 << 32) /* for readers that hold a file in memory */

/* Reads a whole regular file of at most limit bytes; the caller frees with bytes_free. */
status file_read(const char *path, size_t limit, struct bytes *bytes, struct error *error);
void bytes_free(struct bytes *bytes);

/* A read-only map of a whole file; size may be 0 (data is NULL then). */
struct file_map {
    const uint8_t *data;
    size_t size;
};
status file_map_open(struct file_map *map, const char *path, struct error *error);
void file_map_close(struct file_map *map);

struct file_writer {
    FILE *stream; /* may be written to directly; errors surface in file_writer_close */
    char *path, *temporary;
};
status file_writer_open(struct file_writer *writer, const char *path, struct error *error);
status file_writer_write(struct file_writer *writer, const void *data, size_t size, struct error *error);
status file_writer_close(struct file_writer *writer, struct error *error);
/* The same without waiting for the disk: for many files that file_sync_all makes lasting together. */
status file_writer_close_unsynced(struct file_writer *writer, struct error *error);
void file_writer_abandon(struct file_writer *writer); /* removes the temporary file; harmless after close */

/* Writes data to path in one go, by way of a file_writer. */
status file_write(const char *path, const void *data, size_t size, struct error *error);

/* Waits until everything written to the file system of path is on the disk. */
status file_sync_all(const char *path, struct error *error);

bool file_exists(const char *path);      /* anything at all */
bool file_is_directory(const char *path);
status file_size(const char *path, uint64_t *size, struct error *error);
status directory_create(const char *path, struct error *error); /* and its parents; fine when it exists */

/* The names in a folder, without "." and "..", sorted by bytes. */
struct directory {
    size_t count;
    char **names;
};
status directory_list(struct directory *directory, const char *path, struct error *error);
void directory_free(struct directory *directory);

/* "folder/name" in memory of the caller's to free, NULL when there is none; variadic form of printf's words. */
char *path_format(const char *format, ...) PRINTF_LIKE(1, 2);

#endif

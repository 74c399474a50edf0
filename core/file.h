/* Files and folders: reading whole files, and writes that are complete or absent.
 *
 *     struct bytes bytes;
 *     TRY(file_read("suite.yaml", FILE_LIMIT, &bytes, error));
 *     ...
 *     bytes_free(&bytes);
 *
 *     struct file_writer writer;
 *     TRY(file_writer_open(&writer, "out/weights.safetensors", error));   // under another name: core/temporary.h
 *     TRY(file_writer_write(&writer, data, size, error));                // on failure the temporary file is gone
 *     TRY(file_writer_close(&writer, error));                            // fsync, then rename over the target
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/status.h"
#include "core/temporary.h"

struct bytes {
    uint8_t *data; /* one more byte than size is readable and zero, so that text is a C string */
    size_t size;
};

#define FILE_LIMIT ((size_t)1 << 32) /* for readers that load a file into memory */

/* Reads a whole regular file of at most limit bytes; the caller frees with bytes_free. Files are read, never mapped,
 * so that a file truncated by another program is an error rather than SIGBUS. */
status file_read(const char *path, size_t limit, struct bytes *bytes, struct error *error);
void bytes_free(struct bytes *bytes);

/* The same, piece by piece. Opens a regular file; a folder, a pipe, a socket or a device is refused at once, without
 * waiting for its other end. The caller closes the descriptor. */
status file_open(const char *path, int *descriptor, uint64_t *size, struct error *error);
/* All size bytes from offset on; fewer are ERROR_FORMAT. path is for messages. Safe from several threads. */
status file_read_at(int descriptor, const char *path, void *target, size_t size, uint64_t offset, struct error *error);

/* For other ways of opening: ERROR_IO if path exists but is not a regular file. */
status file_check_kind(const char *path, struct error *error);

/* Whether path still leads to the file that it led to: ERROR_IO, with what happened, when that was deleted, renamed or
 * replaced. *was: what stat said of it, brought up to date; zeros: nothing yet, and no file is no fault. What is written
 * to such a file is lost, and neither the kernel nor SQLite reports it. */
status file_check_same(const char *path, struct stat *was, struct error *error);

/* Opens path with flags, and makes it where it is absent, to write under a name that others can foresee and may have put
 * something under: a link, a second name of a file and what is no regular file are refused and stay as they are. folder:
 * the open one that path lies in; AT_FDCWD: the one that path leads to. *descriptor is -1 after a failure. */
status file_open_own(int folder, const char *path, int flags, int *descriptor, struct error *error);

struct file_writer { /* must not move while open */
    FILE *stream;    /* may be written to directly; errors surface in file_writer_close */
    char *path;
    struct temporary temporary;
    bool lasting;
    int failure; /* errno of the first write that failed */
};
/* Refuses a path that exists but is not a regular file, because the rename would replace a device. Removes leftovers
 * of dead writers in the folder. */
status file_writer_open(struct file_writer *writer, const char *path, struct error *error);
/* For many files: does not look for leftovers, and closing does not sync; file_sync_all does so for all of them. */
status file_writer_open_one_of_many(struct file_writer *writer, const char *path, struct error *error);
status file_writer_write(struct file_writer *writer, const void *data, size_t size, struct error *error);
status file_writer_close(struct file_writer *writer, struct error *error);
void file_writer_abandon(struct file_writer *writer); /* removes the temporary file; harmless after close */

/* Writes data to path in one go, by way of a file_writer. */
status file_write(const char *path, const void *data, size_t size, struct error *error);

/* Waits until everything written to the file system of path is on the disk. */
status file_sync_all(const char *path, struct error *error);

/* Waits until path's name is in its folder on the disk. */
void file_sync_name(const char *path);

/* The folder that contains path; the caller frees. */
char *path_parent(const char *path);
char *path_beside(const char *path, const char *name); /* "a/name" of "a/b.txt" */
char *path_stem(const char *path);                     /* "b" of "a/b.txt" */

bool path_climbs(const char *path); /* whether a component is ".." */

bool file_exists(const char *path); /* of any kind */
bool file_is_directory(const char *path);
status file_size(const char *path, uint64_t *size, struct error *error);
status directory_create(const char *path, struct error *error); /* and its parents, synced; OK if it exists */

/* The names in a folder, without "." and "..", sorted by bytes. */
struct directory {
    size_t count;
    char **names;
};
status directory_list(struct directory *directory, const char *path, struct error *error);
void directory_free(struct directory *directory);

/* "folder/name", which the caller frees. The variadic form takes printf's format. */
char *path_format(const char *format, ...) PRINTF_LIKE(1, 2);

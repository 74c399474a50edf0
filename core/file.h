/* Files and folders: reading whole files, names and folders, metadata that shows that a file changed, files compiled
 * into the program. Writing is in core/file_writer.h.
 *
 *     struct bytes bytes;
 *     TRY(file_read("suite.yaml", FILE_LIMIT, &bytes, error));
 *     ...
 *     bytes_free(&bytes);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/status.h"

struct bytes {
    uint8_t *data; /* one more byte than size is readable and zero, so that text is a C string */
    size_t size;
};

#define FILE_LIMIT ((size_t)1 << 32) /* for readers that load a file into memory */

/* Reads a whole regular file of at most limit bytes; the caller frees with bytes_free. Files are read, never mapped,
 * so that a file truncated by another program is an error rather than SIGBUS. Another file in place of the intended
 * one (file_check_meant) is ERROR_FORMAT, and so is gzip data. */
status file_read(const char *path, size_t limit, struct bytes *bytes, struct error *error);
status file_read_any(const char *path, size_t limit, struct bytes *bytes, struct error *error); /* with any content */
void bytes_free(struct bytes *bytes);

/* The same, piece by piece. Opens a regular file; a folder, a pipe, a socket or a device is refused at once, without
 * waiting for its other end. The caller closes the descriptor. */
status file_open(const char *path, int *descriptor, uint64_t *size, struct error *error);
/* Reads `size` bytes from offset on; fewer are ERROR_FORMAT. path is for messages. Safe from several threads. */
status file_read_at(int descriptor, const char *path, void *target, size_t size, uint64_t offset, struct error *error);

/* For other ways of opening: ERROR_IO if path exists but is not a regular file. */
status file_check_kind(const char *path, struct error *error);

/* For other ways of reading: ERROR_FORMAT if the file begins as a Git LFS pointer, or as a web page or a server's
 * answer, which downloads leave in place of a file. Gzip data is ERROR_FORMAT, too, where the reader does not unpack
 * it. A file that cannot be read is OK here. */
status file_check_meant(const char *path, bool unpacks, struct error *error);

/* Checks that path still leads to the same file. A file that was deleted, renamed or replaced is ERROR_IO, and the
 * message says which. *was is the file's stat from the call before, and is updated; with zeros there was no call yet,
 * and a missing file is no fault. Writes to such a file are lost, and neither the kernel nor SQLite reports it. */
status file_check_same(const char *path, struct stat *was, struct error *error);

/* Opens path with flags, or creates it, to write under a name that others can foresee. They may have put something
 * there: a link, a file with a second name, and anything but a regular file are refused and stay as they are. folder:
 * the open folder of path; AT_FDCWD: the one that path names. *descriptor is -1 after a failure. */
status file_open_own(int folder, const char *path, int flags, int *descriptor, struct error *error);

/* Waits until path's name is in its folder on the disk. */
void file_sync_name(const char *path);

/* The folder that contains path; the caller frees. */
char *path_parent(const char *path);
char *path_beside(const char *path, const char *name); /* "a/name" of "a/b.txt" */
char *path_absolute(const char *path);                 /* seen from the current folder; links are not followed */
char *path_stem(const char *path);                     /* "b" of "a/b.txt" */

bool path_climbs(const char *path); /* whether a component is ".." */

/* Whether a component is one that systems and their tools leave among a user's files: hidden (.DS_Store, ._a.jpg, .ipynb_checkpoints),
 * __MACOSX, Thumbs.db, desktop.ini, @eaDir, System Volume Information and others. */
bool path_is_leftover(const char *path);

/* Whether there is a file of any kind; false only where there certainly is none. Opening it reports other faults,
 * such as a failing disk. */
bool file_exists(const char *path);
bool file_is_directory(const char *path);
/* The same for any path: one that cannot be examined is an error. */
status file_find_directory(bool *directory, const char *path, struct error *error);
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

/* --- Metadata of a file that changes with its contents ---
 *
 *     struct file_stamp before, after;
 *     TRY(file_stamp_read(&before, path, error));
 *     …
 *     if (file_stamp_same(&before, &after) && file_stamp_is_settled(&after, begun)) …        // it was not written meanwhile
 */

/* Times in nanoseconds since 1970. */
struct file_stamp {
    uint64_t size, inode;
    int64_t modified, changed;
};

struct file_stamp file_stamp_of(const struct stat *found);
status file_stamp_read(struct file_stamp *stamp, const char *path, struct error *error);
bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b);

bool file_is_other(const char *path, const char *other); /* false: both lead to one file, which is there */

/* Whether the times are clearly older than now: a write within the same tick of the clock would not change them (git's
 * racy entries). */
bool file_stamp_is_settled(const struct file_stamp *stamp, int64_t now);

/* --- Files compiled into the program by mtil_embed() of cmake/embed.cmake ---
 *
 *     mtil_embed(TARGET mtil_harness NAME embedded_suites FILES suites/mini.yaml)         # in CMakeLists.txt
 *     EMBEDDED_FILES(embedded_suites);                                                    // in C
 *     for (const struct embedded_file *file = embedded_suites; file->name != NULL; file++)
 *         text_add_bytes(&text, (const char *)file->data, file->size);
 */

struct embedded_file {
    const char *name; /* without its folder, or of a part of a file; NULL ends the table */
    const unsigned char
        *data; /* 64-byte aligned; one more byte than size is readable and zero, so that text is a C string */
    size_t size;
};

#define EMBEDDED_FILES(table) extern const struct embedded_file table[]

/* The text of this name, which the table has. */
const char *embedded_text(const struct embedded_file *table, const char *name);

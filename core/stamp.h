/* Metadata of a file that changes with its contents.
 *
 *     struct file_stamp before, after;
 *     TRY(file_stamp_read(&before, path, error));
 *     …
 *     if (file_stamp_same(&before, &after) && file_stamp_is_settled(&after, begun)) …        // it was not written meanwhile
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/status.h"

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

int64_t clock_now(void); /* nanoseconds since 1970 */

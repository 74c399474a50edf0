/* Writes that are complete or absent: what is written has a temporary name beside its target until it is whole.
 *
 *     struct file_writer writer;
 *     TRY(file_writer_open(&writer, "out/weights.safetensors", error));
 *     TRY(file_writer_write(&writer, data, size, error));                // on failure the temporary file is gone
 *     TRY(file_writer_close(&writer, error));                            // fsync, then rename over the target
 *
 *     struct file_group group;                                           // files that get their names together
 *     status result = file_group_begin(&group, "csv", error);
 *     NEXT(result, file_group_add(&group, "runs.csv", data, size, error));        // or "mini/seed1/runs.csv"
 *     NEXT(result, file_group_commit(&group, error));                             // csv/runs.csv
 *     file_group_abandon(&group);                                                 // removes what has no name yet
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* A temporary name: "TARGET.tmp-mtil-" and eight hexadecimal digits. The writer holds a lock, which the kernel releases when
 * the process ends. So a file with such a name that can be locked is a leftover, even from another machine that shares the
 * folder or from a container with its own process ids. On a file system without locks nothing is removed. */
struct temporary {
    char *path; /* NULL: none */
    int lock;   /* descriptor: of the file, or of the one that locks a folder */
};

/* A folder that is empty except for the lock, TEMPORARY_LOCK; the target is made inside and moved out. Removes leftovers of dead
 * writers beside it. */
status temporary_create_folder(struct temporary *temporary, const char *target, struct error *error);

#define TEMPORARY_LOCK "mtil.lock"

void temporary_remove(struct temporary *temporary); /* with its contents; may be called twice */

void directory_remove(const char *path); /* with its contents, as far as possible; no link is followed */

/* Removes the leftovers in a folder that belong to this user, as far as possible. */
void temporary_clear(const char *folder);
/* Removes them in all folders below as well. */
void temporary_clear_below(const char *folder);

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

/* Files in a temporary folder inside the one that they are meant for. */
struct file_group {
    char *folder;
    struct temporary temporary;
    char **paths; /* [count] the final ones; that of the n-th lies in the temporary folder as n */
    size_t count;
};

/* Creates the folder where it is missing. After a failure of this function or of the next two, call
 * file_group_abandon. */
status file_group_begin(struct file_group *group, const char *folder, struct error *error);

/* name: below the folder, in folders that commit makes. Two of one name are the caller's fault. */
status file_group_add(struct file_group *group, const char *name, const void *data, size_t size, struct error *error);

/* Waits until all files are on the disk, then renames one after the other over files of the same names, the last
 * added one first. After a failure, files that were renamed before stay in place; repeat the whole to go on. */
status file_group_commit(struct file_group *group, struct error *error);
void file_group_abandon(struct file_group *group); /* harmless after commit */

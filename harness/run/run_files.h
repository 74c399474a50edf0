/* The files of a run: its adapters or weights, its resume file, and what a kill left of them, all in a folder of its own.
 *
 *     struct run_files files;
 *     TRY(run_files_find(&files, folder, seed, error));       // and locks the folder
 *     … files.count, files.bytes …
 *     TRY(run_files_remove(&files, error));                  // and the folders, where nothing else is in them
 *     run_files_close(&files);
 *
 * A database may come from elsewhere and name any folder: only one that looks like a run's (SUITE-HASH/seedN) is taken for
 * one, only regular files with the names of a run's are removed, and no link is followed.
 */
#ifndef MTIL_HARNESS_RUN_RUN_FILES_H
#define MTIL_HARNESS_RUN_RUN_FILES_H

#include <stdint.h>

#include "core/file.h"
#include "core/status.h"

struct run_files {
    char *folder;   /* NULL: there is none */
    int descriptor; /* of the folder, locked; −1: not open */
    struct directory entries;
    char **name; /* of the files, borrowed from entries */
    size_t count;
    size_t others; /* entries that are not the run's, and stay */
    uint64_t bytes;
};

/* folder may be NULL, or a folder that is not there: nothing is found then. ERROR_BUSY when a run uses it, ERROR_ARGUMENT when
 * it is not one of a run with this seed. The caller closes, after a failure too. */
status run_files_find(struct run_files *files, const char *folder, int64_t seed, struct error *error);
status run_files_remove(struct run_files *files, struct error *error);
void run_files_close(struct run_files *files);

#endif

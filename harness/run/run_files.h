/* The files of a run, all in one folder: adapters or weights, resume file, and temporary files left by a killed
 * process.
 *
 *     struct run_files files;
 *     TRY(run_files_find(&files, folder, seed, error));       // also locks the folder
 *     … files.count, files.bytes …
 *     TRY(run_files_remove(&files, error));                  // also removes the folders if they are empty then
 *     run_files_close(&files);
 *
 * A database may come from elsewhere and name any folder. So only a folder that is named like a run's
 * (SUITE-HASH/seedN) is accepted, only regular files with the names of a run's files are removed, and no link is
 * followed.
 */
#pragma once

#include <stdint.h>

#include "core/file.h"
#include "core/status.h"

struct run_files {
    char *folder;   /* NULL: there is none */
    int descriptor; /* of the folder, locked; −1: not open */
    struct directory entries;
    char **name; /* of the files, borrowed from entries */
    size_t count;
    size_t others; /* entries that are not the run's, which stay */
    uint64_t bytes;
};

/* folder may be NULL or absent: then nothing is found. ERROR_BUSY when a run uses it, ERROR_ARGUMENT when it is not
 * the folder of a run with this seed. The caller closes, also after a failure. */
status run_files_find(struct run_files *files, const char *folder, int64_t seed, struct error *error);
/* "SUITE-0123456789ab/seedN" at the end of such a folder, as run_folder names it; NULL: it is none. */
const char *run_files_place(const char *folder, int64_t seed);
status run_files_remove(struct run_files *files, struct error *error);
void run_files_close(struct run_files *files);

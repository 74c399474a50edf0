/* What runs share in a cache folder besides decoded images: files of features (shared_features.h), and surveys of images and
 * digests of files (core/seen.h), a line for each folder or file.
 *
 *     struct shared_files list;
 *     TRY(shared_files_list(&list, folder, error));
 *     for (size_t i = 0; i < list.count; i++) … list.files[i].bytes …
 *     shared_files_free(&list);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "core/status.h"

#define SHARED_FILE_ENDING ".features"

struct shared_file {
    char *path;
    const char *kind;     /* "features", "survey", "digest" */
    char *dataset, *root; /* root NULL: it cannot be read; of a digest: the digested file, without a dataset */
    size_t images;
    uint64_t bytes;
    time_t used; /* last written or read by a run */
};

struct shared_files {
    size_t count;
    struct shared_file *files; /* by name; those of core/seen.h last */
};

/* A folder that does not exist counts as empty; foreign files are left out. The caller frees; after a failure there
 * is nothing to free. */
status shared_files_list(struct shared_files *list, const char *folder, struct error *error);
void shared_files_free(struct shared_files *list);

/* Removes the files made from datasets below root (NULL: all) and lists them in removed. */
status shared_files_clear(struct shared_files *removed, const char *folder, const char *root, struct error *error);

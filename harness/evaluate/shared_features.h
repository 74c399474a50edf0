/* Features of zero-shot CLIP in files that runs share, because every run of a sweep needs the same ones.
 *
 *     struct shared_features shared;
 *     TRY(shared_features_open(&shared, model, data, error));
 *     TRY(shared_features_take(&shared, task, means, features, stop, error));       // from the file, or computed and kept
 *     shared_features_close(&shared);
 *
 * With run.cache: disk there is one file per test set, weights and kind of processor or GPU, beside the decoded images. It
 * contains the digest of everything its numbers depend on, including the program and the times of the images, and is
 * written again when the digest differs, so that features read from a file have the bits that computing them would
 * give. A file is written whole or not at all; a damaged one is written again. Where no file can be written, features are
 * computed.
 *
 * shared_files_list names what runs share in a cache folder besides decoded images: these files, and surveys of images
 * and digests of files (core/seen.h), a line for each folder or file:
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

#include "core/digest.h"
#include "core/status.h"
#include "harness/model/model.h"

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

struct shared_features {
    struct model *model;
    const struct data *data;
    char *folder;              /* NULL: nothing is shared */
    char origin[DIGEST_SIZE];  /* of all inputs but the images and the program */
    char program[DIGEST_SIZE]; /* of the running program */
    bool gave_up;              /* no more files are written, after a warning */
};

status shared_features_open(struct shared_features *shared, struct model *model, const struct data *data,
                            struct error *error);
void shared_features_close(struct shared_features *shared); /* of zeros is allowed */

/* frozen_features (image_pass.h) of a task's whole test set. */
status shared_features_take(struct shared_features *shared, const struct task *task, float *means, float *features,
                            const struct stop *stop, struct error *error);

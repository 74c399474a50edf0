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
 */
#pragma once

#include "core/digest.h"
#include "harness/heads/model.h"

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

/* frozen_features (frozen_features.h) of a task's whole test set. */
status shared_features_take(struct shared_features *shared, const struct task *task, float *means, float *features,
                            const struct stop *stop, struct error *error);

/* Features of the untouched CLIP, in files that runs share: every run of a sweep asks for the same ones.
 *
 *     struct shared_features shared;
 *     TRY(shared_features_open(&shared, experiment, error));
 *     TRY(shared_features_take(&shared, task, means, features, stop, error));       // from the file, or computed and kept
 *     shared_features_close(&shared);
 *
 * With run.cache: disk there is one file per test set, weights and kind of processor, beside those of the decoded images. It
 * has the digest of all that its numbers come from, the program and the times of the images included, and is written anew
 * when that differs: what is taken from a file has the bits that computing it would give. A file is written whole or not
 * at all, and one whose content is not what it was is written anew, too. Where none can be written, the features are
 * computed; so they are on backends that do not promise the same bits.
 */
#ifndef MTIL_HARNESS_EVALUATE_SHARED_FEATURES_H
#define MTIL_HARNESS_EVALUATE_SHARED_FEATURES_H

#include "core/digest.h"
#include "harness/run/experiment.h"

struct shared_features {
    struct experiment *experiment;
    char *folder;              /* NULL: nothing is shared */
    char origin[DIGEST_SIZE];  /* of all but the images and the program */
    char program[DIGEST_SIZE]; /* this one's */
    bool gave_up;              /* writing files, after a warning */
};

status shared_features_open(struct shared_features *shared, struct experiment *experiment, struct error *error);
void shared_features_close(struct shared_features *shared); /* of zeros is allowed */

/* frozen_features (selector.h) of a task's whole test set. */
status shared_features_take(struct shared_features *shared, const struct task *task, float *means, float *features,
                            const struct stop *stop, struct error *error);

#endif

/* Trains the built-in small CLIP on captioned drawings (Radford et al. 2021, Figure 3: symmetric cross-entropy over the
 * images and captions of a batch).
 *
 *     struct pretrain_settings settings = pretrain_defaults();
 *     TRY(pretrain(&settings, "models/weights", log, progress, stop, error));
 *                                                         // writes mini-clip.safetensors and mini-vocabulary.txt
 *
 * First plain drawings with half of the patches dropped in the first three quarters (Li et al. 2023, FLIP), then harder
 * ones.
 */
#ifndef MTIL_HARNESS_TRAIN_PRETRAIN_H
#define MTIL_HARNESS_TRAIN_PRETRAIN_H

#include "core/log.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"
#include "models/backend.h"
#include "models/files/clip_file.h"

struct pretrain_settings {
    uint64_t seed;
    struct backend_settings backend; /* its threads also draw */
    size_t batch, plain_steps, harder_steps;
    size_t captions, merges; /* vocabulary: number of captions it is learned from, and most merges */
    double plain_rate, harder_rate, weight_decay;
    struct clip_dimensions dimensions; /* the vocabulary is filled in */
};

struct pretrain_settings pretrain_defaults(void);

/* Both files appear at the end; after a stop or failure the folder is unchanged. Logs the held-out retrieval
 * accuracy. progress and stop may be NULL. */
status pretrain(const struct pretrain_settings *settings, const char *folder, const struct log *log,
                struct progress *progress, const struct stop *stop, struct error *error);

#endif

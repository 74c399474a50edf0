/* Runs to be compared: what they were told and what they reached follow from a few numbers, so that another program can
 * compute the same (the expected values in compare.txt come from SciPy).
 *
 *     compare_sample_add(store, &(struct compare_sample){.policy = "none", .seed = 1, .every = 50});
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "results/store.h"

#define COMPARE_SAMPLE_TASKS 3
#define COMPARE_SAMPLE_IMAGES 200

struct compare_sample {
    const char *policy;
    int64_t seed, every;
    int64_t lift;                           /* images more that are right, on average */
    int64_t noise;                          /* images: the deviation of normal noise, drawn for each run and cell */
    int64_t threads;                        /* a key that does not matter */
    const char *own;                        /* a line of the policy's own under merge: "  decay: 0.5\n"; NULL: none */
    enum per_image_kind kept;               /* of each image */
    int64_t more_images;                    /* than COMPARE_SAMPLE_IMAGES in every test set */
    bool stopped, holes;                    /* not finished; without the evaluations after the last task */
    bool untrained;                         /* zero-shot CLIP: no section merge, the zero-shot row alone */
    const char *version;                    /* of the program; NULL: 0.1.0 */
    const char *weights, *training, *tests; /* digests of their contents; NULL: nothing was recorded */
    const char *path;                       /* of the weights */
};

/* Image i is right when (i + 3 lift) mod 200 is below the number of right ones. */
int64_t compare_sample_add(struct store *store, const struct compare_sample *sample);

/* Checks that a dataset is fit for training: every image decodes, no test image is in the training set, every class has
 * images.
 *
 *     struct check check;
 *     TRY(check_dataset(&check, dataset, &(struct survey_settings){.threads = pool}, error));
 *     for (size_t i = 0; i < check.count; i++) … check.findings[i] …
 *     check_free(&check);
 *
 * All images are decoded once, or looked up in an earlier survey (survey.h), which stores a 128-bit hash of their
 * pixels: "duplicate" means the same pixels, whatever the files are called.
 */
#pragma once

#include "datasets/survey.h"

enum check_kind {
    CHECK_MISSING,    /* listed, but missing; such a dataset opens only with on_missing: skip */
    CHECK_UNREADABLE, /* detail: why */
    CHECK_DUPLICATE,  /* a test image; detail: the training image of the same pixels */
    CHECK_CLASSES,    /* an image; detail: the first one of the same pixels, which has another class */
    CHECK_REPEATED,   /* an image; detail: its repetition in the same split */
    CHECK_LEFT_OUT,   /* a file that is no image of a class, of the training split whatever its folder */
    CHECK_EMPTY_CLASS /* subject: the class */
};
enum { CHECK_KINDS = CHECK_EMPTY_CLASS + 1 };

struct check_finding {
    enum check_kind kind;
    enum split split;
    char *subject, *detail; /* the image or class; further information, NULL: none */
};

/* of: number of findings of each kind. least, median, most: images per class. */
struct check_split {
    size_t images, of[CHECK_KINDS], clipped; /* 16-bit grey whose values beyond 255 are read as white */
    size_t least, most;
    double median;
};

struct check {
    struct check_split splits[SPLITS];
    struct check_finding *findings; /* by split, then kind, then the dataset's order */
    size_t count;
};

/* Stores the survey of the images for later. The caller frees check with check_free; after a failure there is
 * nothing to free. */
status check_dataset(struct check *check, const struct dataset *dataset, const struct survey_settings *settings,
                     struct error *error);
void check_free(struct check *check);

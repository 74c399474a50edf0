/* Whether a dataset is fit to be learnt from: every image decodes, no test image is trained with, every class has
 * images.
 *
 *     struct check check;
 *     TRY(check_dataset(&check, dataset, &(struct survey_settings){.threads = pool}, error));
 *     for (size_t i = 0; i < check.count; i++) … check.findings[i] …
 *     check_free(&check);
 *
 * All images are decoded once, or known from an earlier survey (survey.h), which keeps 128 bits of their pixels:
 * "duplicate" means the same pixels, whatever the files are called.
 */
#ifndef MTIL_DATASETS_CHECK_H
#define MTIL_DATASETS_CHECK_H

#include "datasets/survey.h"

enum check_kind {
    CHECK_MISSING,    /* listed, but not there; only with on_missing: skip does a dataset open so */
    CHECK_UNREADABLE, /* detail: why */
    CHECK_DUPLICATE,  /* a test image; detail: the training image of the same pixels */
    CHECK_EMPTY_CLASS /* subject: the class */
};
enum { CHECK_KINDS = CHECK_EMPTY_CLASS + 1 };

struct check_finding {
    enum check_kind kind;
    enum split split;
    char *subject, *detail; /* the image or class; what else there is to say, NULL: nothing */
};

/* of: how many findings of each kind. least, median, most: images per class. */
struct check_split {
    size_t images, of[CHECK_KINDS];
    size_t least, most;
    double median;
};

struct check {
    struct check_split splits[SPLITS];
    struct check_finding *findings; /* by split, then kind, then the dataset's order */
    size_t count;
};

/* What is found in the images is kept for the next survey. The caller frees check with check_free, after a failure there
 * is nothing to free. */
status check_dataset(struct check *check, const struct dataset *dataset, const struct survey_settings *settings,
                     struct error *error);
void check_free(struct check *check);

#endif

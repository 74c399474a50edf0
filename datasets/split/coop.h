/* Internal: opens a dataset by CoOp's split instead of its reader's own.
 *
 *     dtd/split_zhou_DescribableTextures.json and dtd/images (CoOp's layout) or dtd/dtd/images (torchvision's):
 *     .coop = &(const struct coop){.file = "split_zhou_DescribableTextures.json",     // in the reader's table
 *                                  .places = {{"dtd", "images"}, {"dtd", "dtd/images"}}},
 *
 * "train" lists the training images, "test" the test images; "val" is not used. Class names are the file's, with spaces
 * for underscores, as in CoOp's prompts, because the built-in names may follow other labels.
 */
#pragma once

#include "datasets/readers/reader.h"

enum { COOP_PLACES = 3 };

struct coop {
    const char *file; /* in the dataset's folder; NULL: CoOp uses the split that the reader's `open` reads */
    struct coop_place {
        const char *folder; /* the dataset's own below the root */
        const char *images; /* below folder: the base of the file's paths */
    } places[COOP_PLACES];  /* the first that has the file and the images is taken */
};

/* Fills in the dataset's folder, classes and items. For a reader without such a split the error lists those with
 * one. */
status coop_open(struct dataset *dataset, struct error *error);

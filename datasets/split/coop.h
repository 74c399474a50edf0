/* Internal: opens a dataset by CoOp's split (Zhou et al., "Learning to Prompt for Vision-Language Models", IJCV 2022) instead of its
 * reader's own. split_zhou_<Dataset>.json is
 *
 *     {"train": [["path.jpg", label, "class name"], …], "val": […], "test": […]}
 *
 * "train" lists the training images, "test" the test images; "val" is not used. Class names are the file's, with spaces
 * for underscores, as in CoOp's prompts, because the built-in names may follow other labels.
 */
#pragma once

#include "datasets/readers/reader.h"

/* Fills in the dataset's folder, classes and items. For a reader without such a split the error lists those with
 * one. */
status coop_open(struct dataset *dataset, struct error *error);

struct coop_list {
    struct strings files; /* relative to the dataset's image folder, in the order of the file */
    int32_t *labels;      /* [files.count] */
};

struct coop_split {
    struct strings classes;       /* by label, as written; no label is left out */
    struct coop_list train, test; /* "val" is checked and not kept; it may be absent */
};

/* Parses `size` bytes, called name in messages. ERROR_FORMAT, with the place in the file, for a label without an item
 * or with two names, and for a path that is absolute or leads out of the image folder. */
status coop_split_parse(struct coop_split *split, const void *data, size_t size, const char *name, struct error *error);
void coop_split_free(struct coop_split *split);

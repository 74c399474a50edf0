/* CoOp's split files (Zhou et al., "Learning to Prompt for Vision-Language Models", IJCV 2022): split_zhou_<Dataset>.json
 * is {"train": [["path.jpg", label, "class name"], …], "val": […], "test": […]}.
 *
 *     struct coop_split split;
 *     TRY(coop_split_read(&split, "dtd/split_zhou_DescribableTextures.json", error));
 *     split.train.files.items[i], split.train.labels[i], split.classes.items[label] …
 *     coop_split_free(&split);
 */
#pragma once

#include <stdint.h>

#include "datasets/formats/strings.h"

struct coop_list {
    struct strings files; /* relative to the dataset's image folder, in the order of the file */
    int32_t *labels;      /* [files.count] */
};

struct coop_split {
    struct strings classes;       /* by label, as written; no label is left out */
    struct coop_list train, test; /* "val" is checked and not kept; it may be absent */
};

/* ERROR_FORMAT, with the place in the file, for a label without an item or with two names and for a path that is
 * absolute or leads out of the image folder. */
status coop_split_read(struct coop_split *split, const char *path, struct error *error);

/* The same from size bytes, called name in messages. */
status coop_split_parse(struct coop_split *split, const void *data, size_t size, const char *name, struct error *error);
void coop_split_free(struct coop_split *split);

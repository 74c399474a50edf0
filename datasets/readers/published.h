/* Published numbers of classes and images, to distinguish complete copies from incomplete ones.
 *
 *     const struct published *published = published_find("dtd", "torchvision");
 *     if (published != NULL && published->train != dataset_size(dataset, SPLIT_TRAIN)) …
 */
#pragma once

#include <stddef.h>

struct published {
    const char *dataset; /* the reader's name */
    const char *split;   /* "torchvision", "coop" */
    size_t classes, train, test;
};

/* NULL: unknown. */
const struct published *published_find(const char *dataset, const char *split);

/* Images by their pixels: which of several datasets show the same.
 *
 *     struct same_images same = {0};
 *     same_images_add(&same, set, SPLIT_TEST, item, &found);                   // of each image; set: the dataset's number
 *     same_images_sort(&same);
 *     const struct same_image *first = same_images_find(&same, &found);
 *     free(same.images);
 */
#pragma once

#include "datasets/survey.h"

struct same_image {
    uint64_t pixels[2];
    uint32_t width, height, split, set, item;
};

struct same_images {
    struct same_image *images; /* [count] once sorted: the same ones in a row, in the order of split, set and item */
    size_t count;
};

void same_images_add(struct same_images *same, size_t set, enum split split, size_t item,
                     const struct survey_image *found);
void same_images_sort(struct same_images *same);
bool same_image_is(const struct same_image *a, const struct same_image *b); /* have the same pixels */

/* The first one with the pixels of an image that was added. */
const struct same_image *same_images_find(const struct same_images *same, const struct survey_image *found);

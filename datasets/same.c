#include "datasets/same.h"

#include <stdlib.h>

#include "core/alloc.h"

static struct same_image image_of(const struct survey_image *found)
{
    return (struct same_image){
        .pixels = {found->pixels[0], found->pixels[1]}, .width = found->width, .height = found->height};
}

void same_images_add(struct same_images *same, size_t set, enum split split, size_t item,
                     const struct survey_image *found)
{
    GROW(same->images, same->count);
    struct same_image *image = &same->images[same->count++];
    *image = image_of(found);
    image->split = (uint32_t)split;
    image->set = (uint32_t)set;
    image->item = (uint32_t)item;
}

/* By the first `keys` of pixels, size, split, set and item. */
static int compare(const struct same_image *a, const struct same_image *b, size_t keys)
{
    const uint64_t x[] = {a->pixels[0], a->pixels[1], a->width, a->height, a->split, a->set, a->item},
                   y[] = {b->pixels[0], b->pixels[1], b->width, b->height, b->split, b->set, b->item};
    for (size_t i = 0; i < keys; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

enum { PIXEL_KEYS = 4, ALL_KEYS = 7 };

static int compare_all(const void *a, const void *b)
{
    return compare(a, b, ALL_KEYS);
}

void same_images_sort(struct same_images *same)
{
    if (same->count > 1)
        qsort(same->images, same->count, sizeof *same->images, compare_all);
}

bool same_image_is(const struct same_image *a, const struct same_image *b)
{
    return compare(a, b, PIXEL_KEYS) == 0;
}

const struct same_image *same_images_find(const struct same_images *same, const struct survey_image *found)
{
    const struct same_image image = image_of(found);
    size_t low = 0, high = same->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&same->images[middle], &image, PIXEL_KEYS) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return &same->images[low];
}

/* Counts how often each expert of a tower was chosen for images of each class, and adds up the gates of these choices.
 *
 *     struct class_experts experts;
 *     class_experts_create(&experts, blocks, classes, 22);
 *     class_experts_add(&experts, label, chosen, gates, top_k);         // of each image
 *     … experts.counts[(block * classes + label) * 22 + expert] …
 *     class_experts_free(&experts);
 *
 * Keeps the first expert that each patch of some test images chose, for pictures of the routing.
 *
 *     struct patch_experts patches;
 *     patch_experts_create(&patches, &(struct patch_experts){.of = n, .images = 4, …});
 *     patch_experts_keep(&patches, item, chosen);                       // of each image that tokens route
 *     … patches.experts[(i * patches.blocks + block) * side * side + y * side + x] …
 *     patch_experts_free(&patches);
 *
 * The images lie evenly in the list of `of` images, so that lists in the order of classes show several classes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct class_experts {
    size_t blocks, classes, experts; /* blocks: only those that choose experts */
    uint64_t *counts;                /* [blocks, classes, experts]; NULL: nothing is counted */
    double *gates;                   /* likewise: the sums of those choices' gates */
};

void class_experts_create(struct class_experts *experts, size_t blocks, size_t classes, size_t count);
void class_experts_free(struct class_experts *experts); /* all zero is allowed */

/* Adds an image of the class: chosen and gates [blocks, choices], −1 where nothing was chosen. */
void class_experts_add(struct class_experts *experts, size_t class, const int32_t *chosen, const float *gates,
                       size_t choices);

struct patch_experts {
    size_t of, images;    /* images: of the list, those that are kept */
    size_t blocks, top_k; /* blocks: only those that choose experts */
    size_t side;          /* patches in a row and in a column */
    int32_t *experts;     /* [images, blocks, side, side], −1: no router; NULL: nothing is kept */
};

/* Reads all numbers of `shape`. If it asks for more images than the list has, all are kept. */
void patch_experts_create(struct patch_experts *patches, const struct patch_experts *shape);
void patch_experts_free(struct patch_experts *patches); /* all zero is allowed */

/* The place of kept image i in the list. */
size_t patch_experts_item(const struct patch_experts *patches, size_t i);

/* Keeps an item's choices [blocks, 1 + side · side, top_k], the class token's first, if it is among the images. */
void patch_experts_keep(struct patch_experts *patches, size_t item, const int32_t *chosen);

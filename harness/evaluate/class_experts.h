/* Counts how often each expert of a tower was chosen for images of each class, and adds up the gates of these choices.
 *
 *     struct class_experts experts;
 *     class_experts_create(&experts, blocks, classes, 22);
 *     class_experts_add(&experts, label, chosen, gates, top_k);         // of each image
 *     … experts.counts[(block * classes + label) * 22 + expert] …
 *     class_experts_free(&experts);
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

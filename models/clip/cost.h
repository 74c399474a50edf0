/* A model's cost: floating-point operations (a multiply and an add are two) and bytes, from its dimensions.
 *
 *     double step = cost_adapter_step(&vit_b_16, 16, 100, 14, &experts);   // 16 images, 100 prompts of 14 tokens: 1.4e12
 *     double share = step / seconds / rate;
 */
#pragma once

#include "models/block.h"
#include "models/files/clip_file.h"

/* Experts that every position goes through in some of the blocks. */
struct cost_experts {
    size_t top_k, hidden[TOWERS]; /* hidden: units of one */
    size_t blocks[TOWERS];        /* blocks with experts */
    size_t below[TOWERS];         /* blocks below the first of them */
    bool replace_mlp;             /* they stand in its place, not beside it */
};

/* The matrix products of one forward pass. */
double cost_images(const struct clip_dimensions *dimensions, size_t images);
double cost_texts(const struct clip_dimensions *dimensions, size_t texts, size_t positions);

/* The products that experts add to one forward pass; below zero where they replace larger MLPs. */
double cost_image_experts(const struct clip_dimensions *dimensions, size_t images, const struct cost_experts *experts);

/* A training step of the adapters: both forward passes, the gradient of every activation above the first block's
 * attention, and the experts' weights. */
double cost_adapter_step(const struct clip_dimensions *dimensions, size_t images, size_t texts, size_t positions,
                         const struct cost_experts *experts);

/* Values of all weights. */
size_t cost_weights(const struct clip_dimensions *dimensions);

/* Bytes that a training step keeps of both towers' forward passes. */
size_t cost_step_bytes(const struct clip_dimensions *dimensions, size_t images, size_t texts, size_t positions,
                       const struct cost_experts *experts, enum precision precision);

/* Bytes of gradients that a block's backward pass needs at a time, of both towers, because both may compute at once. */
size_t cost_backward_bytes(const struct clip_dimensions *dimensions, size_t images, size_t texts, size_t positions);

/* Bytes that the operations of a training step need for themselves on a GPU: of each tower, because both may compute at once. */
size_t cost_scratch_bytes(const struct clip_dimensions *dimensions, size_t images, size_t texts, size_t positions,
                          const struct cost_experts *experts);

/* Bytes of a tower's frozen weights in bf16 as a GPU keeps them for products: of the patches, all blocks and the projection.
 * experts: the trained ones; NULL: nothing is trained. */
size_t cost_rounded_bytes(const struct clip_dimensions *dimensions, enum tower tower,
                          const struct cost_experts *experts);

/* Bytes of the same weights as a CPU packs them. The weights that gradients pass through count once more, in the
 * other order. */
size_t cost_packed_bytes(const struct clip_dimensions *dimensions, enum tower tower,
                         const struct cost_experts *experts);

/* Bytes that encoding images without a backward pass needs at a time. */
size_t cost_evaluation_bytes(const struct clip_dimensions *dimensions, size_t images,
                             const struct cost_experts *experts);

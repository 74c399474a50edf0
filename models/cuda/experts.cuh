/* The common part of the kernels for stacked experts: experts.cu has those that go over samples, expert_weights.cu the
 * gradients of the weights. */
#pragma once

#include "models/cuda/tensor.cuh"

/* The experts of struct expert_stack_operands. units and dunits of a choice b · K + k lie where the choice does, [B · K, L,
 * m], in the backend's type of operands. */
struct stack {
    struct slots d;
    size_t rows, width, hidden; /* rows: L */
    const void *first, *second; /* of operand type */
    const float *first_bias, *second_bias, *weights;
    float scale;
};

/* The unit of dynamic shared memory, so that fragments and copies of 16 bytes may begin anywhere in it that they like. */
struct alignas(128) shared_line {
    char bytes[128];
};

static __device__ inline bool is_chosen(const struct stack *s, size_t choice)
{
    return s->d.slot[choice] >= 0;
}

/* Row tiles of a sample. */
static inline __device__ size_t tiles_of(const struct stack *s)
{
    return (s->rows + TILE_ROWS - 1) / TILE_ROWS;
}

/* Operands of the weights' gradients. sums: of dy over the rows of a tile, [B, tiles, d] */
struct expert_gradients {
    struct stack stack;
    struct batch {
        const void *data;
        enum tensor_type type;
    } x, dy;
    const void *units, *dunits; /* of operand type */
    const float *sums;
    float *values[4]; /* dW₁, db₁, dW₂, db₂ */
    const int32_t *frozen;
    float *partial; /* expert_partial_values floats */
};

/* Gradients of weights and biases, += … */
size_t expert_partial_values(const struct expert_gradients *g);
void cuda_expert_weights(struct cuda *cuda, const struct expert_gradients *g);

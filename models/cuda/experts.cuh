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

/* Begins to copy 16 bytes of an array of T to shared memory. */
template <typename T> static __device__ inline void copy_line(T *to, const void *from, size_t at, bool there)
{
    cp_async<16>(to, (const T *)from + (there ? at : 0), there);
}

/* use(stage) for all stages, after its load(stage), which begins copies to shared memory and loads into registers, and its
 * put(stage), which moves the latter to shared memory. The next stages are on their way meanwhile, in the place of the one that
 * was used before: the barrier lies between. With one stage nothing may go through registers. */
template <int STAGES, typename Load, typename Put, typename Use>
static __device__ inline void in_stages(size_t count, Load load, Put put, Use use)
{
    for (unsigned int i = 0; i < count + STAGES - 1; i++) {
        if (STAGES > 1 && i + 1 >= STAGES) {
            cp_async_wait<(STAGES > 1 ? STAGES - 2 : 0)>();
            __syncthreads();
        }
        if (i < count)
            load(i);
        cp_async_commit();
        if (STAGES == 1) {
            cp_async_wait<0>();
            __syncthreads();
        }
        if (i + 1 >= STAGES)
            use(i + 1 - STAGES);
        if (i < count)
            put(i);
        if (STAGES == 1)
            __syncthreads();
    }
    __syncthreads();
}

/* Operands of the weights' gradients. sums: of dy over the rows of a tile, [B, tiles, d] */
struct expert_gradients {
    struct stack stack;
    struct batch {
        const void *data;
        enum tensor_type type;
    } x, dy;
    const void *units, *dunits; /* of operand type; units are times their gates */
    const float *sums;
    float *values[4]; /* dW₁, db₁, dW₂, db₂ */
    const int32_t *frozen;
    float *partial; /* expert_partial_values floats */
};

/* Gradients of weights and biases, += … */
size_t expert_partial_values(const struct expert_gradients *g);
void cuda_expert_weights(struct cuda *cuda, const struct expert_gradients *g);

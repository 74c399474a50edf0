/* The common part of the kernels for products grouped by expert: grouped.cu has the f32 kernels, grouped_bf16.cu those on
 * tensor cores. */
#ifndef MTIL_MODELS_CUDA_GROUP_CUH
#define MTIL_MODELS_CUDA_GROUP_CUH

#include "models/cuda/kernel.cuh"

enum { GROUP_TILE = 64 }; /* a block has 64 × 64 values of the result */

struct group {
    size_t groups, rows_per_slot;
    const int32_t *offsets, *frozen;
    struct typed_rows a, b, out; /* b of GROUPED_ROWS: the first expert's */
    const float *bias;
    size_t n, k; /* of GROUPED_ROWS: columns of out and of a; of GROUPED_WEIGHTS: columns of b and of a */
    bool transpose_b;
    enum activation activation;
};

/* The number of group e's first row tile, computed without counting the tiles before; some numbers have no tile. */
static __device__ inline size_t first_tile(const struct group *g, size_t e)
{
    return (size_t)g->offsets[e] * g->rows_per_slot / GROUP_TILE + e;
}

/* Row tiles are numbered through all groups; tile `number` is tile `within` of group e, or of none. */
static __device__ inline bool find_tile(const struct group *g, size_t number, size_t *e, size_t *within)
{
    size_t end = g->groups;
    for (*e = 0; end - *e > 1;) {
        size_t middle = (*e + end) / 2;
        if (first_tile(g, middle) <= number)
            *e = middle;
        else
            end = middle;
    }
    *within = number - first_tile(g, *e);
    return *within * GROUP_TILE < (size_t)(g->offsets[*e + 1] - g->offsets[*e]) * g->rows_per_slot;
}

static __device__ inline bool is_frozen(const struct group *g, size_t e)
{
    return g->frozen != NULL && g->frozen[e] != 0;
}

/* On tensor cores: operands rounded to bf16, sums in f32. */
void cuda_group_rows_bf16(struct cuda *cuda, const struct group *g, dim3 grid);
void cuda_group_weights_bf16(struct cuda *cuda, const struct group *g, dim3 grid);

#endif

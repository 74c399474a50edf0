/* The common part of the attention kernels on tensor cores: how they read and write a head. A strip is 16 rows of a matrix, as
 * many as a warp has of it; a tile is 8 columns. */
#pragma once

#include "models/cuda/attention.cuh"
#include "models/cuda/tensor.cuh"

enum { STRIP = 16, TILE = 8 };
constexpr float LOG2_E = 1.44269504f;
enum { FEW_WARPS = 4 }; /* a block has several heads where one would leave it with fewer */

/* A row of a head in shared memory. The 16 bytes behind it let eight successive rows begin in eight different groups of four
 * banks, for all three capacities, so that ldmatrix meets no conflict. ROOM, here and below: capacity in columns. */
template <int ROOM> struct alignas(16) head_row {
    __nv_bfloat16 value[ROOM + 8];
};

/* Begins to copy rows first … first + count − 1 to shared memory by the whole block; zeros where there are none. */
template <int ROOM>
static __device__ inline void copy_rows(struct head_row<ROOM> *to, unsigned int count, struct slice<__nv_bfloat16> from,
                                        unsigned int first)
{
#pragma unroll 1 /* a copy holds no register, a second address would */
    for (unsigned int i = threadIdx.x; i < count * (ROOM / EIGHT); i += blockDim.x) {
        unsigned int row = i / (ROOM / EIGHT), column = i % (ROOM / EIGHT) * EIGHT;
        bool there = first + row < from.end && column < from.columns;
        cp_async<16>(&to[row].value[column], there ? row_of(&from, first + row) + column : from.values, there);
    }
}

/* 1 in the halves of a pair that are not finite. */
static __device__ inline uint32_t infinite_halves(uint32_t pair)
{
    return ((pair & 0x7f80u) == 0x7f80u ? 1u : 0u) | ((pair & 0x7f800000u) == 0x7f800000u ? 1u << 16 : 0u);
}

/* A strip as left operands, straight from memory: for what a warp reads once. */
template <int ROOM>
static __device__ inline void read_strip(uint32_t (*to)[4], struct slice<__nv_bfloat16> from, unsigned int first)
{
    for (unsigned int half = 0; half < 2; half++) {
        unsigned int row = first + lane() / 4 + half * 8;
        const __nv_bfloat16 *values = row < from.end ? row_of(&from, row) : NULL;
#pragma unroll
        for (unsigned int j = 0; j < 2 * ROOM / STRIP; j++) {
            unsigned int column = j * TILE + lane() % 4 * 2;
            to[j / 2][j % 2 * 2 + half] =
                values != NULL && column < from.columns ? *(const uint32_t *)(values + column) : 0;
        }
    }
}

struct alignas(8) two_pairs {
    uint32_t pair[2];
};

/* Stores the rows of two neighbouring tiles that this lane and its neighbours hold, times a factor per row, at `column`. Lanes
 * exchange values so that the four of a row write 32 successive bytes. Rows past the end are not there. */
static __device__ inline void store_tiles(struct slice<__nv_bfloat16> to, unsigned int first, unsigned int column,
                                          const float x[2][4], float upper, float lower)
{
    unsigned int odd = lane() % 2, at = column + odd * TILE + lane() % 4 / 2 * 4;
#pragma unroll
    for (unsigned int half = 0; half < 2; half++) {
        unsigned int row = first + lane() / 4 + half * 8;
        float factor = half == 0 ? upper : lower;
        uint32_t left = pack_bf16(factor * x[0][2 * half], factor * x[0][2 * half + 1]),
                 right = pack_bf16(factor * x[1][2 * half], factor * x[1][2 * half + 1]),
                 other = __shfl_xor_sync(0xffffffffu, odd ? left : right, 1);
        struct two_pairs four = {{odd ? other : left, odd ? right : other}};
        if (row < to.end && at < to.columns)
            *(struct two_pairs *)(row_of(&to, row) + at) = four;
    }
}

/* How many heads share a block, where each takes so many warps and bytes of shared memory. */
static inline unsigned int heads_a_block(unsigned int warps, size_t bytes)
{
    size_t wanted = warps < FEW_WARPS ? FEW_WARPS / warps : 1, fit = CUDA_SHARED_BYTES / bytes;
    return (unsigned int)(wanted < fit ? wanted : fit);
}

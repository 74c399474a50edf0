/* The common part of the attention kernels: attention.cu has the f32 kernels, attention_bf16.cu those on tensor cores. Names
 * are FlashAttention-2's (Dao 2023): m, the running maximum of a row's scores; l, the running sum of their exponentials;
 * lse = m + log l; delta = rowsum(dO ∘ O). */
#pragma once

#include "models/cuda/tensor.cuh"

/* Column capacities of the kernels. A narrower head's columns are followed by zeros, which add nothing. */
enum { NARROW = 64, MIDDLE = 96, WIDE = 128 };

/* Calls the function whose kernels have the smallest sufficient capacity. */
#define IN_ROOM(columns, function, ...)                                                                                \
    ((columns) <= NARROW   ? function<NARROW>(__VA_ARGS__)                                                             \
     : (columns) <= MIDDLE ? function<MIDDLE>(__VA_ARGS__)                                                             \
                           : function<WIDE>(__VA_ARGS__))

struct heads {
    size_t positions, width, count, columns; /* count: heads a sample; columns: of a head, a multiple of 8 */
    float scale;                             /* 1/√columns */
    bool causal;
    const void *qkv, *dout;
    void *out, *dqkv;
    float *lse, *delta;  /* [B · heads, queries]: log-sum-exp of a row's scores, and dout · out */
    const int32_t *rows; /* of the queries, as in struct attention_operands */
    size_t queries;      /* of a sample */
};

static __device__ inline bool sees(const struct heads *h, size_t query, size_t key)
{
    return key < h->positions && (!h->causal || key <= query);
}

/* A [rows, columns] slice of one head of one sample; `rows` chooses them from the positions of all samples (NULL: each). */
template <typename T> struct slice {
    T *values;
    unsigned int stride, columns, end; /* end: number of rows */
    const int32_t *rows;
    unsigned int before; /* positions of the samples before */
};

template <typename T> static __device__ inline unsigned int position_of(const struct slice<T> *from, unsigned int row)
{
    return from->rows != NULL && row < from->end ? (unsigned int)from->rows[row] - from->before : row;
}

template <typename T> static __device__ inline T *row_of(const struct slice<T> *from, unsigned int row)
{
    return from->values + (size_t)position_of(from, row) * from->stride;
}

/* Queries (0), keys (1) and values (2), or their gradients. */
template <typename T>
static __device__ inline struct slice<T> slice_of(const struct heads *h, const void *qkv, unsigned int head,
                                                  unsigned int part) {
    unsigned int count = (unsigned int)h->count, columns = (unsigned int)h->columns, sample = head / count,
                 width = (unsigned int)h->width, positions = (unsigned int)h->positions,
                 queries = (unsigned int)h->queries;
    bool chosen = part == 0 && h->rows != NULL;
    T *values = (T *)qkv + (size_t)sample * positions * 3 * width;
    return {values + part * width + head % count * columns,    3 * width,        columns, chosen ? queries : positions,
            chosen ? h->rows + (size_t)sample *queries : NULL, sample *positions};
}

/* Of out or its gradient: a row a query. */
template <typename T>
static __device__ inline struct slice<T> result_of(const struct heads *h, const void *values, unsigned int head) {
    unsigned int count = (unsigned int)h->count, columns = (unsigned int)h->columns, width = (unsigned int)h->width;
    return {(T *)values + head / count * h->queries * width + head % count * columns,
            width,
            columns,
            (unsigned int)h->queries,
            NULL,
            0};
}

/* out, and lse unless it is NULL; then dqkv from those. Of bf16 values. */
void cuda_attend_bf16(struct cuda *cuda, const struct heads *heads, size_t batch);
status cuda_attention_gradients_bf16(struct cuda *cuda, const struct heads *heads, size_t batch, struct error *error);

/* ---- tensor cores: how the kernels read and write a head. A strip is 16 rows of a matrix, as many as a warp has of it; a tile is 8
 * columns ---- */

enum { TILE = 8 };
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
        uint64_t four = odd ? (uint64_t)right << 32 | other : (uint64_t)other << 32 | left;
        if (row < to.end && at < to.columns)
            *(uint64_t *)(row_of(&to, row) + at) = four;
    }
}

/* How many heads share a block, where each takes so many warps and bytes of shared memory. */
static inline unsigned int heads_a_block(unsigned int warps, size_t bytes)
{
    size_t wanted = warps < FEW_WARPS ? FEW_WARPS / warps : 1, fit = CUDA_SHARED_BYTES / bytes;
    return (unsigned int)(wanted < fit ? wanted : fit);
}

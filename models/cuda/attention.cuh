/* The common part of the attention kernels: attention.cu has the f32 kernels, attention_bf16.cu those on tensor cores. Names
 * are FlashAttention-2's (Dao 2023): m, the running maximum of a row's scores; l, the running sum of their exponentials;
 * lse = m + log l; delta = rowsum(dO ∘ O). */
#pragma once

#include "models/cuda/kernel.cuh"

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
    const int32_t *rows; /* of the queries, as in struct attention */
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

/* The common part of the attention kernels: attention.cu has the f32 kernels, attention_bf16.cu those on tensor cores. Names
 * are FlashAttention-2's (Dao 2023): m, the running maximum of a row's scores; l, the running sum of their exponentials;
 * lse = m + log l; delta = rowsum(dO ∘ O). */
#ifndef MTIL_MODELS_CUDA_ATTENTION_CUH
#define MTIL_MODELS_CUDA_ATTENTION_CUH

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

/* out, and lse unless it is NULL; then dqkv from those. Of bf16 values. */
void cuda_attend_bf16(struct cuda *cuda, const struct heads *heads, size_t batch);
status cuda_attention_gradients_bf16(struct cuda *cuda, const struct heads *heads, size_t batch, struct error *error);

#endif

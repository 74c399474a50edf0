/* What the attention kernels share: attention.cu has those in f32, attention_bf16.cu those on tensor cores. */
#ifndef MTIL_MODELS_CUDA_ATTENTION_CUH
#define MTIL_MODELS_CUDA_ATTENTION_CUH

#include "models/cuda/kernel.cuh"

#define SCALE 0.125f /* 1/√64: every head is 64 wide */

struct heads {
    size_t positions, width, count; /* count: heads a sample */
    bool causal;
    const void *qkv, *dout;
    void *out, *dqkv;
    float *log_sums, *alongs; /* [B · heads, L]: log Σ exp of a row's scores, and dout · out */
};

static __device__ inline bool sees(const struct heads *h, size_t query, size_t key)
{
    return key < h->positions && (!h->causal || key <= query);
}

/* out, and log_sums and alongs unless they are NULL; then dqkv from those. Of bf16 values. */
void cuda_attend_bf16(struct cuda *cuda, const struct heads *heads, size_t batch);
void cuda_attention_gradients_bf16(struct cuda *cuda, const struct heads *heads, size_t batch);

#endif

/* What kernels share: sums over a warp, activations, Philox. Device code only. */
#ifndef MTIL_MODELS_CUDA_KERNEL_CUH
#define MTIL_MODELS_CUDA_KERNEL_CUH

#include "models/cuda/cuda.h"

/* Shared memory whose size the launch gives. */
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

/* Every lane gets the sum (the maximum) over its warp, always in the same order. */
static __device__ inline float warp_sum(float x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    return x;
}

static __device__ inline double warp_sum(double x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    return x;
}

static __device__ inline float warp_max(float x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lanes));
    return x;
}

static __device__ inline size_t global_thread()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* The row of a kernel that gives every warp one row. */
static __device__ inline size_t global_warp()
{
    return global_thread() / WARP;
}

static __device__ inline unsigned int lane()
{
    return threadIdx.x % WARP;
}

static __device__ inline float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static __device__ inline float activated(enum activation activation, float x)
{
    switch (activation) {
    case ACTIVATION_QUICK_GELU:
        return x * sigmoid(1.702f * x);
    case ACTIVATION_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case ACTIVATION_SIGMOID:
        return sigmoid(x);
    case ACTIVATION_NONE:
        break;
    }
    return x;
}

/* dy · act'(x) */
static __device__ inline float activated_backward(enum activation activation, float x, float dy)
{
    float s;
    switch (activation) {
    case ACTIVATION_QUICK_GELU:
        s = sigmoid(1.702f * x);
        return dy * (s + 1.702f * x * s * (1.0f - s));
    case ACTIVATION_GELU:
        s = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
        return dy * (s + x * 0.39894228040143268f * expf(-0.5f * x * x));
    case ACTIVATION_RELU:
        return x > 0 ? dy : 0;
    case ACTIVATION_SIGMOID:
        s = sigmoid(x);
        return dy * s * (1.0f - s);
    case ACTIVATION_NONE:
        break;
    }
    return dy;
}

struct four_words {
    uint32_t word[4];
};

/* Philox-4x32-10 with counter (index, step, purpose · 2¹⁶ + task) under the key seed, as core/rng.c. */
static __device__ inline struct four_words philox(const struct step_state *state, uint32_t purpose, uint64_t index)
{
    uint32_t key0 = (uint32_t)state->seed, key1 = (uint32_t)(state->seed >> 32);
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = state->step,
             c3 = purpose << 16 | (state->task & 0xffffu);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

/* N(0, 1) as rng_normal: the logarithm and the cosine may differ from the host's in their last bit. */
static __device__ inline float philox_normal(const struct step_state *state, uint32_t purpose, uint64_t index)
{
    struct four_words words = philox(state, purpose, index);
    float u = (float)((words.word[0] >> 8) + 1) * 0x1p-24f, v = (float)(words.word[1] >> 8) * 0x1p-24f;
    return sqrtf(-2.0f * logf(u)) * cosf(6.2831853071795864769f * v);
}

#endif

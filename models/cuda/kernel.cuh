/* The common part of all kernels: sums over a warp, activations, random numbers. Device code only. */
#pragma once

#include <cuda_bf16.h>

#include "core/rng.h"
#include "models/cuda/cuda.h"

/* Shared memory whose size the launch gives. */
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

/* Values of either floating type. A whole launch takes the same branch. */
static __device__ inline float value_at(const void *data, enum tensor_type type, size_t at)
{
    return type == TENSOR_BF16 ? __bfloat162float(((const __nv_bfloat16 *)data)[at]) : ((const float *)data)[at];
}

static __device__ inline void set_value(void *data, enum tensor_type type, size_t at, float value)
{
    if (type == TENSOR_BF16)
        ((__nv_bfloat16 *)data)[at] = __float2bfloat16(value);
    else
        ((float *)data)[at] = value;
}

static __device__ inline float row_value(struct typed_rows x, size_t row, size_t column)
{
    return value_at(x.data, x.type, row * x.stride + column);
}

static __device__ inline void set_row_value(struct typed_rows x, size_t row, size_t column, float value)
{
    set_value(x.data, x.type, row * x.stride + column, value);
}

/* Eight neighbours at a time, 16 bytes an access, where address and stride allow it (goes_by_eight). */
enum { EIGHT = 8 };

struct alignas(16) four_floats {
    float value[4];
};

struct alignas(16) eight_halves {
    __nv_bfloat16 value[EIGHT];
};

static inline bool goes_by_eight(struct typed_rows x)
{
    return (uintptr_t)x.data % 16 == 0 && x.columns % EIGHT == 0 && x.stride % EIGHT == 0;
}

static __device__ inline void load_eight(const void *data, enum tensor_type type, size_t at, float values[EIGHT])
{
    if (type == TENSOR_BF16) {
        struct eight_halves packed = *(const struct eight_halves *)((const __nv_bfloat16 *)data + at);
        for (int i = 0; i < EIGHT; i++)
            values[i] = __bfloat162float(packed.value[i]);
        return;
    }
    for (int half = 0; half < 2; half++) {
        struct four_floats packed = *(const struct four_floats *)((const float *)data + at + 4 * half);
        for (int i = 0; i < 4; i++)
            values[4 * half + i] = packed.value[i];
    }
}

static __device__ inline void store_eight(void *data, enum tensor_type type, size_t at, const float values[EIGHT])
{
    if (type == TENSOR_BF16) {
        struct eight_halves packed;
        for (int i = 0; i < EIGHT; i++)
            packed.value[i] = __float2bfloat16(values[i]);
        *(struct eight_halves *)((__nv_bfloat16 *)data + at) = packed;
        return;
    }
    for (int half = 0; half < 2; half++) {
        struct four_floats packed;
        for (int i = 0; i < 4; i++)
            packed.value[i] = values[4 * half + i];
        *(struct four_floats *)((float *)data + at + 4 * half) = packed;
    }
}

/* Four neighbours at a time, where address and stride allow it (goes_by_four). */
enum { FOUR = 4 };

struct alignas(8) four_halves {
    __nv_bfloat16 value[FOUR];
};

static inline bool goes_by_four(struct typed_rows x)
{
    return (uintptr_t)x.data % (FOUR * tensor_type_size(x.type)) == 0 && x.columns % FOUR == 0 && x.stride % FOUR == 0;
}

static __device__ inline void load_four(const void *data, enum tensor_type type, size_t at, float values[FOUR])
{
    if (type == TENSOR_BF16) {
        struct four_halves packed = *(const struct four_halves *)((const __nv_bfloat16 *)data + at);
        for (int i = 0; i < FOUR; i++)
            values[i] = __bfloat162float(packed.value[i]);
        return;
    }
    struct four_floats packed = *(const struct four_floats *)((const float *)data + at);
    for (int i = 0; i < FOUR; i++)
        values[i] = packed.value[i];
}

static __device__ inline void store_four(void *data, enum tensor_type type, size_t at, const float values[FOUR])
{
    if (type == TENSOR_BF16) {
        struct four_halves packed;
        for (int i = 0; i < FOUR; i++)
            packed.value[i] = __float2bfloat16(values[i]);
        *(struct four_halves *)((__nv_bfloat16 *)data + at) = packed;
        return;
    }
    struct four_floats packed;
    for (int i = 0; i < FOUR; i++)
        packed.value[i] = values[i];
    *(struct four_floats *)((float *)data + at) = packed;
}

/* Every lane gets the sum (the maximum) over its warp, or over its group of neighbouring lanes, a power of two of them,
 * always in the same order. */
static __device__ inline float warp_sum(float x, int lanes = WARP)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ inline double warp_sum(double x, int lanes = WARP)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ inline float warp_max(float x, int lanes = WARP)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
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

static __device__ inline bool is_finite(float x)
{
    return fabsf(x) < INFINITY;
}

static __device__ inline float sigmoid(float x)
{
    float y = 1.0f + expf(-x);
#ifdef __CUDACC__
    asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(y)); /* within a unit in the last place, without the branch of a division */
    return y;
#else
    return 1.0f / y;
#endif
}

static __device__ inline float activated(enum activation activation, float x)
{
    switch (activation) {
    case ACTIVATION_QUICK_GELU:
        return x * sigmoid(1.702f * x);
    case ACTIVATION_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case ACTIVATION_RELU:
        return x <= 0 ? 0 : x; /* NaN stays */
    case ACTIVATION_SIGMOID:
        return sigmoid(x);
    case ACTIVATION_GELU_TANH:
        return x * sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
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
    case ACTIVATION_GELU_TANH:
        s = sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
        return dy * (s + 1.5957691216057308f * x * s * (1.0f - s) * (1.0f + 0.134145f * x * x));
    case ACTIVATION_NONE:
        break;
    }
    return dy;
}

static __device__ inline void philox_of_step(const struct step_state *state, uint32_t purpose, uint64_t index,
                                             uint32_t words[4])
{
    philox_block(state->seed, index, state->step, philox_stream(purpose, state->task), words);
}

/* A value and its index, in the order of choices: falling values, ties (and NaN) by index. */
struct candidate {
    float value;
    int32_t index;
};

static __device__ inline bool comes_before(struct candidate a, struct candidate b)
{
    return a.value > b.value || (a.value == b.value && a.index < b.index);
}

/* The first of z [n] after `last`, by the whole warp. */
static __device__ inline struct candidate next_candidate(const float *z, size_t n, struct candidate last)
{
    struct candidate best = {-INFINITY, INT32_MAX};
    for (size_t i = lane(); i < n; i += WARP) {
        struct candidate own = {isnan(z[i]) ? -INFINITY : z[i], (int32_t)i};
        if (comes_before(last, own) && comes_before(own, best))
            best = own;
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        struct candidate other = {__shfl_xor_sync(0xffffffffu, best.value, step),
                                  __shfl_xor_sync(0xffffffffu, best.index, step)};
        if (comes_before(other, best))
            best = other;
    }
    return best;
}

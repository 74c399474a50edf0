/* Tensor cores and asynchronous copies of compute capability 8.0: PTX's instructions as functions of their names, and the
 * operands of a product of 16 × 8 values over a depth of 16, bf16 with sums in f32, as ldmatrix finds them in shared memory.
 *
 *     uint32_t a[4], b[4];
 *     load_left(a, &x[0][0], LD);                                // 16 × 16 values, rows LD apart
 *     load_right(b, &y[0][0], LD);                               // 16 × 16: two operands of 8 columns each
 *     mma_m16n8k16(sums[0], a, b), mma_m16n8k16(sums[1], a, b + 2);
 *
 * All lanes of a warp call them together. Of a fragment, lane 4 · g + t holds (PTX ISA, "Matrix fragments for mma.m16n8k16"):
 *     a[0], a[1]: row g and g + 8 of columns 2t and 2t + 1; a[2], a[3]: the same of columns 2t + 8 and 2t + 9
 *     b[0], b[1]: column g of rows 2t and 2t + 1; of rows 2t + 8 and 2t + 9
 *     sums[0 … 3]: row g of columns 2t and 2t + 1; row g + 8 of them
 * Rows in shared memory begin at multiples of 16 bytes. */
#pragma once

#include "models/cuda/kernel.cuh"

#ifdef __CUDACC__
/* sums += a b */
static __device__ inline void mma_m16n8k16(float sums[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline uint32_t shared_address(const void *place)
{
    return (uint32_t)__cvta_generic_to_shared(place);
}

/* Four matrices of 8 × 8; lane i names row i mod 8 of matrix i / 8. Lane 4 · g + t gets values 2t and 2t + 1 of row g. */
static __device__ inline void ldmatrix_x4(uint32_t to[4], const __nv_bfloat16 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* The same of the transposed matrices: values 2t and 2t + 1 of column g. */
static __device__ inline void ldmatrix_x4_trans(uint32_t to[4], const __nv_bfloat16 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* Copies BYTES (4, 8 or 16, at multiples of them) to shared memory, or zeros unless `there`; done after cp_async_wait, and for
 * other threads after a barrier behind that. */
template <int BYTES> static __device__ inline void cp_async(void *shared, const void *global, bool there)
{
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                     "r"(there ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global),
                     "n"(BYTES), "r"(there ? BYTES : 0)
                     : "memory");
}

/* Ends a group of this thread's copies. */
static __device__ inline void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for this thread's groups but the latest ones. */
template <int LATEST> static __device__ inline void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
}

/* Two values as bf16, the first in the lower half. */
static __device__ inline uint32_t pack_bf16(float low, float high)
{
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}
#else
#include <tensor_on_host.h>
#endif

/* The place of 16 × 16 values that this lane names: matrices in the order of rows, then columns, or the other way round. */
static __device__ inline const __nv_bfloat16 *by_rows(const __nv_bfloat16 *x, unsigned int stride)
{
    return x + lane() % 16 * stride + lane() / 16 * 8;
}

static __device__ inline const __nv_bfloat16 *by_columns(const __nv_bfloat16 *x, unsigned int stride)
{
    return x + (lane() / 16 * 8 + lane() % 8) * stride + lane() / 8 % 2 * 8;
}

/* a = x [16, 16] */
static __device__ inline void load_left(uint32_t a[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4(a, by_rows(x, stride));
}

/* a = xᵀ */
static __device__ inline void load_left_transposed(uint32_t a[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4_trans(a, by_columns(x, stride));
}

/* b = x [16, 16]: its first 8 columns, then the others */
static __device__ inline void load_right(uint32_t b[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4_trans(b, by_rows(x, stride));
}

/* b = xᵀ */
static __device__ inline void load_right_transposed(uint32_t b[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4(b, by_columns(x, stride));
}

/* Two neighbouring results of 16 × 8 as the left operand of a product over their 16 columns. */
static __device__ inline void as_left(uint32_t a[4], const float x[2][4])
{
    for (int i = 0; i < 4; i++)
        a[i] = pack_bf16(x[i / 2][i % 2 * 2], x[i / 2][i % 2 * 2 + 1]);
}

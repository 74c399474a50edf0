/* Stands in for the PTX of models/cuda/tensor.cuh; see README.md. Every lane holds its own part of a fragment, as PTX lays
 * it out, and the lanes of a warp meet to give each other what they hold. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

static inline float half_of(std::uint32_t pair, unsigned int which)
{
    return __bfloat162float({static_cast<std::uint16_t>(pair >> 16 * which)});
}

static inline std::uint32_t pack_bf16(float low, float high)
{
    return static_cast<std::uint32_t>(__float2bfloat16(high).bits) << 16 | __float2bfloat16(low).bits;
}

static inline float ex2_approx_ftz(float x)
{
    float y = std::exp2(x);
    return y < 0x1p-126f ? 0.0f : y;
}

static inline void mma_m16n8k16(float sums[4], const std::uint32_t a[4], const std::uint32_t b[2],
                                int site = __builtin_LINE())
{
    struct operands {
        float a[16][16], b[8][16]; /* b by columns */
    } *all = static_cast<operands *>(emulation_warp_memory(sizeof *all));
    unsigned int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (unsigned int half = 0; half < 2; half++) {
        for (unsigned int i = 0; i < 4; i++)
            all->a[g + i % 2 * 8][2 * t + half + i / 2 * 8] = half_of(a[i], half);
        for (unsigned int i = 0; i < 2; i++)
            all->b[g][2 * t + half + i * 8] = half_of(b[i], half);
    }
    __syncwarp(WHOLE_WARP, site);
    for (unsigned int i = 0; i < 4; i++) {
        const float *row = all->a[g + i / 2 * 8], *column = all->b[2 * t + i % 2];
        for (unsigned int k = 0; k < 16; k++)
            sums[i] += row[k] * column[k];
    }
}

static inline void load_matrices(std::uint32_t to[4], const __nv_bfloat16 *row, bool transpose)
{
    const __nv_bfloat16 **rows = static_cast<const __nv_bfloat16 **>(emulation_warp_memory(32 * sizeof row));
    unsigned int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
        emulation_fault("ldmatrix of a row that begins at no multiple of 16 bytes");
    rows[lane] = row;
    __syncwarp();
    for (unsigned int i = 0; i < 4; i++) {
        const __nv_bfloat16 *const *matrix = rows + 8 * i;
        std::uint16_t low = transpose ? matrix[2 * t][g].bits : matrix[g][2 * t].bits,
                      high = transpose ? matrix[2 * t + 1][g].bits : matrix[g][2 * t + 1].bits;
        to[i] = static_cast<std::uint32_t>(high) << 16 | low;
    }
    __syncwarp(); /* as on a device, all have read when the instruction ends */
}

static inline void ldmatrix_x4(std::uint32_t to[4], const __nv_bfloat16 *row)
{
    load_matrices(to, row, false);
}

static inline void ldmatrix_x4_trans(std::uint32_t to[4], const __nv_bfloat16 *row)
{
    load_matrices(to, row, true);
}

template <int BYTES> static inline void cp_async(void *shared, const void *global, bool there)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "the sizes that PTX has");
    emulation_copy_later(shared, global, BYTES, there);
}

static inline void cp_async_commit()
{
    emulation_commit();
}

template <int LATEST> static inline void cp_async_wait()
{
    emulation_wait(LATEST);
}

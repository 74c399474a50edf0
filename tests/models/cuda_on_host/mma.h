/* Stands in for NVIDIA's mma.h; see README.md. A fragment's values are all with lane 0 of its warp, which does the
 * work; the other lanes' fragments hold nothing. */
#ifndef MTIL_TESTS_CUDA_ON_HOST_MMA_H
#define MTIL_TESTS_CUDA_ON_HOST_MMA_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <type_traits>

namespace nvcuda::wmma
{

struct matrix_a {
};
struct matrix_b {
};
struct accumulator {
};
struct row_major {
};
struct col_major {
};
enum layout_t { mem_row_major, mem_col_major };

constexpr int SIDE = 16;

template <typename Use, int M, int N, int K, typename T, typename Layout = row_major> struct fragment {
    static_assert(M == SIDE && N == SIDE && K == SIDE, "only 16 x 16 x 16 is emulated");
    float x[SIDE * SIDE];
};

static inline bool first_lane()
{
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32 == 0;
}

/* Where a device would fault. */
static inline void check_place(const void *place, unsigned int stride, unsigned int unit)
{
    if (reinterpret_cast<std::uintptr_t>(place) % 32 != 0 || stride % unit != 0)
        emulation_fault("a fragment whose place or stride a device would refuse");
}

template <typename Use, typename T> void fill_fragment(fragment<Use, SIDE, SIDE, SIDE, T> &to, float value)
{
    for (float &x : to.x)
        x = value;
}

template <typename Use, typename Layout>
void load_matrix_sync(fragment<Use, SIDE, SIDE, SIDE, __nv_bfloat16, Layout> &to, const __nv_bfloat16 *from,
                      unsigned int stride)
{
    check_place(from, stride, 8);
    if (first_lane())
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                to.x[i * SIDE + j] =
                    __bfloat162float(std::is_same_v<Layout, row_major> ? from[i * stride + j] : from[j * stride + i]);
}

static inline void store_matrix_sync(float *to, const fragment<accumulator, SIDE, SIDE, SIDE, float> &from,
                                     unsigned int stride, layout_t layout)
{
    check_place(to, stride, 4);
    if (first_lane())
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                to[layout == mem_row_major ? i * stride + j : j * stride + i] = from.x[i * SIDE + j];
}

template <typename LayoutA, typename LayoutB>
void mma_sync(fragment<accumulator, SIDE, SIDE, SIDE, float> &d,
              const fragment<matrix_a, SIDE, SIDE, SIDE, __nv_bfloat16, LayoutA> &a,
              const fragment<matrix_b, SIDE, SIDE, SIDE, __nv_bfloat16, LayoutB> &b,
              const fragment<accumulator, SIDE, SIDE, SIDE, float> &c)
{
    if (!first_lane())
        return;
    for (int i = 0; i < SIDE; i++) {
        float totals[SIDE];
        std::memcpy(totals, &c.x[i * SIDE], sizeof totals);
        for (int k = 0; k < SIDE; k++)
            for (int j = 0; j < SIDE; j++)
                totals[j] += a.x[i * SIDE + k] * b.x[k * SIDE + j];
        std::memcpy(&d.x[i * SIDE], totals, sizeof totals);
    }
}

} // namespace nvcuda::wmma

#endif

#include "models/cpu/vector.h"

extern const struct vector_kernels vector_kernels_baseline;
#if defined(__x86_64__)
extern const struct vector_kernels vector_kernels_avx2;
extern const struct vector_kernels vector_kernels_avx512;
#endif

const struct vector_kernels *vector_kernels_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return &vector_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &vector_kernels_avx2;
#endif
    return &vector_kernels_baseline;
}

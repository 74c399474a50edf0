#include "models/cpu/vector.h"

extern const struct vector_kernels vector_kernels_baseline;
#if defined(__x86_64__)
extern const struct vector_kernels vector_kernels_avx2;
extern const struct vector_kernels vector_kernels_avx512;
#endif

const struct vector_kernels *vector_kernels_at(size_t index)
{
    const struct vector_kernels *found[3];
    size_t count = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        found[count++] = &vector_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found[count++] = &vector_kernels_avx2;
#endif
    found[count++] = &vector_kernels_baseline;
    return index < count ? found[index] : NULL;
}

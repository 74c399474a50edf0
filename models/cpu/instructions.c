#include "models/cpu/instructions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

extern const struct vector_kernels vector_kernels_baseline;
extern const struct bf16_kernels bf16_kernels_portable;
#if defined(__x86_64__)
extern const struct vector_kernels vector_kernels_avx2, vector_kernels_avx512;
extern const struct bf16_kernels bf16_kernels_amx, bf16_kernels_avx512bf16;

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx512bf16(void)
{
    unsigned a, b, c, d;
    return has_avx512() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) != 0;
}

/* Linux gives a process the tiles' registers on request. */
static bool has_amx(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, AMX_BF16 = 22, AMX_TILE = 24 };
    unsigned a, b, c, d;
    return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> AMX_BF16 & 1) != 0 &&
           (d >> AMX_TILE & 1) != 0 && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#endif

/* Best first; "portable" is never chosen unasked. */
struct level {
    const char *name;
    const struct vector_kernels *vector;
    const struct bf16_kernels *bf16; /* NULL: it has no unit for them */
};
enum { LEVELS = 6 };

static size_t list_levels(struct level levels[LEVELS])
{
    size_t count = 0;
#if defined(__x86_64__)
    if (has_amx())
        levels[count++] = (struct level){"amx", &vector_kernels_avx512, &bf16_kernels_amx};
    if (has_avx512bf16())
        levels[count++] = (struct level){"avx512bf16", &vector_kernels_avx512, &bf16_kernels_avx512bf16};
    if (has_avx512())
        levels[count++] = (struct level){"avx512", &vector_kernels_avx512, NULL};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        levels[count++] = (struct level){"avx2", &vector_kernels_avx2, NULL};
#endif
    levels[count++] = (struct level){"baseline", &vector_kernels_baseline, NULL};
    levels[count++] = (struct level){"portable", &vector_kernels_baseline, &bf16_kernels_portable};
    return count;
}

status cpu_instructions_choose(struct cpu_instructions *instructions, struct error *error)
{
    struct level levels[LEVELS];
    const char *wanted = getenv("MTIL_ISA");
    size_t count = list_levels(levels), i = 0;
    bool limited = wanted != NULL && wanted[0] != 0;
    while (limited && i < count && strcmp(levels[i].name, wanted) != 0)
        i++;
    if (i == count)
        return error_set(error, ERROR_DEVICE,
                         "cpu backend: MTIL_ISA: expected an instruction set of this machine (%s is its best, baseline "
                         "and portable are on any), found \"%s\"",
                         levels[0].name, wanted);
    *instructions = (struct cpu_instructions){levels[i].name, levels[i].vector, levels[i].bf16, limited};
    return OK;
}

/* Each table once. */
const struct vector_kernels *vector_kernels_at(size_t index)
{
    struct level levels[LEVELS];
    size_t count = list_levels(levels), seen = 0;
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || levels[i].vector != levels[i - 1].vector) && seen++ == index)
            return levels[i].vector;
    return NULL;
}

const struct bf16_kernels *bf16_kernels_at(size_t index)
{
    struct level levels[LEVELS];
    size_t count = list_levels(levels), seen = 0;
    for (size_t i = 0; i < count; i++)
        if (levels[i].bf16 != NULL && seen++ == index)
            return levels[i].bf16;
    return NULL;
}

/* The only file that calls oneDNN. Its f32 product has the same interface in versions 2.x and 3.x; each call works on
 * one tile in one thread, since the threads are ours. */
#include <dlfcn.h>
#include <dnnl.h>
#include <stdio.h>
#include <string.h>

#include "models/cpu/cpu.h"

/* oneDNN built on OpenMP would start threads of its own; the setting is per calling thread. Other builds lack the
 * symbol. */
static void single_threaded(void)
{
    static _Thread_local bool done;
    if (done)
        return;
    void (*set_threads)(int) = NULL;
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_threads != NULL)
        set_threads(1);
    done = true;
}

void product_run(struct cpu *cpu, const struct product *p)
{
    single_threaded();
    dnnl_status_t result = dnnl_sgemm(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', (dnnl_dim_t)p->m,
                                      (dnnl_dim_t)p->n, (dnnl_dim_t)p->k, p->scale, p->a, (dnnl_dim_t)p->lda, p->b,
                                      (dnnl_dim_t)p->ldb, p->accumulate ? 1.0f : 0.0f, p->c, (dnnl_dim_t)p->ldc);
    if (result != dnnl_success)
        atomic_store(&cpu->product_failed, true);
}

status products_finish(struct cpu *cpu, struct error *error)
{
    if (!atomic_exchange(&cpu->product_failed, false))
        return OK;
    return error_set(error, ERROR_MEMORY,
                     "memory: oneDNN cannot allocate a matrix product's packed operands; lower the batch size");
}

void product_limit(const char *instructions)
{
    bool avx2 = strcmp(instructions, "avx2") == 0, avx512 = strcmp(instructions, "avx512") == 0;
    /* The later call of a second backend is refused, as the limit is set then. */
    (void)dnnl_set_max_cpu_isa(avx512 ? dnnl_cpu_isa_avx512_core : avx2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41);
}

void product_library(char *text, size_t capacity)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, capacity, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

/* In place of models/cuda/memory.cu. MTIL_CUDA_ON_HOST_KIB is the device's memory, 8 GiB if not given. */
#include <atomic>
#include <cstdlib>

#include "models/cuda/cuda.h"

static std::atomic<size_t> taken; /* by all arenas, of all threads */

static size_t memory()
{
    const char *kib = std::getenv("MTIL_CUDA_ON_HOST_KIB");
    return kib != nullptr ? (size_t)std::strtoull(kib, nullptr, 10) << 10 : (size_t)8 << 30;
}

size_t cuda_memory_left(struct backend *)
{
    return memory() > taken ? memory() - taken : 0;
}

static bool back(struct arena *arena, size_t needed)
{
    const size_t page = 4096;
    if (((const struct cuda *)arena->owner)->recording)
        return false;
    size_t more = (needed - arena->backed + page - 1) / page * page;
    arena->left = cuda_memory_left(nullptr);
    if (more > arena->left)
        return false;
    arena->backed += more;
    taken += more;
    return true;
}

status cuda_arena_create(struct backend *backend, struct arena *arena, size_t limit, const char *name,
                         struct error *error)
{
    *arena = {};
    arena->name = name;
    arena->limit = limit > 0 ? limit : (size_t)8 << 30;
    arena->base = (uint8_t *)emulation_reserve(arena->limit);
    arena->back = back;
    arena->owner = cuda_of(backend);
    return arena->base != NULL ? OK : error_set(error, ERROR_MEMORY, "no addresses for the %s arena", name);
}

void cuda_arena_destroy(struct backend *backend, struct arena *arena)
{
    cudaStreamSynchronize(cuda_of(backend)->stream);
    if (arena->base != NULL)
        emulation_free(arena->base);
    taken -= arena->backed;
    *arena = {};
}

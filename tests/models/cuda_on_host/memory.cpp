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
    uint8_t *fresh = arena->base + arena->backed;
    arena->left = cuda_memory_left(nullptr);
    if (more > arena->left)
        return false;
    emulation_check_sums("memory is mapped");
    arena->backed += more;
    taken += more;
    emulation_open();
    memset(fresh, 0xff, more);
    emulation_shut();
    return true;
}

static void fill(struct arena *arena, void *memory, size_t bytes)
{
    cudaMemsetAsync(memory, 0xff, bytes, ((const struct cuda *)arena->owner)->stream);
}

static void read(struct arena *, void *to, const void *memory, size_t bytes)
{
    emulation_open();
    memcpy(to, memory, bytes);
    emulation_shut();
}

status cuda_arena_create(struct backend *backend, struct arena *arena, size_t limit, const char *name,
                         struct error *error)
{
    *arena = {};
    arena->name = name;
    arena->limit = limit > 0 ? limit : (size_t)8 << 30;
    arena->base = (uint8_t *)emulation_reserve(arena->limit);
    arena->back = back;
    arena->fill = fill;
    arena->read = read;
    arena->owner = cuda_of(backend);
    return arena->base != NULL ? OK : error_set(error, ERROR_MEMORY, "no addresses for the %s arena", name);
}

void cuda_arena_destroy(struct backend *backend, struct arena *arena)
{
    cudaStreamSynchronize(cuda_of(backend)->stream);
    cudaStreamSynchronize(cuda_of(backend)->side.stream);
    emulation_open(); /* once for all guards */
    arena_check(arena);
    emulation_shut();
    if (arena->base != NULL)
        emulation_free(arena->base);
    taken -= arena->backed;
    *arena = {};
}

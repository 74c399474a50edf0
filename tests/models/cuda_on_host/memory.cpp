/* In place of models/cuda/memory.cu. */
#include "models/cuda/cuda.h"

static bool back(struct arena *arena, size_t needed)
{
    if (((const struct cuda *)arena->owner)->recording)
        return false;
    arena->backed = needed;
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
    *arena = {};
}

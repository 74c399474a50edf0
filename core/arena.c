#include "core/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

size_t array_size(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

static size_t default_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages / 4 * 3 * (size_t)page : (size_t)8 << 30;
}

status arena_create(struct arena *arena, size_t limit, const char *name, struct error *error)
{
    *arena = (struct arena){.name = name, .limit = limit > 0 ? limit : default_limit()};
    void *base = mmap(NULL, arena->limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return error_errno(error, errno, "memory: cannot reserve %zu MiB of addresses for the %s arena",
                           arena->limit >> 20, name);
    arena->base = base;
    return OK;
}

void *arena_take(struct arena *arena, size_t size)
{
    if (size > arena->limit - arena->used || arena->limit - arena->used - size < ALIGNMENT)
        return NULL;
    size_t end = arena->used + (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->back != NULL && end > arena->backed && !arena->back(arena, end))
        return NULL;
    uint8_t *memory = arena->base + arena->used;
    arena->used = end;
    if (arena->used > arena->highest)
        arena->highest = arena->used;
    return memory;
}

void *arena_take_zeroed(struct arena *arena, size_t size)
{
    void *memory = arena_take(arena, size);
    if (memory != NULL)
        memset(memory, 0, size);
    return memory;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->used};
}

void arena_release(struct arena *arena, struct arena_mark mark)
{
    arena->used = mark.used;
}

void arena_reset(struct arena *arena)
{
    arena->used = 0;
}

void arena_destroy(struct arena *arena)
{
    if (arena->base != NULL)
        munmap(arena->base, arena->limit);
    *arena = (struct arena){0};
}

#include "core/arena.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

/* A block begins with this, in the room of one alignment. */
struct arena_block {
    struct arena_block *next;
    size_t size; /* with this */
};

static const size_t smallest_block = (size_t)64 << 20;

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

static struct arena_block *block_create(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    struct arena_block *block = pages;
    block->size = size;
    return block;
}

status arena_create(struct arena *arena, size_t limit, const char *name, struct error *error)
{
    *arena = (struct arena){.name = name, .limit = limit > 0 ? limit : default_limit(), .offset = ALIGNMENT};
    arena->first = arena->block = block_create(smallest_block);
    return arena->first != NULL ? OK
                                : error_errno(error, errno, "memory: cannot reserve %zu MiB of addresses for the %s",
                                              smallest_block >> 20, name);
}

/* Goes on in a block with room for size bytes. Those behind the one in use that are too small make way for one with room to
 * spare, so that an arena whose needs grow has few blocks, or for one of just that size where the system gives no more. */
static bool next_block(struct arena *arena, size_t size)
{
    struct arena_block **next = &arena->block->next;
    size_t spare = arena->highest > size ? arena->highest : size, enough = size + ALIGNMENT;
    while (*next != NULL && (*next)->size < enough) {
        struct arena_block *small = *next;
        *next = small->next;
        munmap(small, small->size);
    }
    if (*next == NULL)
        *next = block_create(enough + spare > smallest_block ? enough + spare : smallest_block);
    if (*next == NULL)
        *next = block_create(enough);
    if (*next == NULL)
        return false;
    arena->block = *next;
    arena->offset = ALIGNMENT;
    return true;
}

static uint8_t *take_of_blocks(struct arena *arena, size_t size)
{
    if (size > arena->block->size - arena->offset && !next_block(arena, size))
        return NULL;
    uint8_t *memory = (uint8_t *)arena->block + arena->offset;
    arena->offset += size;
    return memory;
}

static uint8_t *take_backed(struct arena *arena, size_t size)
{
    size_t end = arena->used + size;
    return end <= arena->backed || arena->back(arena, end) ? arena->base + arena->used : NULL;
}

void *arena_take(struct arena *arena, size_t size)
{
    if (size > arena->limit - arena->used || arena->limit - arena->used - size < ALIGNMENT)
        return NULL;
    size_t whole = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint8_t *memory = (arena->back != NULL ? take_backed : take_of_blocks)(arena, whole);
    if (memory == NULL)
        return NULL;
    arena->used += whole;
    if (arena->used > arena->highest)
        arena->highest = arena->used;
    return memory;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->used, arena->block, arena->offset};
}

void arena_release(struct arena *arena, struct arena_mark mark)
{
    arena->used = mark.used;
    arena->block = mark.block;
    arena->offset = mark.offset;
}

void arena_reset(struct arena *arena)
{
    arena_release(arena, (struct arena_mark){0, arena->first, ALIGNMENT});
}

void arena_destroy(struct arena *arena)
{
    for (struct arena_block *block = arena->first, *next; block != NULL; block = next) {
        next = block->next;
        munmap(block, block->size);
    }
    *arena = (struct arena){0};
}

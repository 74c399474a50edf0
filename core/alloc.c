#include "core/alloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Other threads may be at work, so nothing is tidied up. */
void *xgiven(void *memory, size_t size)
{
    if (memory != NULL)
        return memory;
    fprintf(stderr,
            "mtil: error: the system has no memory for another %zu bytes; end other programs, or raise the limit\n",
            size);
    _exit(EXIT_FAILURE);
}

void *xmalloc(size_t size)
{
    return xgiven(malloc(size > 0 ? size : 1), size);
}

void *xcalloc(size_t count, size_t size)
{
    return xgiven(calloc(count > 0 ? count : 1, size), count * size);
}

void *xrealloc(void *memory, size_t size)
{
    return xgiven(realloc(memory, size > 0 ? size : 1), size);
}

char *xstrdup(const char *string)
{
    return xgiven(strdup(string), strlen(string) + 1);
}

char *xstrndup(const char *string, size_t size)
{
    return xgiven(strndup(string, size), size + 1);
}

status memory_blame(status result, const char *what, struct error *error)
{
    if (result != ERROR_FORMAT || errno != ENOMEM)
        return result;
    return error_set(error, ERROR_MEMORY,
                     "%s: the system has no memory to read it; end other programs, or raise the limit", what);
}

size_t array_size(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

/* The array is full at 0, 8, 16, 32, … items. */
void array_grow(void *items, size_t count, size_t size)
{
    enum { LEAST = 8 };
    void *grown;
    if (count != 0 && (count < LEAST || (count & (count - 1)) != 0))
        return;
    memcpy(&grown, items, sizeof grown);
    grown = xrealloc(grown, array_size(count == 0 ? LEAST : 2 * count, size));
    memcpy(items, &grown, sizeof grown);
}

int array_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* --- Arenas --- */

enum { ALIGNMENT = 64 };

/* A block begins with this, in the room of one alignment. */
struct arena_block {
    struct arena_block *next;
    size_t size; /* with this */
};

static const size_t smallest_block = (size_t)64 << 20;

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

static void *take(struct arena *arena, size_t size)
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

/* --- Guards. A device's are kept after their release until something else is taken in their place: a step that takes the same
 * again finds its canaries there, and a recording of it needs none of its own. --- */

struct arena_guard {
    size_t start;    /* what was used of the arena before */
    uint8_t *memory; /* with a canary of ALIGNMENT bytes before it, and another one from its end on */
    size_t size;
    char name[48];
};

static bool guarded(void)
{
    static atomic_int known; /* 0: not yet; 1: no; 2: yes */
    if (known == 0) {
        const char *guard = getenv("MTIL_GUARD");
        known = guard != NULL && strcmp(guard, "1") == 0 ? 2 : 1;
    }
    return known == 2;
}

static void fill(struct arena *arena, void *memory, size_t size)
{
    if (arena->fill != NULL)
        arena->fill(arena, memory, size);
    else
        memset(memory, 0xff, size);
}

static void check_canary(struct arena *arena, const struct arena_guard *guard, const uint8_t *canary, const char *where)
{
    uint8_t bytes[ALIGNMENT];
    memset(bytes, 0xff, sizeof bytes); /* what cannot be read is not reported */
    if (arena->read != NULL)
        arena->read(arena, bytes, canary, sizeof bytes);
    else
        memcpy(bytes, canary, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 0xff) {
            fprintf(stderr, "mtil: memory: \"%s\" of %zu bytes in the %s arena was overrun: a byte %s it was written\n",
                    guard->name, guard->size, arena->name, where);
            abort();
        }
}

/* Looks at the guards from number `first` on, and forgets them. */
static void check_guards(struct arena *arena, size_t first)
{
    for (size_t i = first; i < arena->guards_count; i++) {
        const struct arena_guard *guard = &arena->guards[i];
        check_canary(arena, guard, guard->memory - ALIGNMENT, "before");
        check_canary(arena, guard, guard->memory + guard->size, "behind");
    }
    arena->guards_count = first < arena->guards_count ? first : arena->guards_count;
}

void arena_check(struct arena *arena)
{
    check_guards(arena, 0);
    free(arena->guards);
    arena->guards = NULL;
}

/* The number of guards of what was taken before `used` bytes were. */
static size_t guards_before(const struct arena *arena, size_t used)
{
    size_t count = arena->guards_count;
    while (count > 0 && arena->guards[count - 1].start >= used)
        count--;
    return count;
}

void arena_forget(struct arena *arena)
{
    arena->guards_count = guards_before(arena, arena->used);
}

static void *take_guarded(struct arena *arena, size_t size, const char *name)
{
    size_t highest = arena->highest, start = arena->used, at = guards_before(arena, start);
    uint8_t *taken = size <= SIZE_MAX - 3 * ALIGNMENT ? take(arena, size + 2 * ALIGNMENT) : NULL;
    if (taken == NULL)
        return NULL;
    uint8_t *memory = taken + ALIGNMENT;
    const struct arena_guard *old = at < arena->guards_count ? &arena->guards[at] : NULL;
    if (old != NULL && old->start == start && old->memory == memory && old->size == size)
        return memory;
    arena->guards_count = at;
    GROW(arena->guards, at);
    arena->guards[arena->guards_count++] = (struct arena_guard){.start = start, .memory = memory, .size = size};
    snprintf(arena->guards[at].name, sizeof arena->guards->name, "%s", name);
    if (arena->used > highest)
        fill(arena, memory, size);
    fill(arena, taken, ALIGNMENT);
    fill(arena, memory + size, arena->used - start - size - ALIGNMENT);
    return memory;
}

void *arena_take_named(struct arena *arena, size_t size, const char *name)
{
    return guarded() ? take_guarded(arena, size, name) : take(arena, size);
}

void *arena_take(struct arena *arena, size_t size)
{
    return arena_take_named(arena, size, arena->name);
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->used, arena->block, arena->offset};
}

void arena_release(struct arena *arena, struct arena_mark mark)
{
    if (arena->back == NULL)
        check_guards(arena, guards_before(arena, mark.used));
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
    arena_check(arena);
    for (struct arena_block *block = arena->first, *next; block != NULL; block = next) {
        next = block->next;
        munmap(block, block->size);
    }
    *arena = (struct arena){0};
}

/* --- What is left --- */

enum { PATH_MOST = 4096 };

/* The number behind a word at the beginning of a line; word "": the first line is the number itself. */
static bool read_number(const char *path, const char *word, uint64_t *number)
{
    FILE *file = fopen(path, "re");
    char line[256];
    bool found = false;
    size_t length = strlen(word);
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *end, *digits = line + length;
        if (strncmp(line, word, length) != 0)
            continue;
        *number = strtoull(digits, &end, 10);
        found = end != digits; /* "max" is none */
        if (length == 0)
            break;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Where a version of control groups keeps its numbers. */
struct group_files {
    const char *controllers; /* of its line in /proc/self/cgroup */
    const char *folder, *limit, *usage;
    const char *files[2]; /* lines of memory.stat with copies of files, which can be dropped: read once, and again */
};
static const struct group_files versions[] = {
    {"", "sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}},
    {"memory",
     "sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file ", "total_active_file "}}};

static bool read_of_group(const char *root, const struct group_files *version, const char *group, const char *name,
                          const char *word, uint64_t *number)
{
    char path[2 * PATH_MOST];
    snprintf(path, sizeof path, "%s/%s%s/%s", root, version->folder, group, name);
    return read_number(path, word, number);
}

/* What the group and those around it leave, at most `least`. A container sees its own group at the top alone. */
static uint64_t left_of_groups(const char *root, const struct group_files *version, char *group, uint64_t least)
{
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        uint64_t limit, usage, once = 0, again = 0;
        *end = 0;
        if (!read_of_group(root, version, group, version->limit, "", &limit) ||
            !read_of_group(root, version, group, version->usage, "", &usage))
            continue;
        read_of_group(root, version, group, "memory.stat", version->files[0], &once);
        read_of_group(root, version, group, "memory.stat", version->files[1], &again);
        uint64_t files = once + again, used = usage > files ? usage - files : 0, left = limit > used ? limit - used : 0;
        least = left < least ? left : least;
    }
    return least;
}

uint64_t memory_peak_of(pid_t process)
{
    char path[PATH_MOST];
    uint64_t kilobytes;
    snprintf(path, sizeof path, "/proc/%jd/status", (intmax_t)process);
    return read_number(path, "VmHWM:", &kilobytes) ? kilobytes << 10 : 0;
}

uint64_t memory_available(const char *root)
{
    char path[PATH_MOST], line[PATH_MOST];
    uint64_t kilobytes, bytes;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_number(path, "MemAvailable:", &kilobytes))
        return 0;
    bytes = kilobytes << 10;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) { /* "4:memory:/group", or "0::/group" */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = 0;
        for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
            if (strcmp(controllers + 1, versions[v].controllers) == 0)
                bytes = left_of_groups(root, &versions[v], group, bytes);
    }
    if (file != NULL)
        fclose(file);
    return bytes > 0 ? bytes : 1;
}

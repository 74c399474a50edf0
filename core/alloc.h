/* Memory: allocations that do not fail, arrays that grow, arenas, and how much is left.
 *
 *     GROW(list->names, list->count);                               // an array: NULL at first, freed with free
 *     list->names[list->count++] = xstrdup(name);
 *
 *     struct arena step;                                            // taken in order and released all at once
 *     TRY(arena_create(&step, (size_t)64 << 30, "step", error));    // a limit; addresses are reserved as they are needed
 *     float *rows = arena_take(&step, array_size(count, sizeof *rows)); // 64-byte aligned; NULL when the limit is reached
 *     struct arena_mark mark = arena_mark(&step);  ...  arena_release(&step, mark);
 *     arena_reset(&step);                                           // the next step uses the same pages again
 *
 * Where the system gives no more, the program ends with a message and exit status 1. A run goes on from its resume file to
 * the same bits, so a path back from every small allocation would buy nothing. Arenas, images and whatever has a size that
 * a file names are refused with ERROR_MEMORY instead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/status.h"

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *memory, size_t size);
char *xstrdup(const char *string);
char *xstrndup(const char *string, size_t size);
void *xgiven(void *memory, size_t size); /* memory of size bytes from a library; NULL ends the program */

/* Libraries report a shortage of memory each in its own way, and many as a damaged file. Where errno, which was 0 before, says
 * that memory was short, the ERROR_FORMAT of reading `what` becomes ERROR_MEMORY; any other result stays as it is. */
status memory_blame(status result, const char *what, struct error *error);

/* count · size, or SIZE_MAX on overflow, which an arena and malloc refuse. */
size_t array_size(size_t count, size_t size);

/* Grows the array so that item `count` fits. Its capacity follows from its count and is not stored. */
#define GROW(items, count) array_grow(&(items), count, sizeof *(items))
void array_grow(void *items, size_t count,
                size_t size); /* items: the address of the array's pointer, whatever its type */

/* The order of texts, for qsort. */
int array_by_text(const void *a, const void *b);

/* --- Arenas --- */

struct arena_block; /* addresses in a row */
struct arena_guard;

/* Pages become resident when first touched and stay, so a training step allocates nothing after the first one; the
 * high-water mark is the memory needed. An arena is used from one thread at a time. */
struct arena {
    const char *name; /* for messages: "model", "task", "step" */
    size_t limit, used, highest;
    struct arena_block *first, *block; /* in the order of their use; the one in use */
    size_t offset;                     /* taken of it */
    /* Set for memory that the system does not back on first touch, such as a device's; otherwise NULL and 0. */
    uint8_t *base;                                    /* of limit bytes of addresses, instead of blocks */
    bool (*back)(struct arena *arena, size_t needed); /* makes the first `needed` bytes usable; false: out of memory */
    void *owner;                                      /* context of back */
    size_t backed, left;                              /* usable bytes; bytes available when `back` failed */
    /* Sets bytes to 0xff after the queued work, or reads them once it is done; NULL: memset and memcpy. */
    void (*fill)(struct arena *arena, void *memory, size_t size);
    void (*read)(struct arena *arena, void *to, const void *memory, size_t size);
    struct arena_guard *guards; /* of what was taken, where memory is guarded */
    size_t guards_count;
};

struct arena_mark {
    size_t used;
    struct arena_block *block;
    size_t offset;
};

/* limit: in bytes; 0: three quarters of the machine's memory. */
status arena_create(struct arena *arena, size_t limit, const char *name, struct error *error);

/* size bytes, 64-byte aligned, of unspecified content; NULL when the arena's limit is reached, or the system gives no more. name:
 * for the message of a guard; copied. */
void *arena_take_named(struct arena *arena, size_t size, const char *name);
void *arena_take(struct arena *arena, size_t size); /* a guard has the arena's name */

/* With MTIL_GUARD=1 in the environment, as tests have it, memory is guarded: fresh memory is NaN, and so are canaries on both sides
 * of whatever is taken. Canaries are looked at when host memory is released and when memory of a device is destroyed, whose
 * backend calls arena_check; an overrun is named and ends the program. */
void arena_check(struct arena *arena);
void arena_forget(struct arena *arena); /* drops the guards of released memory, before it is divided anew */

struct arena_mark arena_mark(const struct arena *arena);
void arena_release(struct arena *arena, struct arena_mark mark); /* releases everything taken since mark */
void arena_reset(struct arena *arena);
void arena_destroy(struct arena *arena);

/* Bytes that are free or hold no more than copies of files, within the limits of the process's control groups (containers and
 * batch systems set them; versions 1 and 2). 0: unknown, and at least 1 otherwise. root: the folder with proc and sys, "" for
 * the machine's own. */
uint64_t memory_available(const char *root);

/* The most bytes that a process has had in memory so far, without its children; 0: unknown. */
uint64_t memory_peak_of(pid_t process);

/* Memory that is taken in order and released all at once.
 *
 *     struct arena step;
 *     TRY(arena_create(&step, (size_t)64 << 30, "step", error));   // a limit; addresses are reserved as they are needed
 *     float *rows = arena_take(&step, count * sizeof *rows);        // 64-byte aligned; NULL when the limit is reached
 *     struct arena_mark mark = arena_mark(&step);  ...  arena_release(&step, mark);
 *     arena_reset(&step);                                           // the next step uses the same pages again
 *
 * Pages become resident when first touched and stay, so a training step allocates nothing after the first one; the
 * high-water mark is the memory needed. An arena is used from one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct arena_block; /* addresses in a row */

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
};

struct arena_mark {
    size_t used;
    struct arena_block *block;
    size_t offset;
};

/* limit: in bytes; 0: three quarters of the machine's memory. */
status arena_create(struct arena *arena, size_t limit, const char *name, struct error *error);

/* size bytes, 64-byte aligned, of unspecified content; NULL when the arena's limit is reached, or the system gives no more. */
void *arena_take(struct arena *arena, size_t size);

struct arena_mark arena_mark(const struct arena *arena);
void arena_release(struct arena *arena, struct arena_mark mark); /* releases everything taken since mark */
void arena_reset(struct arena *arena);
void arena_destroy(struct arena *arena);

/* count · size, or SIZE_MAX on overflow, which an arena and malloc refuse. */
size_t array_size(size_t count, size_t size);

/* Temporary names for files being written, beside the target: "TARGET.tmp-mtil-" and eight hexadecimal digits.
 *
 *     struct temporary temporary;
 *     TRY(temporary_create_file(&temporary, "out/weights.safetensors", error));
 *     … write(temporary.lock, …) …
 *     rename(temporary.path, "out/weights.safetensors");
 *     temporary_release(&temporary);
 *
 * The writer holds a lock, which the kernel releases when the process ends. So a file with such a name that can be
 * locked is a leftover, even from another machine that shares the folder or from a container with its own process ids.
 * On a file system without locks nothing is removed.
 */
#pragma once

#include "core/status.h"

struct temporary {
    char *path; /* NULL: none */
    int lock;   /* descriptor: of the file, or of the one that locks a folder */
};

status temporary_create_file(struct temporary *temporary, const char *target, struct error *error);
/* A folder that is empty except for the lock, TEMPORARY_LOCK; the target is made inside and moved out. */
status temporary_create_folder(struct temporary *temporary, const char *target, struct error *error);

#define TEMPORARY_LOCK "mtil.lock"

void temporary_release(struct temporary *temporary); /* after the file was renamed to its target; may be called twice */
void temporary_remove(struct temporary *temporary);  /* with its contents; may be called twice and after release */

/* Removes the leftovers in a folder that belong to this user, as far as possible. */
void temporary_clear(const char *folder);
/* The same in all folders below. */
void temporary_clear_below(const char *folder);

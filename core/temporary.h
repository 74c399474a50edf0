/* Names for what is being written, beside its target: "TARGET.tmp-mtil-" and eight hexadecimal digits.
 *
 *     struct temporary temporary;
 *     TRY(temporary_create_file(&temporary, "out/weights.safetensors", error));
 *     … write(temporary.lock, …) …
 *     rename(temporary.path, "out/weights.safetensors");
 *     temporary_release(&temporary);
 *
 * The writer holds it locked. The kernel gives a lock up when its process ends, however it ends; so what has such a name
 * and can be locked is a left-over, also of another machine that shares the folder or of a container with process numbers
 * of its own. Where a file system has no locks, nothing can be told, and nothing is removed.
 */
#ifndef MTIL_CORE_TEMPORARY_H
#define MTIL_CORE_TEMPORARY_H

#include "core/status.h"

struct temporary {
    char *path; /* NULL: none */
    int lock;   /* descriptor: of the file, or of the one that locks a folder */
};

status temporary_create_file(struct temporary *temporary, const char *target, struct error *error);
/* An empty folder but for the lock, TEMPORARY_LOCK; what is to have the target's name is made inside and moved out. */
status temporary_create_folder(struct temporary *temporary, const char *target, struct error *error);

#define TEMPORARY_LOCK "mtil.lock"

void temporary_release(struct temporary *temporary); /* of a file that has its target's name now; harmless twice */
void temporary_remove(struct temporary *temporary);  /* with all that is in it; harmless twice and after release */

/* Removes the left-overs in a folder, as far as it can. */
void temporary_clear(const char *folder);
/* And in all folders below. */
void temporary_clear_below(const char *folder);

#endif

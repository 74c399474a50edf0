/* Whether files that are held open are still those that their paths lead to: what is written to a file that was deleted
 * or replaced is lost, and neither the kernel nor SQLite reports it.
 *
 *     struct presence file = {.path = path};
 *     TRY(presence_check(&file, error));        // the first time: remembers the file, if there is one
 *     TRY(presence_check(&file, error));        // ERROR_IO when it was deleted, renamed or replaced since
 */
#ifndef MTIL_RESULTS_STORE_PRESENCE_H
#define MTIL_RESULTS_STORE_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "core/status.h"

struct presence {
    char *path; /* not touched here */
    dev_t device;
    ino_t inode;
    off_t size; /* when last looked at, like the next */
    struct timespec changed;
    bool seen;
};

status presence_check(struct presence *file, struct error *error);

/* Of a descriptor that is open already. */
status presence_check_descriptor(int descriptor, const char *path, struct error *error);

#endif

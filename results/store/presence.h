/* Checks that open files are still the files at their paths: writes to a file that was deleted or replaced are lost,
 * and neither the kernel nor SQLite reports it.
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
    char *path; /* the caller's */
    dev_t device;
    ino_t inode;
    off_t size; /* at the last check, like `changed` */
    struct timespec changed;
    bool seen;
};

status presence_check(struct presence *file, struct error *error);

/* Compares an open descriptor with the file at path. */
status presence_check_descriptor(int descriptor, const char *path, struct error *error);

#endif

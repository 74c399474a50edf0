/* Numbered locks between processes, kept in a small file beside the database.
 *
 *     struct lock_file locks;
 *     TRY(lock_file_open(&locks, "/data/results.sqlite", true, error));      // /data/results.sqlite-lock
 *     bool taken;
 *     TRY(lock_take(&locks, run, 0, &taken, error));                  // 0: do not wait
 *     lock_give(&locks, run);
 *     lock_file_close(&locks);                                        // gives up all
 *
 * A lock is one byte of the file, held by the open file (fcntl F_OFD_SETLK): the kernel releases it when its process
 * ends in any way, and two stores in one process exclude each other, too. The database file itself cannot serve:
 * closing a second descriptor of it would drop SQLite's own locks. The content of the file belongs to live.c.
 */
#ifndef MTIL_RESULTS_STORE_LOCK_H
#define MTIL_RESULTS_STORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

struct stop; /* core/stop.h */

struct lock_file {
    int descriptor; /* −1: not open */
    char *path;
    const struct stop *stop; /* ends waiting; may be NULL */
};

/* A reader creates nothing, and a missing file leaves its locks not open. */
status lock_file_open(struct lock_file *locks, const char *database_path, bool writable, struct error *error);
void lock_file_close(struct lock_file *locks); /* harmless when not open */

/* Waits up to patience milliseconds, or until a request to stop; *taken is whether the lock is held. number ≥ 0; taking
 * a lock again changes nothing. */
status lock_take(struct lock_file *locks, int64_t number, int patience, bool *taken, struct error *error);
void lock_give(struct lock_file *locks, int64_t number);

/* Whether another process or store holds it, as far as the file system reports it. */
bool lock_is_taken(const struct lock_file *locks, int64_t number);

#endif

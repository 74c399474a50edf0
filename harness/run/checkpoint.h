/* The resume file of a run: written after the database has the rows that belong to it, read when the same run starts
 * again.
 *
 *     TRY(checkpoint_save(run, selector, path, &(struct checkpoint_place){.task = 3, .iteration = 40}, error));
 *     TRY(checkpoint_load(run, selector, path, &place, &found, error));
 */
#ifndef MTIL_HARNESS_RUN_CHECKPOINT_H
#define MTIL_HARNESS_RUN_CHECKPOINT_H

#include "harness/run/run.h"
#include "harness/selectors/selector.h"

/* `iteration` iterations of `task` are done; 0: the task has not begun, everything before it is done and evaluated. A file
 * behind the last task has no state. */
struct checkpoint_place {
    size_t task, iteration;
    int64_t rows; /* digest of the database's rows at this point: store_digest_rows */
};

/* A copy in the host's memory of all that a resume file has. selector may be NULL. */
struct checkpoint_snapshot;
status checkpoint_take(struct checkpoint_snapshot **snapshot, const struct run *run, const struct selector *selector,
                       const struct checkpoint_place *place, struct error *error);
/* From any thread; the run may have changed. */
status checkpoint_write(const struct checkpoint_snapshot *snapshot, const char *path, struct error *error);
void checkpoint_snapshot_free(struct checkpoint_snapshot *snapshot); /* NULL is allowed */

/* Takes, writes and frees one. */
status checkpoint_save(const struct run *run, const struct selector *selector, const char *path,
                       const struct checkpoint_place *place, struct error *error);

/* *found is false when there is no file. A file of another suite, seed or program version, or a damaged one, is an
 * error; nothing of it is used then. */
status checkpoint_load(struct run *run, struct selector *selector, const char *path, struct checkpoint_place *place,
                       bool *found, struct error *error);

/* Removes the file if it states that every task is done, as after a kill between the last row and the file's removal.
 * The file of an unfinished run, recorded in another database, stays. */
void checkpoint_remove_finished(const struct run *run, const char *path);

#endif

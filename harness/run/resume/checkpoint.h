/* The resume file of a run: written after the database has the rows that belong to it, read when the same run starts
 * again.
 *
 *     TRY(checkpoint_save(run, selector, path, &(struct checkpoint_place){.task = 3, .iteration = 40}, error));
 *     TRY(checkpoint_load(run, selector, path, &place, &found, error));
 *     TRY(checkpoint_writer_save(&writer, run, selector, path, &place, error));       // the run may go on
 *     TRY(checkpoint_writer_check(&writer, error));                                   // now and then
 *     TRY(checkpoint_writer_finish(&writer, error));                                  // the file is there
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "harness/run/run.h"
#include "harness/selectors/selector.h"

/* `iteration` iterations of `task` are done; 0: the task has not begun, everything before it is done and evaluated. A file
 * behind the last task has no state, unless longer runs go on from it. */
struct checkpoint_place {
    size_t task, iteration;
    int64_t rows; /* digest of the database's rows at this point: store_digest_rows */
    bool lasts;   /* to save: also behind the last task */
};

/* Writes the file. selector may be NULL. */
status checkpoint_save(const struct run *run, const struct selector *selector, const char *path,
                       const struct checkpoint_place *place, struct error *error);

/* Writes the file beside the training: the state is copied to the host's memory at once, and a thread writes the
 * copy. Zero-initialised, nothing is being written. It must not move during a write. */
struct checkpoint_writer {
    pthread_t thread;
    bool running;      /* the thread has to be joined */
    atomic_bool ended; /* result is final */
    struct checkpoint_snapshot *snapshot;
    const char *path; /* borrowed until checkpoint_writer_finish */
    status result;
    struct error error;
};

/* Waits for the save before it. If that failed, this call fails with its error and saves nothing. */
status checkpoint_writer_save(struct checkpoint_writer *writer, const struct run *run, const struct selector *selector,
                              const char *path, const struct checkpoint_place *place, struct error *error);

/* The failure of a save that has ended; never waits. */
status checkpoint_writer_check(struct checkpoint_writer *writer, struct error *error);

/* Waits until everything is on the disk; the failure of the last save. May be called again. */
status checkpoint_writer_finish(struct checkpoint_writer *writer, struct error *error);

/* *found is false when there is no file. A file of another suite, seed or program version, or a damaged one, is an
 * error; nothing of it is used then. */
status checkpoint_load(struct run *run, struct selector *selector, const char *path, struct checkpoint_place *place,
                       bool *found, struct error *error);

/* Reads the state of a run of the first `tasks` tasks, which identity identifies. ERROR_FORMAT where something in it, but for what
 * each task has of its own, depends on the number of tasks. */
status checkpoint_load_shorter(struct run *run, struct selector *selector, const char *path, const char *identity,
                               size_t tasks, struct checkpoint_place *place, struct error *error);

/* Removes the file if it states that every task is done, as after a kill between the last row and the file's removal.
 * The file of an unfinished run, recorded in another database, stays. */
void checkpoint_remove_finished(const struct run *run, const char *path);

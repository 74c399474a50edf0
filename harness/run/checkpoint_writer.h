/* Writes the resume file beside the training: what is to be saved is copied to the host's memory at once, and a thread
 * writes the copy. At most one copy exists: a save waits for the one before it.
 *
 *     TRY(checkpoint_writer_save(&writer, run, selector, path, &place, error));   // the run may go on
 *     TRY(checkpoint_writer_check(&writer, error));                                      // now and then
 *     TRY(checkpoint_writer_finish(&writer, error));                                     // the file is there
 */
#ifndef MTIL_HARNESS_RUN_CHECKPOINT_WRITER_H
#define MTIL_HARNESS_RUN_CHECKPOINT_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "harness/run/checkpoint.h"

/* Zero-initialized: nothing is being written. It must not move while something is. */
struct checkpoint_writer {
    pthread_t thread;
    bool running;      /* the thread has to be joined */
    atomic_bool ended; /* result is final */
    struct checkpoint_snapshot *snapshot;
    const char *path; /* borrowed until checkpoint_writer_finish */
    status result;
    struct error error;
};

/* Fails as the save before it has failed, and then saves nothing. */
status checkpoint_writer_save(struct checkpoint_writer *writer, const struct run *run, const struct selector *selector,
                              const char *path, const struct checkpoint_place *place, struct error *error);

/* The failure of a save that has ended; never waits. */
status checkpoint_writer_check(struct checkpoint_writer *writer, struct error *error);

/* Waits until everything is on the disk; the failure of the last save. May be called again. */
status checkpoint_writer_finish(struct checkpoint_writer *writer, struct error *error);

#endif

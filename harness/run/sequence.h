/* A run from the first task to the last: train, freeze, evaluate, record, checkpoint; and resuming it.
 *
 *     struct sequence sequence = {.run = run, .store = store, .progress = progress, .stop = stop};
 *     TRY(sequence_run(&sequence, error));
 */
#pragma once

#include "harness/run/record/record.h"

struct sequence {
    struct run *run;
    struct store *store;
    struct progress *progress;
    const struct stop *stop;
    bool extends;            /* it goes on from a finished run of its first tasks (resume/extension.h) */
    double opening_seconds;  /* of the run, for the note on where the time went */
    int64_t id;              /* out: its row in the database */
    bool finished_before;    /* out: nothing had to be done */
    double training_seconds; /* out: of the iterations of this call; the next field counts them */
    size_t iterations;
};

/* Executes the run of the suite and seed. A finished run is left as it is; one that was stopped, failed
 * or died is resumed from its resume file. When stopped (ERROR_STOPPED), everything up to the last iteration is on
 * disk. */
status sequence_run(struct sequence *sequence, struct error *error);

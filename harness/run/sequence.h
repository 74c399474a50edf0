/* A run from the first task to the last: train, freeze, evaluate, record, checkpoint; and going on where it stopped.
 *
 *     struct sequence sequence = {.experiment = e, .store = store, .progress = progress, .stop = stop};
 *     TRY(sequence_run(&sequence, error));
 */
#ifndef MTIL_HARNESS_RUN_SEQUENCE_H
#define MTIL_HARNESS_RUN_SEQUENCE_H

#include "harness/run/checkpoint.h"
#include "harness/run/recorder.h"

struct sequence {
    struct experiment *experiment;
    struct store *store;
    struct progress *progress;
    const struct stop *stop;
    int64_t run;             /* out: the row in the database */
    bool finished_before;    /* out: nothing had to be done */
    double training_seconds; /* out: of the iterations of this call, which are counted beside it */
    size_t iterations;
};

/* The run of the experiment's suite and seed. A finished one is left alone; one that was stopped, failed or died
 * goes on from its resume file. When it is stopped (ERROR_STOPPED) everything up to the last iteration is on disk. */
status sequence_run(struct sequence *sequence, struct error *error);

#endif

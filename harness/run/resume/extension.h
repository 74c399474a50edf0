/* A finished run goes on with more tasks: data.order [a, b] was run with run.checkpoints: states, and [a, b, c] trains c alone,
 * with the rows and weights of a run that was given all three at once.
 *
 *     struct extension extension;
 *     TRY(extension_find(&extension, store, run, &inputs, error));
 *     … extension.run, extension.tasks …
 *     free(extension.folder);
 *
 * The rows of the shorter run are copied, the further tasks are tested with its state after each of its tasks, and the last state
 * is trained on.
 */
#pragma once

#include "harness/run/identity/inputs.h"

struct extension {
    int64_t run;            /* the finished run of the same settings, seed and inputs; 0: none */
    size_t tasks;           /* that it has */
    char hash[DIGEST_SIZE]; /* its identity */
    char *folder;           /* of its files */
};

/* The one with the most tasks. ERROR_ARGUMENT where there is none, where its states are not there, and where what the run
 * computes for its first tasks depends on how many there are. The caller frees the folder, after a failure too. */
status extension_find(struct extension *extension, struct store *store, const struct run *run,
                      const struct inputs *inputs, struct error *error);

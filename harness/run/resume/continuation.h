/* Decides whether an unfinished run whose inputs have changed can be resumed.
 *
 *     struct continuation continuation;
 *     TRY(continuation_choose(&continuation, store, run, &inputs, error));
 *     … continuation.run …
 *
 * An accuracy matrix is never computed from two versions of a file. Other contents at another path make another run;
 * changed contents at the same path are an error, unless no stored result depends on them.
 */
#pragma once

#include "harness/run/identity/inputs.h"

struct continuation {
    int64_t run; /* to resume or restart with the changed inputs; 0: the run of exactly these inputs, new or old */
    enum run_claim claim;
    bool images_changed;      /* resumed although training images of tasks that had not begun changed */
    char before[DIGEST_SIZE]; /* its previous hash */
};

/* ERROR_FORMAT, with the change and the remedy, when the run can neither be resumed nor counts as another one. Warns
 * when a run is resumed with changed images. */
status continuation_choose(struct continuation *continuation, struct store *store, const struct run *run,
                           const struct inputs *inputs, struct error *error);

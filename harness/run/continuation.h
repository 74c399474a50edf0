/* Whether a run that did not end goes on although what it is computed from has changed since.
 *
 *     struct continuation continuation;
 *     TRY(continuation_choose(&continuation, store, experiment, &inputs, error));
 *     … continuation.run …
 *     continuation_free(&continuation);
 *
 * One matrix is never computed from two versions of a file. Contents at other paths make another run; contents that
 * changed at the same path are a mistake, which is told, unless nothing that is kept has read them.
 */
#ifndef MTIL_HARNESS_RUN_CONTINUATION_H
#define MTIL_HARNESS_RUN_CONTINUATION_H

#include "harness/run/inputs.h"

struct continuation {
    int64_t run; /* that goes on, or begins anew, with the changed inputs; 0: the run of these inputs, old or new */
    enum run_claim claim;
    bool mended;              /* it goes on: training images of tasks that were not begun have changed */
    char before[DIGEST_SIZE]; /* its hash until now */
};

/* ERROR_FORMAT, with what has changed and what to do, when a run can neither go on nor is another one. Warns of what goes
 * on with other images. */
status continuation_choose(struct continuation *continuation, struct store *store, const struct experiment *experiment,
                           const struct inputs *inputs, struct error *error);

#endif

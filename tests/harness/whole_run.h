/* A small run from its first iteration to its last test, with its rows and files.
 *
 *     must(whole_run(&run, "a.db", NULL));
 *     char *path = whole_run_weights(&run);              // model.weights of another run
 *     float *features = whole_run_features(&run);
 *     expect_stop_unseen(&run, overrides, 16);
 */
#pragma once

#include "tests/harness/small_run.h"

/* The rest of the run's experiment, with its rows in that file of its folder. spy: watched, and its request to stop
 * heeded; NULL: nobody watches. */
status whole_run(struct small_run *run, const char *database, struct backend_spy *spy);

/* The file of weights that it leaves; the caller frees. */
char *whole_run_weights(const struct small_run *run);

/* Of the test images of the first task, as the model is; the caller frees. */
float *whole_run_features(const struct small_run *run);

/* A run of the suite with these overrides, stopped at an update and resumed, leaves the same bytes of weights as one
 * that was not. */
void expect_stop_unseen(struct small_run *run, const char *const *overrides, size_t update);

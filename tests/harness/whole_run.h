/* A small run from its first iteration to its last test, with its rows and files.
 *
 *     must(whole_run(run, "a.db", NULL));
 *     expect_number(run, "a.db", "SELECT count(*) FROM evaluations", 12);
 *     assert_int_equal(whole_run_faults(run, "a.db", whole_run_cells), 0);
 *     char *path = whole_run_weights(run);              // model.weights of another run
 *     float *features = whole_run_features(run);
 *     expect_stop_unseen(run, overrides, 16);
 */
#pragma once

#include "harness/run/sequence.h"
#include "tests/harness/small_run.h"

/* The rest of the run's experiment, with its rows in that file of its folder. spy: watched, and its request to stop
 * heeded; NULL: nobody watches. */
status whole_run(struct small_run *run, const char *database, struct backend_spy *spy);
extern struct sequence whole_run_sequence; /* of the last one */

/* The first cell of an answer of the database, as text. */
char *whole_run_text(const struct small_run *run, const char *database, const char *sql);
void expect_number(const struct small_run *run, const char *database, const char *sql, int64_t expected);
void expect_text(const struct small_run *run, const char *database, const char *sql, const char *expected);
void remove_database(const struct small_run *run, const char *database);

/* What verify finds in it, where these are the cells that a method has: those of the method, or of none but "trained". */
size_t whole_run_faults(const struct small_run *run, const char *database, const char *(*cells)(const char *method));
const char *whole_run_cells(const char *method);

/* A file in the run's folder, and that of its weights. */
char *whole_run_file(const struct small_run *run, const char *name);
char *whole_run_weights(const struct small_run *run);

/* Of the test images of the first task, as the model is. */
float *whole_run_features(struct small_run *run);

/* All predictions, losses and files of the only run, as text. */
char *whole_run_results(const struct small_run *run, const char *database);

/* A run of the suite with these overrides that the spy stops and that is resumed has these results; and one that is stopped at an
 * update has those of one that is not. */
void expect_resumed(struct small_run *run, const char *const *overrides, struct backend_spy spy, const char *expected);
void expect_stop_unseen(struct small_run *run, const char *const *overrides, size_t update);

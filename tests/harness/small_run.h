/* An experiment small enough for a test: a random CLIP, its vocabulary and three tasks of the `toy` dataset.
 *
 *     struct small_run run;
 *     small_run_open(&run, 1, (const char *const[]){"adapter.experts=6", NULL});       // overrides of the suite
 *     … run.experiment, small_run_file(&run, "resume.safetensors") …
 *     small_run_close(&run);
 */
#pragma once

#include "harness/run/run.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

enum { SMALL_RUN_TASKS = 3 };

struct small_run {
    struct scratch scratch;
    struct suite *suite;
    struct run *experiment;
};

extern struct error error; /* of the last call that failed */
void must(status result);

/* MTIL_TEST_BACKEND, cpu unless set. */
const char *test_backend_name(void);

/* MTIL_TEST_EVERY, 1 unless set: of many cases of a kind, one in so many is tried. Sanitizers and emulated kernels take long. */
size_t test_every(void);

/* GPUs that a run can share: those of the machine, or 3 of them played by the CPU. */
size_t small_run_gpus(void);

/* Tasks first, second and third have 2, 3 and 4 classes of 6 training and 3 test images each. overrides end with
 * NULL. */
void small_run_open(struct small_run *run, uint64_t seed, const char *const *overrides);

/* Another experiment on the same files; run->experiment is closed first. */
void small_run_reopen(struct small_run *run, uint64_t seed, const char *const *overrides);
/* The same with overrides that may be refused: then there is no experiment, and `error` says why. */
status small_run_try(struct small_run *run, uint64_t seed, const char *const *overrides);
void small_run_close(struct small_run *run);

/* A path in the run's folder; the next call overwrites it. */
const char *small_run_file(const struct small_run *run, const char *name);

/* n floats from the device, the caller frees. */
float *small_run_values(const struct small_run *run, const float *device, size_t n);

/* The adapters' values of a tower. */
float *small_run_adapters(const struct small_run *run, enum tower tower);

/* Counts what the backend is asked for from now on, and raises a stop request at the n-th of it (0: never). One at a
 * time. */
struct backend_spy {
    size_t encodings, updates, predictions; /* batches of images, optimizer steps of a group, batches of predictions */
    struct stop *stop;
    size_t stop_at_update, stop_at_prediction, stop_at_encoding;
};
void small_run_watch(struct small_run *run, struct backend_spy *spy);

/* Whether the message of the last failure has all these words in it; the list ends with NULL. Fails the test
 * otherwise. */
void error_tells(const char *const *words);

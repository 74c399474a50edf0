/* An experiment small enough for a test: a random CLIP, its vocabulary and three tasks of the `toy` dataset.
 *
 *     RUN_TEST(adapters_learn, "adapter.experts=6", NULL)                      // overrides of the suite
 *     {
 *         float *before = small_run_adapters(run, TOWER_IMAGE);                // the run's, as all that it hands out
 *         must(small_run_train(run, 0, NULL));
 *         must_refuse(run_reopen(run->experiment, …), ERROR_ARGUMENT, "words", "of the message");
 *     }
 */
#pragma once

#include "harness/run/run.h"
#include "harness/train/trainer.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

enum { SMALL_RUN_TASKS = 3 };

struct small_run {
    struct scratch scratch;
    struct suite *suite;
    struct run *experiment;
};

/* A list of words, ended by NULL. */
#define WORDS(...)                                                                                                     \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }

/* A test of a run with seed 1. */
#define RUN_TEST(name, ...)                                                                                            \
    static void name##_in(struct small_run *run);                                                                      \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        struct small_run run;                                                                                          \
        small_run_open(&run, 1, (const char *const[]){__VA_ARGS__});                                                   \
        name##_in(&run);                                                                                               \
        small_run_close(&run);                                                                                         \
    }                                                                                                                  \
    static void name##_in(struct small_run *run)

/* As tests/models/device.h has them, where they are defined: the error of the last call that failed, and what a call that failed with
 * code says. */
extern struct error error;
void must(status result);
#define must_refuse(result, code, ...) check_refusal(result, code, WORDS(__VA_ARGS__))
void check_refusal(status result, status code, const char *const *words);
const char *test_backend_name(void);

/* GPUs that a run can share: those of the machine, or 3 of them played by the CPU. */
size_t small_run_gpus(void);

/* Tasks first, second and third have 2, 3 and 4 classes of 6 training and 3 test images each. overrides end with
 * NULL. */
void small_run_open(struct small_run *run, uint64_t seed, const char *const *overrides);

/* Another experiment on the same files; run->experiment is closed first. Overrides that are tried may be refused: then there is no
 * experiment, and `error` says why. */
void small_run_reopen(struct small_run *run, uint64_t seed, const char *const *overrides);
status small_run_try(struct small_run *run, uint64_t seed, const char *const *overrides);
void small_run_close(struct small_run *run);

/* A path in the run's folder; the next call overwrites it. */
const char *small_run_file(const struct small_run *run, const char *name);

/* Of files anywhere. */
void small_run_expect_same(const char *path, const char *expected);

/* Memory that is freed when a run is closed, as that of the functions below. */
void *small_run_keep(void *memory);
__attribute__((format(printf, 1, 2))) char *small_run_format(const char *format, ...);

/* The floats of a recorded tensor. */
float *small_run_recorded(const struct safetensors *file, const char *name);

/* n floats from the device; all values of a group; the adapters' values of a tower. */
float *small_run_values(const struct small_run *run, const float *device, size_t n);
float *small_run_group(const struct parameters *group);
float *small_run_adapters(const struct small_run *run, enum tower tower);

/* What the training of a task reported. It goes on after iteration count, and stops after stop_at (0: never). */
struct small_training {
    size_t count, stop_at, every; /* every: a loss is read each so many iterations; 0: each; SIZE_MAX: never */
    size_t images;
    double loss[64], rate[64];
    void (*look)(struct small_training *training); /* after each iteration; NULL: nobody looks */
    struct small_run *run;
    struct stop stop;
};

/* training NULL: no loss is read, and nothing stops it. */
status small_run_train(struct small_run *run, size_t task, struct small_training *training);

/* A resume file in the run's folder, of 77 rows. */
void small_run_save(const struct small_run *run, const char *name, size_t task, size_t iteration);

/* Another experiment that goes on from the file "resume", which is behind that iteration of the task; and the file as well. */
void small_run_go_on(struct small_run *run, size_t task, size_t iteration, const char *const *overrides);
void small_run_resume(struct small_run *run, size_t task, size_t iteration, const char *const *overrides);

/* A new one, destroyed with the experiment; of an evaluator with the zero-shot answers of the first tasks. */
struct selector *small_run_selector(struct small_run *run);
struct evaluator *small_run_evaluator(struct small_run *run, struct selector *selector, size_t zero_shot);

/* Counts what the backend is asked for from now on, and raises a stop request at the n-th of it (0: never). One at a
 * time. */
struct backend_spy {
    size_t encodings, updates, predictions; /* batches of images, optimizer steps of a group, batches of predictions */
    struct stop *stop;
    size_t stop_at_update, stop_at_prediction, stop_at_encoding;
};
void small_run_watch(struct small_run *run, struct backend_spy *spy);

/* What training leaves in a model, and whether it is the same: after a stop, and on several GPUs.
 *
 *     const char *const *words = WORDS("method.name=l2", "training.iterations=9");
 *     expect_stop_between(run, words, 4);                // the bits of a run that was not stopped
 *     expect_ranks_unseen(run, words, 3, 1e-4);          // three GPUs compute what one does
 */
#pragma once

#include "harness/evaluate/evaluator.h"
#include "harness/train/batches.h"
#include "tests/harness/small_run.h"

/* A whole task; what it reported. */
struct small_training learn(struct small_run *run, size_t task);

struct outcome {
    const char *name;            /* the overrides */
    struct small_training steps; /* of the last task */
    size_t groups, parts, n[8], changes;
    void *values[8]; /* n floats of each group; behind these n integers: counts of adapters and what is frozen */
};

/* Of the model of a run, or of one of its ranks. */
struct outcome outcome_of(const struct model *model, const char *name);

/* Of so many GPUs, unless a method changes the leader's alone when a task ends. */
void expect_same_ranks(const struct small_run *run, size_t gpus);

/* The first tasks of another experiment. Several GPUs end with the same weights. */
struct outcome outcome_train(struct small_run *run, const char *const *overrides, size_t gpus, size_t tasks);

void expect_same(const struct outcome *found, const struct outcome *expected); /* to the bit */

/* Of two tasks, stopped between them and behind that iteration of the second, each time with another experiment that goes on. */
void expect_stop_between(struct small_run *run, const char *const *overrides, size_t iteration);

/* Of two tasks on so many GPUs and on one: losses and weights (of their size) to these differences, unless ranks compute something of
 * their share alone (loss 0). Twice on the GPUs, which gives the same bits. Nothing where there are fewer. */
void expect_ranks_unseen(struct small_run *run, const char *const *overrides, size_t gpus, double loss, double weights);

/* An evaluator has the features and answers of a task after that checkpoint that one computes which keeps none. */
void expect_as_computed(const struct evaluator *evaluator, size_t checkpoint, size_t j);

/* The operations of a backend, which the caller may change until the run is closed, and those that they were. */
struct backend_ops *change_operations(struct backend *backend, const struct backend_ops **before);

/* The hooks of a run's method, likewise. */
struct method *change_method(struct small_run *run, const struct method **before);

/* Features of a task's classes through a router (−1: none) on the host, [classes, embed]. */
float *take_class_features(struct small_run *run, const struct task *task, int router);

/* A batch of a loader; the number of its images. */
size_t read_batch(const struct loader_settings *settings, uint64_t step, uint8_t *pixels, int32_t *labels);

/* A test image on the device, in the arena of the step; the caller closes what is returned. */
struct batches *take_test_image(struct small_run *run, const struct task *task, size_t i, struct batch *batch);

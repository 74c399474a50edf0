/* How a task is trained: a table of hooks, called in this order. A method is one file in harness/methods/ and one line in
 * harness/methods/methods.h; the trainer knows none by name. methods/zero_shot.c is the template to copy.
 *
 *     open → for every task: begin_task → (loss → before_update → optimizer → after_step) per iteration → end_task
 *          → evaluation_begin → evaluation → evaluation_end
 *          → close
 *
 * Trained on several GPUs, every rank (replicas.h) has a run of its own. Called on every rank: open, begin_task, loss,
 * before_update, after_step, close. On the leader alone: end_task, evaluation_begin, evaluation_end, keep. What the leader
 * has (the trained groups, and through keep the method's own) is copied to the others before each begin_task, so hooks
 * have to compute the same everywhere: random numbers are drawn from (seed, task, step) alone.
 */
#ifndef MTIL_HARNESS_TRAIN_METHOD_H
#define MTIL_HARNESS_TRAIN_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/option.h"
#include "core/status.h"
#include "harness/run/passage.h"
#include "harness/train/groups.h"

struct arena;
struct batch;
struct experiment;
struct task;

/* A method at work, on one rank. */
struct method_run {
    struct experiment *experiment; /* this rank's */
    const struct options *options; /* the method's keys */
    void *state;                   /* state_size bytes, zero before open; the method's own */
    /* Device memory: what open takes stays until close; emptied before begin_task; emptied before every loss. */
    struct arena *memory, *task_memory, *step_memory;
};

enum { METHOD_SECTIONS = 4 };

/* Hooks that are NULL do nothing (loss: classification_loss of trainer.h). groups is needed. */
struct method {
    const char *name, *source;    /* source: where it is published */
    const struct option *options; /* its keys under `method` */
    /* Sections of a suite that not every method uses: "merge", "combine", "selector". (adapter is used by whoever trains
     * adapters.) Others are no part of the method's runs: neither of what identifies them nor of what is recorded. */
    const char *sections[METHOD_SECTIONS];
    bool alone;        /* every task starts from the weights that the run starts from, and is tested on itself alone */
    bool loss_repeats; /* loss asks for the same operations for every batch of a size, and for nothing on the host */
    size_t state_size;
    unsigned (*groups)(const struct options *options); /* set of enum parameter_group */
    status (*open)(struct method_run *run, struct error *error);
    void (*close)(struct method_run *run); /* also after an open that failed */
    /* resumed: the task's first iterations were done before a stop; groups are as they were then, and keep has run. */
    status (*begin_task)(struct method_run *run, const struct task *task, bool resumed, struct error *error);
    /* Adds the loss to experiment->loss (device) and its gradients to the parameters, so that the sum over all ranks is
     * the loss: what each of work.ranks computes whole is weighted by 1/ranks. A rank may have no images. */
    status (*loss)(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error);
    /* The gradients are now the sum over all ranks. iteration counts from 1. */
    status (*before_update)(struct method_run *run, const struct task *task, size_t iteration, struct error *error);
    status (*after_step)(struct method_run *run, const struct task *task, size_t iteration, struct error *error);
    status (*end_task)(struct method_run *run, const struct task *task, struct error *error);
    /* The weights to evaluate and to save, where they are not those that training goes on from: in, and out again. */
    status (*evaluation_begin)(struct method_run *run, struct error *error);
    status (*evaluation_end)(struct method_run *run, struct error *error);
    /* Passes all of the method's own that a stop must not lose: the same function saves, restores and copies to ranks. */
    status (*keep)(struct method_run *run, const struct passage *passage, struct error *error);
};

#endif

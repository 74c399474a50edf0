/* How a task is trained: a table of hooks, called in this order. A method is one file in harness/methods/ and one line
 * in harness/methods/methods.h; the trainer knows none by name. methods/zero_shot.c is the template to copy.
 *
 *     open → for every task: begin_task → (loss → before_update → optimizer → after_step) per iteration → end_task
 *          → evaluation_begin → evaluation (scores, or vote and evaluation_model) → evaluation_end
 *          → close
 *
 * A method that trains no group has no iterations: it learns from a task in end_task.
 *
 * On several GPUs, every rank (replicas.h) has a method_run. Called on every rank: open, begin_task, loss,
 * before_update, after_step, close. Called on the leader alone: end_task, the hooks of evaluation, keep. The leader's
 * state (the trained groups and, through keep, the method's own) is copied to the other ranks before each begin_task.
 * Hooks must compute the same on every rank, so they draw random numbers from (seed, task, step) alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "adapters/merge.h"
#include "harness/model/model.h"
#include "harness/scenario/data.h"
#include "harness/scenario/witness.h"
#include "harness/train/serializer.h"

struct batch;

enum { METHOD_SECTIONS = 4, METHOD_INPUTS = 4 };

/* A file or folder that an option names, as it was before open. The contents digested for the identity of the run must
 * be the same (harness/run/identity/inputs.h). */
struct method_input {
    const char *option;
    struct witness read;
};

/* An open method, on one rank. */
struct method_run {
    struct model *model; /* this rank's */
    struct data *data;
    const struct options *options; /* the method's keys */
    void *state;                   /* state_size bytes, zero before open; the method's own */
    /* Device memory: kept from open until close; emptied before begin_task; emptied before every loss. */
    struct arena *memory, *task_memory, *step_memory;
    struct method_input inputs[METHOD_INPUTS];
    double asking;                    /* seconds that a program was asked for merges, not yet recorded */
    struct expert_changes changes;    /* merges, skips and freezes not yet recorded */
    struct merge_effect_list effects; /* likewise */
};

/* The cost of a whole run besides iterations, trained groups and device memory. */
struct method_cost {
    double operations;   /* floating-point */
    double memory, kept; /* bytes: peak on the host; in a resume file */
    size_t teachers;     /* frozen models beside the run's, which only encode */
};

/* Hooks that are NULL do nothing (loss: classification_loss of trainer.h; groups: trains). */
/* The hooks of a method that trains and answers by itself, as another program does (methods/external.c). No model is
 * loaded for it, and only check, open and close of struct method are called. */
struct own_start {
    const char *folder; /* of the run; the method's files lie in folders of its own there */
    const struct stop *stop;
    const struct log *log;
    size_t trained; /* tasks that were trained and saved before a stop */
};

struct own_facts {
    size_t parameters; /* that it trains; 0: unknown */
    bool zero_shot;    /* it answers before it is trained */
};

struct own_step {
    uint64_t step, steps;
    double loss, rate; /* NAN: unknown */
};

typedef status own_report(void *context, const struct own_step *step, struct error *error);

struct method_own {
    status (*start)(struct method_run *run, const struct own_start *start, struct own_facts *facts,
                    struct error *error);
    status (*train)(struct method_run *run, const struct task *task, own_report *report, void *context,
                    struct error *error);
    /* predicted [test images of the task], numbered as evaluation.label_space asks; after: the last task trained, −1 before. */
    status (*test)(struct method_run *run, int64_t after, const struct task *task, uint16_t *predicted,
                   struct error *error);
    status (*save)(struct method_run *run, const struct task *task,
                   struct error *error); /* saves its state after a task */
    status (*end)(struct method_run *run, struct error *error);
    uint64_t (*peak)(const struct method_run *run); /* bytes of memory that it has had beside this process */
    /* Appends the messages that would be sent to it, for a dry run. */
    status (*describe)(struct method_run *run, struct text *text, struct error *error);
};

struct method {
    const char *name, *source;    /* source: where it is published */
    const char *formula;          /* its definition in one line, with its keys by name */
    const struct option *options; /* its keys under `method` */
    /* Optional sections that the method uses: "merge", "combine", "selector". ("adapter" is used by every method
     * that trains adapters.) Optional sections that it does not use neither identify its runs nor appear in their
     * results. */
    const char *sections[METHOD_SECTIONS];
    const struct delta_gate *gate; /* of its deltas; NULL: none */
    bool one_delta;                /* all tasks train the same deltas; else each has rows of its own */
    bool two_deltas;               /* or two sets of them */
    const char *head;              /* it works with heads of the same of_texts as this one (model/head.h); NULL: text */
    bool
        own_classes; /* it scores the classes of all tasks by itself: a head of weights has those of the trained task */
    bool alone;      /* every task starts from the initial weights and is tested on itself only */
    bool counts_tasks; /* what it trains for a task depends on how many there are */
    bool joint;        /* one training on all tasks together (scenario/data.h), hence one row of results */
    /* loss runs the same operations for every batch of one size and nothing on the host, so that it can be recorded */
    bool loss_repeats;
    size_t state_size;
    unsigned trains;                                   /* what it always trains: set of enum parameter_group */
    unsigned (*groups)(const struct options *options); /* what it trains with these options */
    status (*check)(const struct settings *settings, struct error *error); /* refuses suites that it cannot run */
    status (*open)(struct method_run *run, struct error *error);
    void (*close)(struct method_run *run); /* also after an open that failed */
    /* Finds the task's prompts, routers and logit_scale in the model. resumed: the first iterations of the task were
     * done before a stop; groups are restored, and keep has run. */
    status (*begin_task)(struct method_run *run, const struct task *task, bool resumed, struct error *error);
    /* Adds the loss to model->loss (device) and its gradients to the parameters, so that the sum over all ranks
     * is the loss: weight a term that every rank computes in full by replicas_weight. A rank may have no images. */
    status (*loss)(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error);
    /* The gradients are now the sum over all ranks. iteration counts from 1. */
    status (*before_update)(struct method_run *run, const struct task *task, size_t iteration, struct error *error);
    status (*after_step)(struct method_run *run, const struct task *task, size_t iteration, struct error *error);
    status (*end_task)(struct method_run *run, const struct task *task, struct error *error);
    /* Swaps in the weights to evaluate and save, if training continues from other weights, and swaps them out. */
    status (*evaluation_begin)(struct method_run *run, struct error *error);
    status (*evaluation_end)(struct method_run *run, struct error *error);
    /* For a method of several models, model 0 the initial one and model k + 1 that of task k: an image gets the class of the
     * highest mean score over the models that vote on it. votes [n, 1 + tasks trained]: 1 for these, 0 elsewhere. features
     * [n, embed]: of images of the task by model 0, not normalised, on the host; NULL in a first call, which is followed by
     * one with features if model 0 votes. It votes on all images of a task or on none. The scores are the hook's, if
     * there is one. */
    status (*vote)(struct method_run *run, const struct task *task, const float *features, size_t n, uint8_t *votes,
                   struct error *error);
    /* Swaps in one of them until the next one or evaluation_begin. */
    status (*evaluation_model)(struct method_run *run, size_t model, struct error *error);
    /* Replaces the similarities by the method's own scores. features [n, embed]: of images of the task, not normalised;
     * scores [n, classes], on the host: on entry 100 · cosine to the classes that the images are compared with
     * (evaluate/label_space.h), on return the scores. */
    status (*scores)(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                     float *scores, struct error *error);
    void (*cost)(const struct method_run *run, struct method_cost *cost); /* for estimates, of an open method */
    const struct method_own *own;                                         /* NULL: the hooks above */
    /* Saves, restores and copies to other ranks the state that must survive a stop. */
    status (*keep)(struct method_run *run, const struct serializer *serializer, struct error *error);
};

/* Opens the method of the model's settings, whose hooks are called by trainer, checkpoint and replicas, and the memory of
 * guard.h. After a failure, method_close; before the model. */
status method_open(struct method_run *run, struct model *model, struct data *data, struct error *error);
void method_close(struct method_run *run); /* opened or not */

/* Set of enum parameter_group that it trains with these options, of its table. */
unsigned method_groups(const struct method *method, const struct options *options);

/* Of the file or the folder that an option names, before the method read it; NULL: it reads none there. */
const struct witness *method_input(const struct method_run *run, const char *option);
size_t method_whole(const struct method_run *run, const char *option); /* a whole number of the method's options */

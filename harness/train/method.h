/* How a task is learnt: a table of fixed points, called in this order. One method is one file in methods/ and one line
 * in method.c.
 *
 *     begin_task → (loss → optimizer step → after_step) for every iteration → end_task
 *
 * The trainer knows none by name. methods/zero_shot.c is the template to copy.
 */
#ifndef MTIL_HARNESS_TRAIN_METHOD_H
#define MTIL_HARNESS_TRAIN_METHOD_H

#include <stdbool.h>

#include "core/option.h"
#include "core/status.h"

struct archive;
struct batch;
struct experiment;
struct task;

enum method_trains { TRAINS_NOTHING, TRAINS_ADAPTERS, TRAINS_WEIGHTS };

/* Functions that are NULL do nothing (loss: the contrastive loss of the batch). `trains` is needed. */
struct method {
    const char *name, *source;    /* source: where it is published */
    const struct option *options; /* its keys under `method` */
    bool alone;                   /* every task starts from the untouched model, and is tested on itself alone */
    bool selects;                 /* adapters: a selector picks the router at test time */
    bool loss_repeats; /* loss asks for the same operations for every batch of a size, and for nothing on the host */
    enum method_trains (*trains)(const struct options *options);
    status (*begin_task)(struct experiment *experiment, const struct task *task, struct error *error);
    /* Adds the loss to experiment->loss (device) and its gradients to the parameters. */
    status (*loss)(struct experiment *experiment, const struct task *task, const struct batch *batch,
                   struct error *error);
    /* iteration counts from 1: the step just taken. */
    status (*after_step)(struct experiment *experiment, const struct task *task, size_t iteration, struct error *error);
    status (*end_task)(struct experiment *experiment, const struct task *task, struct error *error);
    /* What of the method's own must survive a stop (teachers, exemplars, means). */
    status (*save)(const struct experiment *experiment, struct archive *archive, struct error *error);
    status (*restore)(struct experiment *experiment, const struct archive *archive, struct error *error);
};

status method_find(const struct method **method, const char *name, struct error *error);
const struct method *method_at(size_t index); /* NULL past the last one */

#endif

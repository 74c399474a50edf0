/* A request to train one task, and the report after each iteration. */
#ifndef MTIL_HARNESS_TRAIN_TRAINING_H
#define MTIL_HARNESS_TRAIN_TRAINING_H

#include "harness/train/method.h"

/* After each iteration (counted from 1). loss is NAN unless wants_loss asked for it, because reading it waits for
 * the device. */
struct step_report {
    size_t iteration, iterations, images; /* images: of this call of train_task so far */
    bool looked;                          /* loss was read; with on_nan: skip it may be NAN all the same */
    double loss, balance, rate;           /* balance: losses of all blocks without their weight; NAN: there are none */
};

struct training {
    struct method_run *run;
    const struct task *task;
    size_t first; /* iterations already done; above 0 when a task is resumed */
    const struct stop *stop;
    bool (*wants_loss)(void *context, size_t iteration, size_t iterations);
    status (*after)(void *context, const struct step_report *report, struct error *error);
    void *context;
};

#endif

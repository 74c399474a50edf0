/* Shared by methods that return to, or pull towards, the weights at the start of a task. The state of a method that
 * uses the hooks begins with a struct average; wise_ft.c is an example.
 */
#pragma once

#include "harness/methods/methods.h"
#include "harness/train/services/average.h"

struct parameters *weights_of(const struct method_run *run); /* of both towers */

/* Hooks: memory for the weights, and at the start of each task a copy of them and a fresh optimizer. */
status start_open(struct method_run *run, struct error *error);
status start_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error);

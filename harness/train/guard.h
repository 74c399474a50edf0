/* Values that are not finite never reach a result. Loss and gradients of every training step are checked before they
 * change anything, and the host does not wait for the device.
 *
 *     TRY(guard_begin_task(model, error));
 *     TRY(guard_begin_step(model, task, error));
 *     ... loss and gradients, summed over all ranks ...
 *     TRY(guard_end_step(model, task, error));               // skips a step that is not finite
 *     TRY(... update with guard_rule(model, task, rule) ...);
 *     TRY(guard_check(model, task, error));                  // before anything is saved, evaluated or recorded
 *
 * training.on_nan: stop skips this step and all that follow, so that weights stay as they were until guard_check
 * reports it. skip leaves out this step alone, on all ranks: weights, moments, step counts and selection counts stay.
 */
#pragma once

#include "harness/model/model.h"
#include "harness/scenario/data.h"

status guard_create(struct model *model, struct error *error);
status guard_begin_task(struct model *model, struct error *error);
status guard_begin_step(struct model *model, const struct task *task, struct error *error);
status guard_end_step(struct model *model, const struct task *task, struct error *error);

/* The rule, changed so that a skipped step has no effect. */
struct update_rule guard_rule(const struct model *model, const struct task *task, struct update_rule rule);

/* ERROR_ARGUMENT with task, iteration and tensor if a step was skipped (on_nan: stop). Waits for the device. */
status guard_check_steps(const struct model *model, const struct task *task, struct error *error);

/* Also fails if a weight or a moment is not finite after `iteration` iterations, which finite gradients can cause. */
status guard_check(const struct model *model, const struct task *task, size_t iteration, struct error *error);

/* The number of the task's skipped steps, and the first of them (on_nan: skip). */
status guard_skipped(const struct model *model, size_t *steps, size_t *first, struct error *error);

/* Checks rows of features [n, width] on the host, of items first … first + n − 1 of a list (NULL: of the split).
 * ERROR_FORMAT with the first image whose row is not finite, as when finite weights overflow in the forward pass. */
struct guarded_images {
    const struct dataset *dataset;
    enum split split;
    const uint32_t *items;
    size_t first, n, width;
    const float *features;
};
status guard_images(const struct guarded_images *images, struct error *error);

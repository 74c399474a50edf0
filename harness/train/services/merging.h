/* Hooks that merge experts during training by the suite's merge policy and freeze them after a task, for a method whose
 * state is a struct merging. moe_adapters.c uses them unchanged. A model without adapters is left alone.
 *
 * struct loss_mean is the mean of the training loss over some iterations, summed on the device, so that the host waits
 * only when it reads the mean.
 *
 *     TRY(loss_mean_open(&mean, model, memory, error));
 *     TRY(loss_mean_add(&mean, model, error));                 // after every iteration; skipped ones do not count
 *     TRY(loss_mean_take(&mean, model, &loss, error));         // and starts anew
 */
#pragma once

#include "adapters/merge.h"
#include "harness/model/model.h"
#include "harness/train/method.h"
#include "harness/train/serializer.h"

struct loss_mean {
    float *sums; /* device [3]: Σ loss, number of iterations, and 1 */
};

status loss_mean_open(struct loss_mean *mean, const struct model *model, struct arena *arena, struct error *error);
status loss_mean_add(const struct loss_mean *mean, const struct model *model, struct error *error);
status loss_mean_take(const struct loss_mean *mean, const struct model *model, double *loss, struct error *error);
status loss_mean_clear(const struct loss_mean *mean, const struct model *model, struct error *error);

/* Keeps the sums in a resume file; for a method's keep. */
status loss_mean_keep(const struct loss_mean *mean, const char *name, const struct serializer *serializer,
                      struct error *error);

enum { EFFECT_WINDOW = 50 }; /* iterations */

struct merging {
    void *policy;  /* state of the merge policy; NULL: none */
    void *program; /* the program that the policy asks; NULL: none was started */
    struct schedule_state schedule;
    struct loss_mean loss;         /* where the schedule needs it */
    struct merge_effects *effects; /* NULL: they are not measured */
};

status merging_open(struct method_run *run, struct error *error);
void merging_close(struct method_run *run);
status merging_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error);
status merging_after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error);
status merging_end_task(struct method_run *run, const struct task *task, struct error *error);
status merging_keep(struct method_run *run, const struct serializer *serializer, struct error *error);

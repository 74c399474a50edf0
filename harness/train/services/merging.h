/* Hooks that merge experts during training by the suite's merge policy and freeze them after a task, for a method whose
 * state is a struct merging. moe_adapters.c uses them unchanged. A model without adapters is left alone.
 *
 * struct loss_mean is the mean of the training loss over some iterations, summed on the device, so that the host waits
 * only when it reads the mean.
 *
 *     TRY(loss_mean_open(&mean, model, memory, error));
 *     TRY(loss_mean_add(&mean, model, error));                 // after every iteration; skipped ones do not count
 *     TRY(loss_mean_take(&mean, model, &loss, error));         // and starts anew
 *
 * struct merge_effects measures the effects of merges: how often the merged expert is chosen in the EFFECT_WINDOW iterations that follow
 * (fewer where the task ends), the mean loss before and after, and the distance of the merged expert's function from
 * its sources'. The measurement does not change any result.
 *
 *     TRY(merge_effects_open(&effects, model, memory, error));                     // on the leader; needs NEEDS_PROBES
 *     TRY(merge_effects_step(effects, model, iteration, error));                   // after every iteration
 *     TRY(merge_effects_look(effects, run, iteration, error));                   // before a merge
 *     ... adapters_merge(…, &run->changes, …) ...
 *     TRY(merge_effects_add(effects, run, iteration, first_change, error));      // after it
 *     TRY(merge_effects_end_task(effects, run, iterations, error));
 *
 * Losses and selection counts are copied on the device when a window ends, and read at the next merge or at the end of
 * the task, so that iterations without a merge wait for nothing. The effects read are added to run->effects.
 */
#pragma once

#include "adapters/merge.h"
#include "harness/heads/model.h"
#include "harness/train/method.h"
#include "harness/train/serializer.h"

struct loss_mean {
    float *sums; /* device [3]: Σ loss, number of iterations, and 1 */
};

status loss_mean_open(struct loss_mean *mean, const struct model *model, struct arena *arena, struct error *error);
status loss_mean_add(const struct loss_mean *mean, const struct model *model, struct error *error);
status loss_mean_take(const struct loss_mean *mean, const struct model *model, double *loss, struct error *error);
status loss_mean_clear(const struct loss_mean *mean, const struct model *model, struct error *error);

/* For a method's keep. */
status loss_mean_keep(const struct loss_mean *mean, const char *name, const struct serializer *serializer,
                      struct error *error);

enum { EFFECT_WINDOW = 50 };

struct merge_effects; /* NULL in all functions: nothing is measured */

status merge_effects_open(struct merge_effects **effects, const struct model *model, struct arena *arena,
                          struct error *error);
void merge_effects_close(struct merge_effects *effects);
void merge_effects_begin_task(struct merge_effects *effects);
status merge_effects_step(const struct merge_effects *effects, const struct model *model, size_t iteration,
                          struct error *error);
status merge_effects_look(struct merge_effects *effects, struct method_run *run, size_t iteration, struct error *error);

/* Merges among run->changes from number `first` on. */
status merge_effects_add(struct merge_effects *effects, const struct method_run *run, size_t iteration, size_t first,
                         struct error *error);
status merge_effects_end_task(struct merge_effects *effects, struct method_run *run, size_t iterations,
                              struct error *error);

/* For a method's keep. An archive of a session with merge.analysis=no has none; restoring from it leaves no merges to
 * measure. */
status merge_effects_keep(struct merge_effects *effects, const struct serializer *serializer, struct error *error);

struct merging {
    void *policy; /* state of the merge policy; NULL: none */
    struct schedule_state schedule;
    struct loss_mean loss; /* where the schedule needs it */
    struct merge_effects *effects;
};

status merging_open(struct method_run *run, struct error *error);
void merging_close(struct method_run *run);
status merging_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error);
status merging_after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error);
status merging_end_task(struct method_run *run, const struct task *task, struct error *error);
status merging_keep(struct method_run *run, const struct serializer *serializer, struct error *error);

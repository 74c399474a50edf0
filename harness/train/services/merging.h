/* Hooks that merge experts during training by the suite's merge policy and freeze them after a task, for a method whose
 * state is a struct merging. moe_adapters.c uses them unchanged. A model without adapters is left alone.
 */
#pragma once

#include "adapters/schedule/schedule.h"
#include "harness/train/method.h"
#include "harness/train/services/loss_mean.h"
#include "harness/train/services/merge_effects.h"

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

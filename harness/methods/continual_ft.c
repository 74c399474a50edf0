/* Fine-tunes both towers in sequence, without any protection from forgetting: θ_t is trained from θ_{t−1} on task t
 * only. */
#include "harness/heads/trained.h"
#include "harness/methods/methods.h"

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    (void)task;
    return resumed ? OK : trained_groups_reset(run->model, error);
}

const struct method method_continual_ft = {.name = "continual_ft",
                                           .source = "ZSCL, ICCV 2023",
                                           .formula = "loss = cross-entropy of task t; θ_t is trained from θ_{t−1}",
                                           .trains = GROUPS_TOWERS,
                                           .begin_task = begin_task};

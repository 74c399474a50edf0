/* Low-rank deltas of the towers' matrices (LoRA: Hu et al., ICLR 2022, arXiv 2106.09685), trained in sequence: task t goes on with A
 * and B of task t − 1, without any protection from forgetting. The paper scales by α / r, which is delta.scale here. */
#include "harness/methods/methods.h"
#include "harness/model/model.h"

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    TRY(deltas_begin_task(run->model->deltas, 0, 0, run->model->settings.delta.trained, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

const struct method method_lora = {
    .name = "lora",
    .source = "Hu et al., ICLR 2022",
    .formula = "W + scale · B A with B A of rank `rank`, in the matrices of `delta`; loss = cross-entropy of task t; A "
               "and B are trained from those of task t − 1",
    .one_delta = true,
    .trains = GROUP_DELTAS,
    .begin_task = begin_task};

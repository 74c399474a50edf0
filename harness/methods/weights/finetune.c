/* Fine-tuning with the cross-entropy alone, the bounds of the tables.
 *
 * finetune: every task alone, from the initial weights of the run: the upper bound.
 *
 * continual_ft: both towers in sequence, without any protection from forgetting: θ_t is trained from θ_{t−1} on task t
 * only.
 *
 * joint: one training on all tasks together, another upper bound: every batch is drawn from the training images of all
 * tasks and compared with the classes of all tasks (harness/scenario/data.h). The initial weights are trained once, for
 * as many iterations as the sequence has, so there is one row of results, after the last task. All prompts are encoded
 * in every iteration, which costs time and memory in proportion to the number of classes. Adapters have one router for
 * all tasks. */
#include "harness/methods/methods.h"
#include "harness/model/model.h"

static status begin(struct model *model, size_t router, struct error *error)
{
    return model->adapters != NULL ? adapters_begin_task(model->adapters, router, error)
                                   : trained_groups_reset(model, error);
}

static status begin_alone(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    if (resumed)
        return OK;
    TRY(model_restart(run->model, error));
    return begin(run->model, task->index, error);
}

const struct method method_finetune = {.name = "finetune",
                                       .source = "ZSCL, ICCV 2023",
                                       .formula = "loss = cross-entropy of task t; θ_t is trained from θ_0",
                                       .options = groups_options,
                                       .alone = true,
                                       .groups = groups_chosen,
                                       .begin_task = begin_alone};

static status begin_first(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    return resumed ? OK : begin(run->model, 0, error);
}

const struct method method_joint = {
    .name = "joint",
    .source = "Caruana 1997 (multitask learning)",
    .formula = "loss = cross-entropy of batches of all tasks together, over the classes of all; θ is trained from θ_0",
    .options = groups_options,
    .joint = true,
    .groups = groups_chosen,
    .begin_task = begin_first};

const struct method method_continual_ft = {.name = "continual_ft",
                                           .source = "ZSCL, ICCV 2023",
                                           .formula = "loss = cross-entropy of task t; θ_t is trained from θ_{t−1}",
                                           .trains = GROUPS_TOWERS,
                                           .begin_task = begin_first};

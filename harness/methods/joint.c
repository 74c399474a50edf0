/* One training on all tasks together, the upper bound of the tables: every batch is drawn from the training images of
 * all tasks and compared with the classes of all tasks (harness/scenario/joint.h). The initial weights are trained
 * once, for as many iterations as the sequence has, so there is one row of results, after the last task.
 *
 * All prompts are encoded in every iteration, which costs time and memory in proportion to the number of classes. Adapters
 * have one router for all tasks. */
#include "harness/heads/trained.h"
#include "harness/methods/methods.h"

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct model *model = run->model;
    (void)task;
    if (resumed)
        return OK;
    return model->adapters != NULL ? adapters_begin_task(model->adapters, 0, error)
                                   : trained_groups_reset(model, error);
}

const struct method method_joint = {
    .name = "joint",
    .source = "Caruana 1997 (multitask learning)",
    .formula = "loss = cross-entropy of batches of all tasks together, over the classes of all; θ is trained from θ_0",
    .options = groups_options,
    .joint = true,
    .groups = groups_chosen,
    .begin_task = begin_task};

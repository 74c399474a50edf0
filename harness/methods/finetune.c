/* Every task alone, from the initial weights of the run: the upper bound in the tables. */
#include "harness/heads/trained.h"
#include "harness/methods/methods.h"

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct model *model = run->model;
    if (resumed)
        return OK;
    TRY(model_restart(model, error));
    return model->adapters != NULL ? adapters_begin_task(model->adapters, task->index, error)
                                   : trained_groups_reset(model, error);
}

const struct method method_finetune = {.name = "finetune",
                                       .source = "ZSCL, ICCV 2023",
                                       .formula = "loss = cross-entropy of task t; θ_t is trained from θ_0",
                                       .options = groups_options,
                                       .alone = true,
                                       .groups = groups_chosen,
                                       .begin_task = begin_task};

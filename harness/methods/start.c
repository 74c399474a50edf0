#include "harness/methods/start.h"

#include "harness/heads/trained.h"

struct parameters *weights_of(const struct method_run *run)
{
    return run->model->clip->parameters;
}

status start_open(struct method_run *run, struct error *error)
{
    return average_open(run->state, weights_of(run), run->memory, error);
}

status start_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    (void)task;
    if (resumed)
        return OK;
    TRY(average_start(run->state, weights_of(run), error));
    return trained_groups_reset(run->model, error);
}

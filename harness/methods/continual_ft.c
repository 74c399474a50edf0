/* All weights in sequence, nothing against forgetting (spec 7). */
#include "harness/methods/methods.h"
#include "harness/run/experiment.h"

static enum method_trains trains(const struct options *options)
{
    (void)options;
    return TRAINS_WEIGHTS;
}

static status begin_task(struct experiment *e, const struct task *task, struct error *error)
{
    (void)task;
    return parameters_reset(e->clip->parameters, error);
}

const struct method method_continual_ft = {
    .name = "continual_ft", .source = "ZSCL, ICCV 2023", .trains = trains, .begin_task = begin_task};

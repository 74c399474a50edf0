/* Every task alone, from the untouched model: the upper bound of the tables (spec 7). */
#include "harness/methods/methods.h"
#include "harness/run/experiment.h"

static const struct option options[] = {{.name = "train",
                                         .type = OPTION_CHOICE,
                                         .choices = "adapters|weights",
                                         .fallback = "weights",
                                         .help = "the adapters alone, or the whole model"},
                                        {0}};

static enum method_trains trains(const struct options *values)
{
    return options_choice(values, "train") == 0 ? TRAINS_ADAPTERS : TRAINS_WEIGHTS;
}

static status begin_task(struct experiment *e, const struct task *task, struct error *error)
{
    TRY(experiment_restart(e, error));
    return e->adapters != NULL ? adapters_begin_task(e->adapters, task->index, error)
                               : parameters_reset(e->clip->parameters, error);
}

const struct method method_finetune = {.name = "finetune",
                                       .source = "ZSCL, ICCV 2023",
                                       .options = options,
                                       .alone = true,
                                       .trains = trains,
                                       .begin_task = begin_task};

/* A classifier is trained on the labels of one dataset: the image tower and the head (fine-tuning, or from scratch), or the head
 * alone on a frozen tower (a linear probe). */
#include "harness/methods/methods.h"
#include "harness/run/experiment.h"
#include "harness/train/trained.h"

static const struct option options[] = {{.name = "train",
                                         .type = OPTION_CHOICE,
                                         .choices = "weights|head",
                                         .fallback = "weights",
                                         .help = "train the image tower and the head, or the head alone"},
                                        {0}};

static unsigned groups(const struct options *chosen)
{
    return GROUP_HEAD | (options_choice(chosen, "train") == 0 ? GROUP_IMAGE_TOWER : 0);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    (void)task;
    return resumed ? OK : trained_groups_reset(run->experiment, error);
}

const struct method method_supervised = {.name = "supervised",
                                         .source = "ViT, ICLR 2021",
                                         .formula = "loss = cross-entropy of the scores of head.name: linear",
                                         .options = options,
                                         .head = "linear",
                                         .groups = groups,
                                         .begin_task = begin_task};

/* Learning without Forgetting (Li & Hoiem 2016, arXiv 1606.09282) in ZSCL's form for CLIP:
 *
 *     loss = cross-entropy + D(t, s) + D(tᵀ, sᵀ)       D: harness/train/services/distillation.h
 *
 * The teacher is the model before the task. The references are the prompts of the task and other training images of it,
 * in the evaluation transform. ZSCL's code runs one extra iteration, as training.reference_iterations does.
 */
#include "harness/methods/guided.h"

static const struct option options[] = {GUIDED_OPTIONS, {0}};

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    return guided_begin_task(run, task, resumed, task->prompts, dataset_classes(task->dataset), error);
}

const struct method method_lwf = {
    .name = "lwf",
    .source = "Li & Hoiem, ECCV 2016; as in ZSCL, ICCV 2023",
    .formula =
        "loss = cross-entropy + image_weight · D(t, s) + text_weight · D(tᵀ, sᵀ); t: similarities of the task's images "
        "and prompts in the model before it; D(t, s) = T² · cross-entropy(softmax(t / T), softmax(s / T))",
    .options = options,
    .state_size = sizeof(struct guided),
    .open = guided_open_following,
    .close = guided_close,
    .begin_task = begin_task,
    .loss = guided_loss,
    .end_task = guided_end_task,
    .keep = guided_keep,
    GUIDED_HOOKS};

/* Continual fine-tuning with a penalty around the start (L2-SP: Li et al., ICML 2018, arXiv 1802.01483):
 *
 *     loss = cross-entropy + l2 · Σ (θ − θ_start)²
 *
 * over all weights of both towers. θ_start are the weights at the start of the task; the paper, which has one task,
 * pulls to the pre-trained weights and writes l2 / 2. ZSCL's code adds the same term, and its strength is the default
 * here. */
#include "harness/methods/weights/start.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "l2", 0, 1e6, "1", "strength of the penalty towards the task's starting weights"), {0}};

static status loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error)
{
    const struct average *start = run->state;
    float strength = replicas_weight(run->model) * (float)options_real(run->options, "l2");
    TRY(classification_loss(run, task, batch, error));
    return penalty_add(weights_of(run), start->values, NULL, strength, run->model->loss, error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct average *start = run->state;
    start->count = 0; /* the next task keeps its own */
    return OK;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return average_keep(run->state, weights_of(run), "l2.start", serializer, error);
}

const struct method method_l2 = {.name = "l2",
                                 .source = "Li et al., ICML 2018 (L2-SP), around the start of each task",
                                 .formula = "loss = cross-entropy + l2 · Σ (θ − θ_{t−1})²",
                                 .options = options,
                                 .loss_repeats = true,
                                 .state_size = sizeof(struct average),
                                 .trains = GROUPS_TOWERS,
                                 .open = start_open,
                                 .begin_task = start_begin_task,
                                 .loss = loss,
                                 .end_task = end_task,
                                 .keep = keep};

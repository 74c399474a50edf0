/* WiSE-FT (Wortsman et al., CVPR 2022, arXiv 2109.01903) after every task of continual fine-tuning:
 *
 *     θ ← alpha · θ + (1 − alpha) · θ_start
 *
 * θ_start are the weights at the start of the task, themselves mixed; the original weights for the first task. */
#include "harness/methods/weights/start.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "alpha", 0, 1, "0.8", "share of the weights after the task in the mean of before and after"),
    {0}};

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    return average_apply(run->state, weights_of(run), (float)options_real(run->options, "alpha"), error);
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return average_keep(run->state, weights_of(run), "wise_ft.start", serializer, error);
}

const struct method method_wise_ft = {
    .name = "wise_ft",
    .source = "Wortsman et al., CVPR 2022; as in ZSCL, ICCV 2023",
    .formula = "θ_t ← alpha · θ_t + (1 − alpha) · θ_{t−1} after training task t from θ_{t−1}; loss = cross-entropy",
    .options = options,
    .state_size = sizeof(struct average),
    .trains = GROUPS_TOWERS,
    .open = start_open,
    .begin_task = start_begin_task,
    .end_task = end_task,
    .keep = keep};

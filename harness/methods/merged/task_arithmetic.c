/* Task arithmetic (Ilharco et al., ICLR 2023, arXiv 2212.04089): the sum of what tasks changed, each trained from the
 * initial weights. The paper tunes scale on held-out data of all tasks, which a sequence does not have; 0.4 is the
 * value for want of them (Yadav et al., NeurIPS 2023). With scale 0 it is the mean of the models. */
#include "harness/methods/methods.h"
#include "harness/train/services/merged.h"

static const struct option options[] = {
    MERGED_TRAIN,
    MERGED_START("initial"),
    MERGED_SCALE("0.4", "factor of the sum; 0: one over the tasks, the mean of the models"),
    {0}};

static status add(struct method_run *run, struct error *error)
{
    struct merged *m = run->state;
    for (size_t i = 0; i < m->n; i++)
        m->sum[0][i] += merged_change(m, i);
    return OK;
}

static status open_sum(struct method_run *run, struct error *error)
{
    static const struct merge_rule rule = {.sums = 1, .add = add, .delta = merged_sum};
    return merged_open(run, &rule, error);
}

const struct method method_task_arithmetic = {
    .name = "task_arithmetic",
    .source = "Ilharco et al., ICLR 2023",
    .formula = "τ_t = θ_t − θ_0, θ_t trained from θ_0 (start: initial); evaluated: θ_0 + scale · Σ τ_t",
    .options = options,
    .state_size = sizeof(struct merged),
    .open = open_sum,
    MERGED_HOOKS};

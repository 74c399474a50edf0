/* MagMax (Marczak et al., ECCV 2024, arXiv 2407.06322): tasks are trained in sequence, and of what they changed, the change
 * of largest magnitude is kept, entry by entry. scale is 0.5 in the public code. There the text tower stays; here both
 * towers are trained, as MTIL's baselines train them. */
#include "harness/methods/methods.h"
#include "harness/train/services/merged.h"

#include <math.h>

static const struct option options[] = {MERGED_TRAIN,
                                        MERGED_START("previous"),
                                        MERGED_SCALE("0.5", "factor of the largest changes; 0: one over the tasks"),
                                        {0}};

/* Where magnitudes are equal, the later task's value counts, as in the public code. */
static status add(struct method_run *run, struct error *error)
{
    struct merged *m = run->state;
    for (size_t i = 0; i < m->n; i++)
        if (fabsf(merged_change(m, i)) >= fabsf(m->sum[0][i]))
            m->sum[0][i] = merged_change(m, i);
    return OK;
}

static status open_largest(struct method_run *run, struct error *error)
{
    static const struct merge_rule rule = {.sums = 1, .add = add, .delta = merged_sum};
    return merged_open(run, &rule, error);
}

const struct method method_mag_max = {
    .name = "mag_max",
    .source = "MagMax, ECCV 2024",
    .formula =
        "τ_t = θ_t − θ_0, θ_t trained from θ_{t−1} (start: previous); evaluated: θ_0 + scale · τ, τ = the τ_t of "
        "largest |τ_t|, per entry",
    .options = options,
    .state_size = sizeof(struct merged),
    .open = open_largest,
    MERGED_HOOKS};

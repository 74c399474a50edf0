/* TIES merging of whole models (Yadav et al., NeurIPS 2023, arXiv 2306.01708): each task's change is trimmed to its
 * largest values, an entry's sign is elected, and the values that agree with it are averaged (adapters/merge/policies.h).
 * Trimming looks at one change alone, and election and mean need the sums and numbers of the values above and below 0:
 * these are kept, 12 bytes a weight instead of 4 for every task. Where the sum of an entry is 0 although values are left,
 * the public code takes the sign that most entries have; here the entry stays as it was. The public code keeps one value
 * more than ⌊density · n⌋, and those that are as large as its smallest. */
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/train/services/merged.h"

#include <stdlib.h>

#include "adapters/merge/policies.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "density", 0, 1, "0.2", "share of a task's changes that trimming keeps"),
    MERGED_TRAIN,
    MERGED_START("initial"),
    MERGED_SCALE("1", "factor of the mean; 0: one over the tasks"),
    {0}};

static status add(struct method_run *run, struct error *error)
{
    struct merged *m = run->state;
    OWNED float *change = NULL;
    TRY(merged_take(&change, m->n, sizeof *change, error));
    for (size_t i = 0; i < m->n; i++)
        change[i] = merged_change(m, i);
    ties_trim(change, m->n, options_real(run->options, "density"), change);
    for (size_t i = 0; i < m->n; i++) {
        m->sum[change[i] < 0][i] += change[i];
        m->count[change[i] < 0][i] += change[i] != 0;
    }
    return OK;
}

static void delta(const struct merged *m, size_t first, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ties_elect((double)m->sum[0][first + i], m->count[0][first + i], (double)m->sum[1][first + i],
                            m->count[1][first + i]);
}

static status open_trimmed(struct method_run *run, struct error *error)
{
    static const struct merge_rule rule = {.sums = 2, .counts = 2, .scratch = 1, .add = add, .delta = delta};
    return merged_open(run, &rule, error);
}

const struct method method_ties = {
    .name = "ties",
    .source = "Yadav et al., NeurIPS 2023 (TIES)",
    .formula = "τ_t = θ_t − θ_0 trimmed to its density · n largest values, θ_t trained from θ_0 (start: initial); "
               "evaluated: θ_0 + scale · τ, τ = mean of the τ_t of sign Σ τ_t, per entry",
    .options = options,
    .state_size = sizeof(struct merged),
    .open = open_trimmed,
    MERGED_HOOKS};

/* RAIL with random features and ridge regression, its primal form (rail.h). The sums ΦᵀΦ and ΦᵀY are kept and solved after
 * every task, which is its recursive update (theorem 1) but for rounding. Memory does not depend on the number of images:
 * 15,000 hidden features and 1,100 classes take 0.9 GiB for ΦᵀΦ, 0.1 for ΦᵀY, and as much again while the task's equations
 * are solved; a resume file has the former two. */
#include "harness/methods/rail.h"

static const struct option options[] = {{.name = "hidden",
                                         .type = OPTION_INTEGER,
                                         .minimum = 1,
                                         .maximum = 1e6,
                                         .fallback = "15000",
                                         .help = "number of random features"},
                                        {.name = "ridge",
                                         .type = OPTION_REAL,
                                         .minimum = 1e-12,
                                         .maximum = 1e12,
                                         .fallback = "0.1",
                                         .help = "ridge of the regression"},
                                        RAIL_FUSION,
                                        {0}};

static status open_primal(struct method_run *run, struct error *error)
{
    *(struct regressor *)run->state =
        (struct regressor){.regression = {.form = REGRESSION_PRIMAL, .ridge = options_real(run->options, "ridge")},
                           .fusion = options_real(run->options, "fusion")};
    return regressor_open(run, (size_t)options_integer(run->options, "hidden"), error);
}

const struct method method_rail_primal = {
    .name = "rail_primal",
    .source = "RAIL, NeurIPS 2024, theorem 1",
    .formula = "Φ = relu(x · randomᵀ), W = (ΦᵀΦ + ridge · I)⁻¹ ΦᵀY; scores = (1 − fusion) · p + fusion · Φ W where "
               "zero-shot p names a learned class, else p",
    .options = options,
    .state_size = sizeof(struct regressor),
    .groups = groups_none,
    .open = open_primal,
    .close = regressor_close,
    .end_task = regressor_end_task,
    .scores = regressor_scores,
    .cost = regressor_cost,
    .keep = regressor_keep};

/* RAIL with a Gaussian kernel and kernel ridge regression, its dual form (rail.h, theorem 2). It keeps the features of all
 * training images of all tasks, and solves a system with as many equations after every task: 4 N² bytes for N images. The
 * 17,600 of X-TAIL (16 for each of 1,100 classes) take 1.3 GiB, the 400,000 of full-shot MTIL would take 600. A resume
 * file has the features alone. */
#include "harness/methods/rail.h"

static const struct option options[] = {{.name = "dual_ridge",
                                         .type = OPTION_REAL,
                                         .minimum = 1e-12,
                                         .maximum = 1e12,
                                         .fallback = "0.001",
                                         .help = "ridge of the regression"},
                                        {.name = "gamma",
                                         .type = OPTION_REAL,
                                         .minimum = 1e-6,
                                         .maximum = 1e6,
                                         .fallback = "0.1",
                                         .help = "gamma of the kernel exp(-gamma * squared distance)"},
                                        RAIL_FUSION,
                                        {0}};

static status open_dual(struct method_run *run, struct error *error)
{
    *(struct regressor *)run->state =
        (struct regressor){.regression = {.form = REGRESSION_DUAL,
                                          .ridge = options_real(run->options, "dual_ridge"),
                                          .gamma = options_real(run->options, "gamma")},
                           .fusion = options_real(run->options, "fusion")};
    return regressor_open(run, 0, error);
}

const struct method method_rail_dual = {
    .name = "rail_dual",
    .source = "RAIL, NeurIPS 2024, theorem 2",
    .formula =
        "α = (K(X, X) + dual_ridge · I)⁻¹ Y, K(a, b) = exp(−gamma · ‖a − b‖²); as rail_primal with K(x, X) α for Φ W",
    .options = options,
    .state_size = sizeof(struct regressor),
    .groups = groups_none,
    .open = open_dual,
    .close = regressor_close,
    .end_task = regressor_end_task,
    .scores = regressor_scores,
    .cost = regressor_cost,
    .keep = regressor_keep};

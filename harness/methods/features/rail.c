/* RAIL (Xu et al., "Advancing Cross-domain Discriminability in Continual Learning of Vision-Language Models", NeurIPS
 * 2024, arXiv 2406.18868): frozen CLIP and a classifier on its image features in closed form, which is not used for images of
 * classes that were not learned:
 *
 *     p = softmax(100 · image · textᵀ) over all classes that the image is compared with
 *     where the best class of p is learned:   (1 − fusion) p + fusion · scores, scores 0 for classes that are not
 *     elsewhere:                              p
 *
 * The public code updates the primal form by batches in float32 (equal but for rounding, which grows with the number of
 * batches), on randomly cropped images; here the sums are in double precision, on images in the evaluation transform. With
 * evaluation.label_space: task, p and the scores are over the classes of the image's own task.
 */
#include "harness/methods/methods.h"
#include "harness/train/services/regression.h"

#define RAIL_FUSION                                                                                                    \
    OPTION_NUMBER(REAL, "fusion", 0, 1, "0.8",                                                                         \
                  "share of the regression's scores in the sum with zero-shot CLIP's probabilities")

/* The primal form: random features and ridge regression. The sums ΦᵀΦ and ΦᵀY are kept and solved after
 * every task, which is its recursive update (theorem 1) but for rounding. Memory does not depend on the number of images:
 * 15,000 hidden features and 1,100 classes take 0.9 GiB for ΦᵀΦ, 0.1 for ΦᵀY, and as much again while the task's equations
 * are solved; a resume file has the former two. */
static const struct option primal_options[] = {
    OPTION_NUMBER(INTEGER, "hidden", 1, 1e6, "15000", "number of random features"),
    OPTION_NUMBER(REAL, "ridge", 1e-12, 1e12, "0.1", "ridge of the regression"),
    RAIL_FUSION,
    {0}};

static status open_primal(struct method_run *run, struct error *error)
{
    *(struct regression *)run->state = (struct regression){.form = REGRESSION_PRIMAL,
                                                           .ridge = options_real(run->options, "ridge"),
                                                           .fusion = options_real(run->options, "fusion")};
    return regression_open(run, method_whole(run, "hidden"), error);
}

const struct method method_rail_primal = {
    .name = "rail_primal",
    .source = "RAIL, NeurIPS 2024, theorem 1",
    .formula = "Φ = relu(x · randomᵀ), W = (ΦᵀΦ + ridge · I)⁻¹ ΦᵀY; scores = (1 − fusion) · p + fusion · Φ W where "
               "zero-shot p names a learned class, else p",
    .options = primal_options,
    .open = open_primal,
    REGRESSION_HOOKS};

/* The dual form (theorem 2): a Gaussian kernel and kernel ridge regression. It keeps the features of all
 * training images of all tasks, and solves a system with as many equations after every task: 4 N² bytes for N images. The
 * 17,600 of X-TAIL (16 for each of 1,100 classes) take 1.3 GiB, the 400,000 of full-shot MTIL would take 600. A resume
 * file has the features alone. */
static const struct option dual_options[] = {
    OPTION_NUMBER(REAL, "dual_ridge", 1e-12, 1e12, "0.001", "ridge of the regression"),
    OPTION_NUMBER(REAL, "gamma", 1e-6, 1e6, "0.1", "gamma of the kernel exp(-gamma * squared distance)"),
    RAIL_FUSION,
    {0}};

static status open_dual(struct method_run *run, struct error *error)
{
    *(struct regression *)run->state = (struct regression){.form = REGRESSION_DUAL,
                                                           .ridge = options_real(run->options, "dual_ridge"),
                                                           .gamma = options_real(run->options, "gamma"),
                                                           .fusion = options_real(run->options, "fusion")};
    return regression_open(run, 0, error);
}

const struct method method_rail_dual = {
    .name = "rail_dual",
    .source = "RAIL, NeurIPS 2024, theorem 2",
    .formula =
        "α = (K(X, X) + dual_ridge · I)⁻¹ Y, K(a, b) = exp(−gamma · ‖a − b‖²); as rail_primal with K(x, X) α for Φ W",
    .options = dual_options,
    .open = open_dual,
    REGRESSION_HOOKS};

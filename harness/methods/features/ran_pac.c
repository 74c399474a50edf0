/* RanPAC (McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for Continual Learning", NeurIPS 2023, arXiv
 * 2307.02251): ridge regression on random features of a frozen tower's features, which decorrelates class prototypes. With
 * directions N(0, 1) and features as they are, not normalised:
 *
 *     Φ = relu(x · randomᵀ), W = (ΦᵀΦ + ridge · I)⁻¹ ΦᵀY over all tasks so far; the ridge is chosen anew with every task
 *
 * Left out is Phase 1, which trains adapters on the first task before all this: it is the row "no Phase 1" of the paper's
 * ablation. Two more differences from the public code (RanPAC/RanPAC at 012927f): sums and solves are in double precision, not
 * float32, and a ridge with which a matrix is not positive definite there is not chosen, while float32's LU gives some answer;
 * x is CLIP's projected image features, not a ViT's before any projection. As in simple_cil.c, zero-shot CLIP, which the paper
 * does not have, answers for an image whose most similar text is a class that was not learned.
 */
#include <float.h>

#include "harness/methods/methods.h"
#include "harness/train/services/regression.h"

static const struct option options[] = {OPTION_NUMBER(INTEGER, "hidden", 1, 1e6, "10000", "number of random features"),
                                        {0}};

static status open(struct method_run *run, struct error *error)
{
    *(struct regression *)run->state =
        (struct regression){.form = REGRESSION_PRIMAL, .validated = true, .fusion = 1, .others = -(double)FLT_MAX};
    return regression_open(run, method_whole(run, "hidden"), error);
}

const struct method method_ran_pac = {
    .name = "ran_pac",
    .source = "RanPAC, NeurIPS 2023, without its Phase 1",
    .formula = "Φ = relu(x · randomᵀ), W = (ΦᵀΦ + λ · I)⁻¹ ΦᵀY, λ by a fifth of the task's images; scores = Φ W where "
               "zero-shot p names a learned class, else p",
    .options = options,
    .open = open,
    REGRESSION_HOOKS};

/* SimpleCIL (Zhou et al., "Revisiting Class-Incremental Learning with Pre-Trained Models: Generalizability and Adaptivity are All
 * You Need", IJCV 2024, arXiv 2303.07338): a frozen tower, and the class whose mean training feature is most similar to an
 * image's, by the cosine.
 *
 * The paper and its public code (LAMDA-PILOT, models/simplecil.py) have classes that were learned and no others. Here zero-shot
 * CLIP, which they do not have, answers for an image whose most similar text is a class that was not learned, as in RAIL; other
 * images are compared with the learned classes alone. So label_space: seen is the paper's, and no text is read there once a
 * class is learned. The paper's features are those of a ViT before any projection; here they are CLIP's image features.
 */
#include <float.h>

#include "harness/methods/methods.h"
#include "harness/train/services/regression.h"

static status open(struct method_run *run, struct error *error)
{
    *(struct regression *)run->state =
        (struct regression){.form = REGRESSION_MEANS, .fusion = 1, .others = -(double)FLT_MAX};
    return regression_open(run, 0, error);
}

const struct method method_simple_cil = {
    .name = "simple_cil",
    .source = "Zhou et al., IJCV 2024",
    .formula = "scores = cosine of x and the mean of a class's x where zero-shot p names a learned class, else p",
    .open = open,
    REGRESSION_HOOKS};

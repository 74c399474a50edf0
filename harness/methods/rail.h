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
#ifndef MTIL_HARNESS_METHODS_RAIL_H
#define MTIL_HARNESS_METHODS_RAIL_H

#include "harness/methods/regressor.h"

#define RAIL_FUSION                                                                                                    \
    {                                                                                                                  \
        .name = "fusion", .type = OPTION_REAL, .minimum = 0, .maximum = 1, .fallback = "0.8",                          \
        .help = "share of the regression's scores in the sum with zero-shot CLIP's probabilities"                      \
    }

#endif

/* RAIL (Xu et al., "Advancing Cross-domain Discriminability in Continual Learning of Vision-Language Models", NeurIPS
 * 2024, arXiv 2406.18868): frozen CLIP and a classifier on its image features in closed form
 * (harness/train/services/regression.h), which is not used for images of classes that were not learned:
 *
 *     p = softmax(100 · image · textᵀ) over all classes that the image is compared with
 *     where the best class of p is learned:   (1 − fusion) p + fusion · scores, scores 0 for classes that are not
 *     elsewhere:                              p
 *
 * Shared by rail_primal.c and rail_dual.c; functions with the arguments of a hook can be used as hooks. The public code
 * updates the primal form by batches in float32 (equal but for rounding, which grows with the number of batches), on
 * randomly cropped images; here the sums are in double precision, on images in the evaluation transform. With
 * evaluation.label_space: task, p and the scores are over the classes of the image's own task.
 */
#ifndef MTIL_HARNESS_METHODS_RAIL_H
#define MTIL_HARNESS_METHODS_RAIL_H

#include "harness/methods/methods.h"
#include "harness/train/services/regression.h"

#define RAIL_FUSION                                                                                                    \
    {                                                                                                                  \
        .name = "fusion", .type = OPTION_REAL, .minimum = 0, .maximum = 1, .fallback = "0.8",                          \
        .help = "share of the regression's scores in the sum with zero-shot CLIP's probabilities"                      \
    }

struct rail {
    struct regression regression;
    struct threads *pool;
    size_t hidden; /* random directions of the primal form; 0: the dual */
};

/* The form's open hooks; hidden 0: the dual form. Refuses sizes that do not fit into the machine's memory. */
status rail_open(struct method_run *run, size_t hidden, double ridge, double gamma, struct error *error);
void rail_close(struct method_run *run);
status rail_end_task(struct method_run *run, const struct task *task, struct error *error);
status rail_scores(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                   float *scores, struct error *error);
void rail_cost(const struct method_run *run, struct method_cost *cost);
status rail_keep(struct method_run *run, const struct serializer *serializer, struct error *error);

/* The scores hook, for columns that are classes first, first + 1, … of all. adapted [n], unless NULL, receives whether
 * the best class of p is learned. */
status rail_fuse(const struct regression *regression, double fusion, size_t first, const float *features, size_t n,
                 size_t classes, float *scores, bool *adapted, struct error *error);

#endif

/* Shared by methods whose scores are a linear map of features of the frozen CLIP, learned in closed form
 * (harness/train/services/regression.h): rail_primal.c, rail_dual.c, ran_pac.c and simple_cil.c. Functions with the arguments of a
 * hook can be used as hooks. What becomes of classes that were not learned: frozen_classes_fuse.
 */
#ifndef MTIL_HARNESS_METHODS_REGRESSOR_H
#define MTIL_HARNESS_METHODS_REGRESSOR_H

#include "harness/methods/methods.h"
#include "harness/train/services/regression.h"

struct regressor {
    struct regression regression;
    struct threads *pool;
    double fusion, others; /* frozen_classes.share and .others */
};

/* For open, with form, ridge and what else the form has in the regression. hidden: random directions of the primal form.
 * Refuses sizes that do not fit into the machine's memory. */
status regressor_open(struct method_run *run, size_t hidden, struct error *error);
void regressor_close(struct method_run *run);
status regressor_end_task(struct method_run *run, const struct task *task, struct error *error);
status regressor_scores(struct method_run *run, const struct task *task, const float *features, size_t n,
                        size_t classes, float *scores, struct error *error);
void regressor_cost(const struct method_run *run, struct method_cost *cost);
status regressor_keep(struct method_run *run, const struct serializer *serializer, struct error *error);

/* The scores hook, for columns that are classes first, first + 1, … of all. */
status regressor_fuse(const struct regressor *regressor, size_t first, const float *features, size_t n, size_t classes,
                      float *scores, bool *adapted, struct error *error);

#endif

/* A pass over training batches of a task that sums, for every layer with deltas, the covariance of its inputs, the inputs themselves
 * or the gradient of the cross-entropy with respect to its whole weight. Nothing is trained.
 *
 *     struct layer_pass pass;
 *     TRY(layer_pass_run(&pass, run, task, LAYER_COVARIANCE, 0, error));   // in begin_task: all ranks do their shares
 *     for (size_t i = 0; i < pass.count; i++) … pass.list[i].values [rows, columns] …
 *     layer_pass_free(&pass);
 *
 * Query, key and value are rows of one layer (delta_entry.linear, delta->first).
 *
 * struct subspace is a growing subspace of a layer's inputs that later tasks leave alone (GPM: Saha et al., ICLR 2021;
 * in InfLoRA, Liang & Li, CVPR 2024, and KeepLoRA, ICLR 2026): orthonormal columns U, kept as rows.
 *
 *     TRY(subspace_extend(&space, matrix, n, columns, 0.98, error));   // until U covers 98% of the energy of matrix [n, columns]
 *     subspace_remove(&space, matrix, columns);                        // matrix − U Uᵀ matrix
 */
#pragma once

#include "harness/train/method.h"
#include "harness/train/serializer.h"

struct subspace {
    size_t n;      /* of a vector */
    int32_t rank;  /* vectors */
    double *basis; /* [rank, n], on the host */
};

void subspace_free(struct subspace *space); /* zeros are allowed */

void subspace_remove(const struct subspace *space, double *matrix, size_t columns);

/* Adds left singular vectors of the rest of matrix [n, columns] outside the subspace, in their order, until the
 * covered share of Σ s² is no longer below `share`. An empty subspace takes the vectors before which the running
 * share is below it, at least one, as GPM's code does. */
status subspace_extend(struct subspace *space, const double *matrix, size_t n, size_t columns, double share,
                       struct error *error);

/* Covariance [in, in]: Σ x xᵀ over the inputs of a batch, not centred; of texts, padding included. Gradient [out, in] of a batch's
 * loss. Both are means over the batches. Inputs: F Fᵀ [in, in] of F [in, inputs of a batch], the sum over the batches, position by
 * position, which must be of equal size. */
enum layer_sum_kind { LAYER_COVARIANCE, LAYER_GRADIENT, LAYER_INPUTS };

struct layer_sum {
    struct linear_tap tap;
    struct linear *linear;
    size_t rows, columns;
    float *sum;            /* device */
    struct tensor inputs;  /* device [inputs of a batch, in], from the first batch on, like the next one */
    const int32_t *places; /* 0, 1, … */
    struct arena *arena;
    double *values;
};

struct layer_pass {
    size_t count;
    struct layer_sum *list;
};

/* batches: 0 for as many as the task's images fill. The task need not be the one that is about to be trained; the model's classes
 * are as before afterwards. After a failure there is nothing to free. */
status layer_pass_run(struct layer_pass *pass, struct method_run *run, const struct task *task,
                      enum layer_sum_kind kind, size_t batches, struct error *error);
void layer_pass_free(struct layer_pass *pass);

/* For methods that fix A of a task's deltas by a pass over its batches, outside spaces that earlier tasks use, and train B. Their state is
 * a struct designed. */
struct designed {
    size_t count;
    struct subspace *spaces; /* [count], whose sizes the method's open sets */
};

struct design {
    size_t sets;                        /* of rows of a task; the last one is trained */
    enum layer_sum_kind inputs, starts; /* the sums of the passes after and before a task */
    size_t (*batches)(const struct method_run *run, const struct task *task); /* of a pass; 0: see layer_pass_run */

    /* Extends the spaces by the pass over a task that has been trained; pass and task NULL: before the first one. */
    status (*protect)(struct method_run *run, const struct task *task, const struct layer_pass *pass,
                      struct error *error);
    /* Writes the task's rows. */
    status (*start)(struct method_run *run, const struct task *task, const struct layer_pass *pass,
                    struct error *error);
};

status designed_open(struct method_run *run,
                     struct error *error); /* a space per layer, in the order of struct layer_pass */
void designed_close(struct method_run *run);

/* The pass over the task before is made here, where all ranks do their shares. Values of a pass may be overwritten. */
status designed_begin_task(struct method_run *run, const struct task *task, bool resumed, const struct design *design,
                           struct error *error);
status designed_keep(struct method_run *run, const char *name, const struct serializer *serializer,
                     struct error *error);

/* Several changes of a model as one: ConDU's unified change, a mask and a factor per task (Gao et al., ICLR 2026, arXiv
 * 2503.10705, "unifying"). Of the changes δ_m of tasks m, entry by entry, and their sign s (+1 where the mean of all δ_m is
 * above 0, −1 elsewhere):
 *
 *     mask_m = [δ_m · s > 0]     unified = s · max over m of |mask_m δ_m|
 *     r_m = Σ over tensors of mean |δ_m|  /  Σ over tensors of mean |mask_m · unified|     δ_m ≈ r_m · mask_m · unified
 *
 *     TRY(unified_open(&unified, n, error));
 *     TRY(unified_fit(&unified, tasks, ends, tensors, read, context, error));
 *     unified_rebuild(&unified, m, first, count, delta);
 *     unified_close(&unified);
 *
 * Host memory: 4 bytes a value, and a bit for each task. Sums are of floats in the order of the tasks, as PyTorch's are, as
 * a sign depends on their rounding; means are in double precision.
 */
#pragma once

#include "harness/train/serializer.h"

struct unified {
    size_t n, tasks;
    float *values;   /* [n] */
    uint8_t **masks; /* [tasks] [n bits], the lowest bit first */
    float *rescale;  /* r [tasks] */
};

status unified_open(struct unified *unified, size_t n, struct error *error);
void unified_close(struct unified *unified); /* of zeros is allowed */

/* Unifies the changes of `tasks` tasks, at least as many as before. Tensor k ends before value ends[k], where the next begins. read
 * gives values first … first + count − 1 of a task's change; until it has given those of all tasks, unified_rebuild gives
 * what it gave before. After a failure, unified_close. */
status unified_fit(struct unified *unified, size_t tasks, const size_t *ends, size_t tensors,
                   void (*read)(const void *context, size_t task, size_t first, size_t count, float *delta),
                   const void *context, struct error *error);

bool unified_mask(const struct unified *unified, size_t task, size_t value);

/* delta [count] = r_m · mask_m · unified */
void unified_rebuild(const struct unified *unified, size_t task, size_t first, size_t count, float *delta);

status unified_keep(struct unified *unified, size_t tasks, const struct serializer *serializer, struct error *error);

/* Merging of whole models. τ_t = θ_t − θ_0 is the change of task t. A rule keeps what it needs of τ_0 … τ_t and
 * merges them into τ; θ_0 + scale · τ is evaluated and saved. θ are the values of all trained groups (model/model.h),
 * tensor after tensor, on the host: a GPU need not hold models that wait.
 *
 *     static const struct merge_rule rule = {.sums = 1, .add = add, .delta = merged_sum};       // methods/merged/mag_max.c
 *     .state_size = sizeof(struct merged), .open = open_largest, MERGED_HOOKS
 *
 * The functions with the arguments of a hook are hooks of methods whose state begins with a struct merged.
 *
 * struct unified is several changes of a model as one: ConDU's unified change, a mask and a factor per task (Gao et
 * al., ICLR 2026, arXiv 2503.10705, "unifying"). Of the changes δ_m of tasks m, entry by entry, and their sign s (+1
 * where the mean of all δ_m is above 0, −1 elsewhere):
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

#include "harness/train/method.h"
#include "harness/train/serializer.h"

struct merged_tensor {
    struct parameters *group;
    const struct parameter *parameter;
    size_t first; /* of its values */
};

struct merged {
    const struct merge_rule *rule;
    size_t n, tensors;
    struct merged_tensor *tensor; /* [tensors] */
    float *initial, *trained; /* θ_0; θ_t of the last task: like the arrays, not written on ranks but the leader */
    int32_t tasks;            /* that the arrays hold */
    float *sum[2];            /* the rule's arrays [n] */
    uint16_t *count[2];
};

struct merge_rule {
    size_t sums, counts; /* arrays that it keeps; they are 0 before the first task */
    size_t scratch;      /* arrays of n floats that `add` needs while it runs */
    /* Adds merged_change(merged, i) of all values to the arrays. */
    status (*add)(struct method_run *run, struct error *error);
    /* delta [n] = τ of values first … first + n − 1 after merged->tasks tasks */
    void (*delta)(const struct merged *merged, size_t first, size_t n, float *delta);
};

/* Keys under `method`: what is trained; where a task's training starts, and the scale, for merged_evaluation_begin. */
#define MERGED_TRAIN                                                                                                   \
    OPTION_ONE_OF("train", "weights|deltas", "weights",                                                                \
                  "trained parameters: all weights, or A and B of low-rank deltas")
#define MERGED_START(default)                                                                                          \
    OPTION_ONE_OF("start", "initial|previous", default,                                                                \
                  "weights from which a task is trained: the initial ones, or those of the task before")
#define MERGED_SCALE(default, text) OPTION_NUMBER(REAL, "scale", 0, 10, default, text)

#define MERGED_HOOKS                                                                                                   \
    .one_delta = true, .groups = merged_groups, .begin_task = merged_begin_task, .end_task = merged_end_task,          \
    .evaluation_begin = merged_evaluation_begin, .evaluation_end = merged_evaluation_end, .close = merged_close,       \
    .cost = merged_cost, .keep = merged_keep

static inline float merged_change(const struct merged *merged, size_t i)
{
    return merged->trained[i] - merged->initial[i];
}

unsigned merged_groups(const struct options *options);

/* To be called in the method's open, when the model has its initial weights. */
status merged_open(struct method_run *run, const struct merge_rule *rule, struct error *error);
void merged_close(struct method_run *run);
status merged_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error);
status merged_end_task(struct method_run *run, const struct task *task, struct error *error);
status merged_evaluation_begin(struct method_run *run, struct error *error);
status merged_evaluation_end(struct method_run *run, struct error *error); /* for methods with the key `start` */
void merged_cost(const struct method_run *run, struct method_cost *cost);
status merged_keep(struct method_run *run, const struct serializer *serializer, struct error *error);

/* θ ← θ_0 + scale · delta; delta NULL: θ_0 */
status merged_set(struct method_run *run, double scale,
                  void (*delta)(const struct merged *merged, size_t first, size_t n, float *delta),
                  struct error *error);

/* A rule's delta: sum[0]. */
void merged_sum(const struct merged *merged, size_t first, size_t n, float *delta);

/* Zeros on the host, of a size that the model determines; memory: the address of the pointer. */
status merged_take(void *memory, size_t count, size_t size, struct error *error);

struct unified {
    size_t n, tasks;
    float *values;   /* [n] */
    uint8_t **masks; /* [tasks] [n bits], the lowest bit first */
    float *rescale;  /* r [tasks] */
};

status unified_open(struct unified *unified, size_t n, struct error *error);
void unified_close(struct unified *unified); /* of zeros is allowed */

/* Unifies the changes of `tasks` tasks, at least as many as before. Tensor k ends before value ends[k], where the
 * next begins. read gives values first … first + count − 1 of a task's change; until it has given those of all tasks,
 * unified_rebuild gives the previous changes. After a failure, unified_close. */
status unified_fit(struct unified *unified, size_t tasks, const size_t *ends, size_t tensors,
                   void (*read)(const void *context, size_t task, size_t first, size_t count, float *delta),
                   const void *context, struct error *error);

bool unified_mask(const struct unified *unified, size_t task, size_t value);

/* delta [count] = r_m · mask_m · unified */
void unified_rebuild(const struct unified *unified, size_t task, size_t first, size_t count, float *delta);

status unified_keep(struct unified *unified, size_t tasks, const struct serializer *serializer, struct error *error);

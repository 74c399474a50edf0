/* Merging experts during training, when it is due, and freezing them after a task (Park, Algorithm 1; adapters/README.md).
 *
 *     struct merge_plan plan = {.moments = MOMENTS_KEEP};
 *     TRY(merge_policy_find(&plan.policy, "most_used", error));
 *     TRY(merge_combiner_find(&plan.combiner, "mean", error));             // merge/policies.h
 *     if (…)  // the schedule                                              // events: what was done or skipped
 *         TRY(adapters_merge(adapters, &plan, &(struct merge_call){.options = options, .rng = rng}, &events, error));
 *
 *     struct freeze_plan frozen = {.top_k = 2, .options = options};
 *     TRY(freeze_policy_find(&frozen.policy, "most_used", error));
 *     TRY(adapters_freeze(adapters, &frozen, rng, &events, error));        // after the task
 *
 * A policy looks at a tower and decides which expert is replaced by a combination of which others; the bank carries it
 * out. One policy is one file in merge/ and a name in merge/policies.h; merge/none.c is the template to copy.
 */
#pragma once

#include "adapters/adapter.h"
#include "core/option.h"
#include "core/rng.h"

enum { MERGE_SOURCES = WEIGHTED_SUM_INPUTS };

struct merge_combiner; /* merge/policies.h */

enum merge_skip { MERGE_DONE, MERGE_TARGET_IS_SOURCE, MERGE_NO_FREE_EXPERT, MERGE_DECLINED };

/* target becomes a combination of its sources: Σ weight[i] · source[i], or, where all weights are 0, the combiner's
 * result. A policy of this program leaves the weights at 0: the combiner sets them. With a skip, it is the merge that
 * would have been done. target −1: no expert is free. */
struct merge {
    size_t block; /* number of the tower's bank */
    int target;
    size_t sources;
    int source[MERGE_SOURCES];
    float weight[MERGE_SOURCES];
    enum merge_skip skip;
};

struct merge_list {
    size_t count;
    struct merge *merges;
};

/* Statistics that are collected only when a policy or a combiner asks for them (adapters/statistics.h). */
enum merge_needs {
    NEEDS_PAIR_COUNTS = 1,        /* which experts are chosen together */
    NEEDS_NEXT_COUNTS = 2,        /* which experts of the next block follow */
    NEEDS_PROBES = 4,             /* inputs of the blocks */
    NEEDS_SIMILARITY = 8,         /* of the experts' outputs on the probes */
    NEEDS_SQUARED_GRADIENTS = 16, /* of every weight, summed over all steps so far */
    NEEDS_EARLIER_COUNTS = 32     /* selection counts of the tasks before this one */
};

/* A tower as a policy sees it, on the host. Counts are since the task began; statistics that the policy does not need are
 * NULL. */
struct merge_view {
    enum tower tower;
    size_t blocks, experts;
    const int32_t *counts, *frozen; /* [blocks, E] */
    const int32_t *pairs;   /* [blocks, E, E] samples that chose both; on the diagonal, samples that chose the expert */
    const int32_t *earlier; /* [blocks, E] counts of all tasks before this one */
    const int32_t *next;    /* [blocks − 1, E, E] samples that chose e here and f in the next block */
    const float *similarity; /* [blocks, E, E] mean cosine of two experts' outputs */
};

enum merge_moment { MERGE_AFTER_STEP, MERGE_AFTER_TASK };

struct merge_call {
    enum merge_moment moment;
    size_t task, iteration, iterations; /* iteration: of the task, from 1; 0 after the task */
    size_t before, all;                 /* iterations of the tasks before this one; of all tasks */
    size_t epoch_length;                /* iterations of a pass over the task's images; 0: not known */
    size_t more;                        /* iterations after the last pass (training.reference_iterations) */
    const struct options *options;      /* the policy's; NULL: its defaults */
    struct rng rng;
    void *state; /* the policy's own, of both towers */
    /* of a policy that asks a program: */
    const char *folder; /* for its log */
    size_t blocks[TOWERS], experts;
    void **program; /* NULL until it is started; for close */
    double *asking; /* seconds that it took are added */
};

struct merge_policy {
    const char *name, *source; /* source: where it is published */
    const char *formula;       /* what defines it, in one line */
    unsigned needs;            /* enum merge_needs */
    unsigned offers;           /* likewise: collected as well, where the configuration has them */
    const struct option *options;
    size_t state_size; /* plain data without pointers, zero at first, saved with the run */
    bool after_task;   /* it is asked at the end of a task, too, before experts are frozen */
    /* Called once for every task, before the first one. ERROR_ARGUMENT where the policy would do nothing in the task.
     * NULL: it always does something. */
    status (*check)(const struct merge_call *call, struct error *error);
    /* A policy has one of the two; both NULL: it follows no schedule and combines nothing. */
    void (*plan)(const struct merge_view *view, const struct merge_call *call, struct merge_list *list);
    status (*ask)(const struct merge_view *view, const struct merge_call *call, struct merge_list *list,
                  struct error *error);
    void (*close)(void *program); /* what ask started */
    /* Or, of a policy that has no plan: changes the experts of both towers after every step of a task, on the device, without
     * targets and events. */
    status (*after_step)(struct adapters *adapters, const struct merge_call *call, struct error *error);
};

bool merge_policy_plans(const struct merge_policy *policy);
status merge_policy_find(const struct merge_policy **policy, const char *name, struct error *error);
const struct merge_policy *merge_policy_at(size_t index); /* NULL past the last one */

void merge_list_add(struct merge_list *list, const struct merge *merge);

/* What happens to the optimizer's moments and step count of the expert that is replaced. */
enum merge_moments { MOMENTS_KEEP, MOMENTS_AVERAGE, MOMENTS_RESET };
#define MERGE_MOMENTS_CHOICES "keep|average|reset"

enum expert_change_kind { CHANGE_MERGE, CHANGE_SKIP, CHANGE_FREEZE };

struct expert_change {
    enum expert_change_kind kind;
    enum tower tower;
    struct merge merge; /* of a freeze: source[0 … sources−1] are the experts picked, in order of rank */
};

struct expert_changes {
    size_t count;
    struct expert_change *changes;
};
void expert_changes_clear(struct expert_changes *events);
void expert_changes_free(struct expert_changes *events);
const char *merge_skip_name(enum merge_skip skip); /* "", "target_is_source", "no_free_expert", "declined" */

/* Effects of a merge (harness/train/services/merging.h). */
struct merge_effect {
    enum tower tower;
    size_t block, position, iteration; /* of the merge; position: among the changes of that block then */
    size_t known;                   /* iteration after which the effects are known; one past the task's last: its end */
    size_t iterations;              /* of the task after the merge, at most 50; during these: */
    int64_t chosen, choices;        /* how often the merged expert was chosen, and all of the block together */
    double loss_before, loss_after; /* means over up to 50 iterations; NAN: unknown */
    double distance;                /* statistics_distance */
};
struct merge_effect_list {
    size_t count;
    struct merge_effect *effects;
};

/* When experts are merged within a task. One schedule is one file in schedule/ and a name in MERGE_SCHEDULES; every.c is the
 * shortest to copy. All of them count iterations of the task; M is merge.every.
 *
 *     const struct merge_schedule *schedule = merge_schedule_at(options_choice(merge, "schedule"));
 *     if (schedule->due != NULL && schedule->due(&(struct schedule_call){.iteration = i, .iterations = n, .every = 100, …}))
 *         TRY(adapters_merge(…));
 */

/* Plain data, zero when a task begins, saved with the run. */
struct schedule_state {
    double previous; /* mean loss of the M iterations before the last M */
    double windows;  /* windows of M iterations that had a loss */
};

struct schedule_call {
    size_t iteration, iterations; /* the iteration that was just finished, from 1, of how many */
    size_t every;                 /* M */
    double least_fall;            /* merge.least_fall */
    double loss;                  /* with needs_loss: mean over the last M iterations; NAN: none of them counted */
    struct schedule_state *state; /* with needs_loss */
};

struct merge_schedule {
    const char *name, *help;
    bool after_task; /* experts are merged when the task ends, before some are frozen, whatever the policy says */
    bool needs_loss; /* it is asked only after every M-th iteration, with the loss */
    bool (*due)(const struct schedule_call *call); /* NULL: never after an iteration */
};

#define MERGE_SCHEDULES(X) X(every) X(once) X(end_of_task) X(warmup_decay) X(plateau)
#define DECLARE(name) extern const struct merge_schedule schedule_##name;
MERGE_SCHEDULES(DECLARE)
#undef DECLARE

#define MERGE_SCHEDULE_NAME(name) "|" #name
#define MERGE_SCHEDULE_CHOICES (&MERGE_SCHEDULES(MERGE_SCHEDULE_NAME)[1])

/* The schedules in the order of MERGE_SCHEDULES, which is the order of the option's choices; NULL past the last one. */
const struct merge_schedule *merge_schedule_at(size_t index);

/* Which experts are merged, how and when. */
struct merge_plan {
    const struct merge_policy *policy;
    const struct merge_combiner *combiner;                   /* NULL: the mean */
    const struct options *policy_options, *combiner_options; /* NULL where it has none */
    enum merge_moments moments;
    const struct merge_schedule *schedule; /* NULL: the caller of adapters_merge decides */
    size_t every;                          /* iterations between merges, or as the schedule says */
    double least_fall;
    bool analysis; /* whether to record the effects of merges; no result depends on it */
    float noise;   /* standard deviation of the noise on a merged tensor, as a share of the tensor's own; 0: none */
};
unsigned merge_needs(const struct merge_plan *plan); /* enum merge_needs of policy, target and combiner */

/* Plans and carries out the merges of both towers, image first; appends an event for every merge and skip. */
status adapters_merge(struct adapters *adapters, const struct merge_plan *plan, const struct merge_call *call,
                      struct expert_changes *events, struct error *error);

/* For policies that leave their target to the suite: entries of their options, and their needs. least_used: the least
 * used expert that is not frozen (ties: the lowest index), and a skip where it is one of the sources; random_free: a
 * random one that is neither a source nor frozen; least_used_any: the least used, frozen or not (Park, Algorithm 1,
 * line 20, to the letter), which stays frozen if it was, as no line thaws an expert; least_used_ever: the least used
 * since the run began, of those that are not frozen, so that experts of earlier tasks are kept; noise: the least
 * used, which becomes the combiner's result plus noise. A skip where there is none. */
enum merge_target {
    TARGET_LEAST_USED,
    TARGET_LEAST_USED_ANY,
    TARGET_LEAST_USED_EVER,
    TARGET_RANDOM_FREE,
    TARGET_NOISE
};
#define MERGE_TARGET_OPTIONS(by_default)                                                                               \
    OPTION_ONE_OF("target", "least_used|least_used_any|least_used_ever|random_free|noise", by_default,                 \
                  "expert that is replaced: the one that the task used least of those that are not frozen, or of all " \
                  "(least_used_any), the one that all tasks so far used least (least_used_ever), a random one that "   \
                  "is neither source nor frozen, or the least used with noise added to the merged weights",            \
                  .incidental = "least_used"),                                                                         \
        OPTION_NUMBER(REAL, "noise", 0, 10, "0.01",                                                                    \
                      "standard deviation of the noise of target: noise, as a share of the standard deviation of "     \
                      "each merged tensor",                                                                            \
                      .when = "target=noise", .written = true, .incidental = "0.01")
void merge_choose_target(const struct merge_view *view, const struct merge_call *call, struct merge *merge);

/* For policies: a random target as above, and a random expert that is not a source yet. One draw for the block and the
 * number of sources so far; −1: none is left. */
void merge_onto_random_free(const struct merge_view *view, const struct rng *rng, struct merge *merge);
int merge_draw_source(const struct merge_view *view, const struct rng *rng, const struct merge *merge);

/* For policies: in every block the two experts of highest score (ties: the lowest first one, then the lowest second
 * one) replace the target; a block without a score above `above` has no merge. */
typedef double merge_score(const struct merge_view *view, size_t block, size_t first, size_t second);
void merge_best_pairs(const struct merge_view *view, const struct merge_call *call, merge_score *score, double above,
                      struct merge_list *list);

/* Indices of the n highest counts, highest first, ties: the lowest index. For policies. */
void highest_counts(const int32_t *counts, size_t experts, size_t n, int *highest);

/* --- Freezing: frozen experts are still used, but neither trained nor merged into. The frozen set of a block only grows; an
 * expert may be picked again. One policy is one file in freeze/ and a name in FREEZE_POLICIES; freeze/none.c is the template to
 * copy. --- */

/* One block of a tower, on the host. */
struct freeze_view {
    enum tower tower;
    size_t block, experts;
    const int32_t *counts; /* [E] since the task began */
};

struct freeze_plan;

struct freeze_policy {
    const char *name, *source;
    const char *formula;          /* what defines it, in one line */
    const struct option *options; /* its keys under `adapter` */
    bool counts;                  /* it freezes adapter.freeze_top_k experts */
    /* Experts to freeze, in order of rank, in picked [E]; returns how many. */
    size_t (*pick)(const struct freeze_view *view, const struct freeze_plan *plan, const struct rng *rng, int *picked);
};

struct freeze_plan {
    const struct freeze_policy *policy;
    size_t top_k;                  /* adapter.freeze_top_k */
    const struct options *options; /* section adapter */
};

#define FREEZE_POLICIES(X) X(most_used) X(none) X(share) X(random)
#define DECLARE(name) extern const struct freeze_policy freeze_##name;
FREEZE_POLICIES(DECLARE)
#undef DECLARE

status freeze_policy_find(const struct freeze_policy **policy, const char *name, struct error *error);
const struct freeze_policy *freeze_policy_at(size_t index); /* NULL past the last one */

/* Freezes in all blocks of both towers, image first; appends events with at most MERGE_SOURCES experts each (NULL: not
 * wanted). rng is of the task. */
status adapters_freeze(struct adapters *adapters, const struct freeze_plan *plan, struct rng rng,
                       struct expert_changes *events, struct error *error);

/* When experts are merged within a task. One schedule is one file in this folder and a name in MERGE_SCHEDULES; every.c is the
 * shortest to copy. All of them count iterations of the task; M is merge.every.
 *
 *     const struct merge_schedule *schedule = merge_schedule_at(options_choice(merge, "schedule"));
 *     if (schedule->due != NULL && schedule->due(&(struct schedule_call){.iteration = i, .iterations = n, .every = 100, …}))
 *         TRY(adapters_merge(…));
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* In the order of MERGE_SCHEDULES, which is the order of the option's choices; NULL past the last one. */
const struct merge_schedule *merge_schedule_at(size_t index);

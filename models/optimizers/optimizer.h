/* Optimizers change weights by their gradients. Each is one file in this folder and a name in OPTIMIZERS; sgd.c is the
 * shortest to copy. Its arithmetic is an operation of models/backend.h.
 *
 *     const struct optimizer *optimizer = optimizer_at(options_choice(training, "optimizer"));
 *     struct update_rule rule = optimizer->rule;            // with the numbers it was published with
 *     rule.weight_decay = 0.1;
 *     TRY(parameters_step(group, state, &rule, error));
 */
#pragma once

#include <stddef.h>

#include "models/parameters.h"

struct optimizer {
    const char *name, *source;
    const char *formula;     /* of a step, in one line */
    bool one_moment;         /* whether it has no second moment */
    bool has_momentum;       /* whether it reads rule->momentum */
    struct update_rule rule; /* default hyperparameters */
    status (*step)(struct backend *backend, const struct update *update, const struct update_rule *rule,
                   struct error *error);
};

#define OPTIMIZERS(X) X(adamw) X(sgd) X(lamb)
#define DECLARE(name) extern const struct optimizer optimizer_##name;
OPTIMIZERS(DECLARE)
#undef DECLARE

#define OPTIMIZER_NAME(name) "|" #name
#define OPTIMIZER_CHOICES (&OPTIMIZERS(OPTIMIZER_NAME)[1])

/* The optimizers in the order of OPTIMIZERS, which is the order of the option's choices; NULL past the last one. */
const struct optimizer *optimizer_at(size_t index);

/* The learning rate over a task's iterations: linear warm-up, then cosine to 0 at `iterations`. */
struct schedule {
    double peak;
    size_t warmup, iterations;
};

/* For iteration i, counted from 0: peak · (i + 1) / warmup while i < warmup, then peak · ½ (1 + cos(π (i − warmup) /
 * (iterations − warmup))). */
double schedule_rate(const struct schedule *schedule, size_t iteration);

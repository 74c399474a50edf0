/* As many merges as `every` has in a task of I iterations, n = ⌊I / M⌋, but the rate of merging rises linearly from 0 to twice
 * that of `every` at the middle of the task and falls back to 0: by iteration i, ⌊n · F(i / I)⌋ merges are due, with
 * F(x) = 2x² up to the middle and 1 − 2(1 − x)² from there on. Several that become due at once are done as one. */
#include <math.h>

#include "adapters/merge.h"

static double merges_by(const struct schedule_call *call, size_t iteration)
{
    size_t merges = call->iterations / call->every;
    double n = (double)merges, x = (double)iteration / (double)call->iterations;
    return floor(n * (x <= 0.5 ? 2 * x * x : 1 - 2 * (1 - x) * (1 - x)));
}

static bool due(const struct schedule_call *call)
{
    return merges_by(call, call->iteration) > merges_by(call, call->iteration - 1);
}

const struct merge_schedule schedule_warmup_decay = {
    .name = "warmup_decay", .help = "as often as every, but most often in the middle of the task", .due = due};

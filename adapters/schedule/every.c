/* After every M-th iteration: Park, Algorithm 1, line 18. */
#include "adapters/merge.h"

static bool due(const struct schedule_call *call)
{
    return call->iteration % call->every == 0;
}

const struct merge_schedule schedule_every = {.name = "every", .help = "after every M-th iteration", .due = due};

/* After an M-th iteration if the loss has not fallen: the mean loss of the last M iterations is above (1 − least_fall) times
 * the mean of the M before. The first comparison is after 2M iterations. Skipped iterations do not count; a window of M
 * skipped iterations is ignored. */
#include <math.h>

#include "adapters/merge.h"

static bool due(const struct schedule_call *call)
{
    struct schedule_state *state = call->state;
    if (isnan(call->loss))
        return false;
    bool fell = state->windows == 0 || call->loss <= (1 - call->least_fall) * state->previous;
    state->previous = call->loss;
    state->windows++;
    return !fell;
}

const struct merge_schedule schedule_plateau = {.name = "plateau",
                                                .help = "after an M-th iteration by which the loss has not fallen",
                                                .needs_loss = true,
                                                .due = due};

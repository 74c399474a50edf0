/* After iteration M alone. */
#include "adapters/merge.h"

static bool due(const struct schedule_call *call)
{
    return call->iteration == call->every;
}

const struct merge_schedule schedule_once = {.name = "once", .help = "after iteration M alone", .due = due};

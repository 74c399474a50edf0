/* What watchers of the database read of a run that goes on (results/store/live.h). */
#include <math.h>

#include "harness/run/session.h"
#include "harness/scenario/data.h"
#include "results/store/live.h"

void session_report_live(void *context, const struct progress_news *news)
{
    const struct session *s = context;
    const struct progress_state *state = news->state;
    size_t current = s->task != NULL ? s->task->index + 1 : 0; /* also while images are decoded or encoded for it */
    struct live live = {.task = (int64_t)(state->task > 0 ? state->task : current),
                        .tasks = (int64_t)s->run->data.task_count,
                        .activity = state->activity,
                        .subject = state->subject != NULL ? state->subject : "",
                        .step = (int64_t)state->step,
                        .steps = (int64_t)state->steps,
                        .loss = isfinite(state->loss) ? state->loss : 0,
                        .images_per_second = news->images_per_second,
                        .seconds_left = news->seconds_left,
                        .done = news->done};
    live_write(s->sequence->store, s->recorder.id, &live);
}

/* A training step as the trainer makes it: computed, then recorded where the backend can, then replayed.
 *
 *     struct repeated step = {.body = forward_and_backward, .context = bench};
 *     must(repeated_run(backend, &step, &error));
 *     must(wait_for_device(backend, loss, &error));
 *     backend->ops->recording_destroy(backend, &step.recording);
 */
#pragma once

#include "models/backend.h"

struct repeated {
    recorded_body body;
    void *context;
    struct recording recording;
    bool ran;
};

static inline status repeated_run(struct backend *backend, struct repeated *r, struct error *failure)
{
    const struct backend_ops *ops = backend->ops;
    if (r->recording.owner != NULL)
        return ops->replay(backend, &r->recording, failure);
    TRY(r->ran ? ops->record(backend, &r->recording, r->body, r->context, failure) : r->body(r->context, failure));
    r->ran = true;
    return OK;
}

/* Until the device has done what it was asked for; any: a value on it. */
static inline status wait_for_device(struct backend *backend, const float *any, struct error *failure)
{
    float value;
    return backend->ops->download(backend, &value, any, sizeof value, failure);
}

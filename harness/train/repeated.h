/* Operations that are the same for all batches of one size. Those of the largest size seen are recorded the second time and
 * replayed from then on; other batches, and all on backends that cannot record, run plainly.
 *
 *     struct repeated step = {.backend = backend, .log = log, .name = name, .what = "iterations", .body = compute, .context = &x};
 *     for (each batch)
 *         TRY(repeated_run(&step, batch.total, error));
 *     repeated_close(&step);
 */
#pragma once

#include "core/status.h"
#include "models/backend.h"

struct repeated {
    struct backend *backend;
    const struct log *log;
    const char *name, *what; /* for the warning that they cannot be recorded: "aircraft", "iterations" */
    recorded_body body;      /* at the same addresses for batches of one size (backend.h, record) */
    void *context;
    bool plainly; /* nothing is recorded (any more) */
    struct recording recording;
    size_t largest, recorded; /* batches; 0: none */
};

status repeated_run(struct repeated *repeated, size_t batch, struct error *error);
void repeated_close(struct repeated *repeated);

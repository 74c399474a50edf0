#include "harness/train/repeated.h"

static status record(struct repeated *r, size_t batch, struct error *error)
{
    r->plainly = true;
    TRY(r->backend->ops->record(r->backend, &r->recording, r->body, r->context, error));
    if (r->recording.owner != NULL)
        r->recorded = batch;
    else if (r->recording.refused.code != OK)
        log_warn(r->log, "%s: %s cannot be recorded, so each is launched separately, which is slower: %s", r->name,
                 r->what, r->recording.refused.message);
    return OK;
}

status repeated_run(struct repeated *r, size_t batch, struct error *error)
{
    if (r->recorded == batch && batch > 0)
        return r->backend->ops->replay(r->backend, &r->recording, error);
    if (!r->plainly && r->largest == batch)
        return record(r, batch, error);
    if (r->largest < batch)
        r->largest = batch;
    return r->body(r->context, error);
}

void repeated_close(struct repeated *r)
{
    r->backend->ops->recording_destroy(r->backend, &r->recording);
}

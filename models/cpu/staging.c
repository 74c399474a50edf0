/* Operations read staged data where the host writes it: nothing is copied, and nothing is recorded. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/cpu/cpu.h"

static uint8_t *buffer_of(const struct staging_queue *queue, uint64_t number)
{
    return (uint8_t *)queue->owner + number % STAGING_SLOTS * queue->bytes;
}

status cpu_staging_open(struct backend *backend, struct staging_queue *queue, size_t bytes, struct error *error)
{
    (void)backend;
    *queue = (struct staging_queue){.bytes = bytes, .owner = malloc(array_size(bytes, STAGING_SLOTS))};
    return queue->owner != NULL
               ? OK
               : error_set(error, ERROR_MEMORY, "memory: no %d buffers of %zu bytes for batches", STAGING_SLOTS, bytes);
}

status cpu_staging_acquire(struct backend *backend, struct staging_queue *queue, void **host, struct error *error)
{
    (void)backend;
    (void)error;
    assert(queue->sent - queue->released < STAGING_SLOTS);
    *host = buffer_of(queue, queue->sent);
    return OK;
}

status cpu_staging_send(struct backend *backend, struct staging_queue *queue, size_t bytes, struct error *error)
{
    (void)backend;
    (void)error;
    assert(bytes <= queue->bytes);
    (void)bytes;
    queue->sent++;
    return OK;
}

status cpu_staging_receive(struct backend *backend, struct staging_queue *queue, const void **device,
                           struct error *error)
{
    (void)backend;
    (void)error;
    assert(queue->received < queue->sent && queue->received == queue->released);
    *device = buffer_of(queue, queue->received++);
    return OK;
}

status cpu_staging_release(struct backend *backend, struct staging_queue *queue, struct error *error)
{
    (void)backend;
    (void)error;
    assert(queue->released < queue->received);
    queue->released++;
    return OK;
}

void cpu_staging_close(struct backend *backend, struct staging_queue *queue)
{
    (void)backend;
    free(queue->owner);
    *queue = (struct staging_queue){0};
}

/* --- Results --- */

static uint8_t *slot_of(const struct fetch_queue *queue, uint64_t number)
{
    return (uint8_t *)queue->owner + number % FETCH_SLOTS * queue->bytes;
}

status cpu_fetch_open(struct backend *backend, struct fetch_queue *queue, size_t bytes, struct error *error)
{
    (void)backend;
    *queue = (struct fetch_queue){.bytes = bytes, .owner = malloc(array_size(bytes, FETCH_SLOTS))};
    return queue->owner != NULL
               ? OK
               : error_set(error, ERROR_MEMORY, "memory: no %d buffers of %zu bytes for results", FETCH_SLOTS, bytes);
}

status cpu_fetch_copy(struct backend *backend, struct fetch_queue *queue, const void *device, size_t bytes,
                      struct error *error)
{
    (void)backend;
    (void)error;
    assert(queue->sent - queue->taken < FETCH_SLOTS && bytes <= queue->bytes - queue->filled);
    memcpy(slot_of(queue, queue->sent) + queue->filled, device, bytes);
    queue->filled += bytes;
    return OK;
}

status cpu_fetch_send(struct backend *backend, struct fetch_queue *queue, struct error *error)
{
    (void)backend;
    (void)error;
    queue->sent++;
    queue->filled = 0;
    return OK;
}

status cpu_fetch_take(struct backend *backend, struct fetch_queue *queue, const void **host, struct error *error)
{
    (void)backend;
    (void)error;
    assert(queue->taken < queue->sent);
    *host = slot_of(queue, queue->taken++);
    return OK;
}

void cpu_fetch_close(struct backend *backend, struct fetch_queue *queue)
{
    (void)backend;
    free(queue->owner);
    *queue = (struct fetch_queue){0};
}

/* --- Order --- */

status cpu_branches(struct backend *backend, const struct branches *branches, struct error *error)
{
    (void)backend;
    for (size_t i = 0; i < sizeof branches->list / sizeof *branches->list; i++)
        TRY(branches->list[i].body(branches->list[i].context, error));
    return OK;
}

status cpu_record(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                  struct error *error)
{
    (void)backend;
    recording->owner = NULL;
    return body(context, error);
}

status cpu_replay(struct backend *backend, const struct recording *recording, struct error *error)
{
    (void)backend;
    (void)recording;
    return error_set(error, ERROR_ARGUMENT, "cpu backend: nothing was recorded that could be replayed");
}

void cpu_recording_destroy(struct backend *backend, struct recording *recording)
{
    (void)backend;
    recording->owner = NULL;
}

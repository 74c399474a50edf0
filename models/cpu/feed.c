/* Loads wait where the operations read them: nothing is copied, and nothing is recorded. */
#include <assert.h>
#include <stdlib.h>

#include "models/cpu/cpu.h"

static uint8_t *buffer_of(const struct feed *feed, uint64_t load)
{
    return (uint8_t *)feed->owner + load % FEED_LOADS * feed->bytes;
}

status cpu_feed_open(struct backend *backend, struct feed *feed, size_t bytes, struct error *error)
{
    (void)backend;
    *feed = (struct feed){.bytes = bytes, .owner = malloc(array_size(bytes, FEED_LOADS))};
    return feed->owner != NULL
               ? OK
               : error_set(error, ERROR_MEMORY, "memory: no %d buffers of %zu bytes for batches", FEED_LOADS, bytes);
}

status cpu_feed_room(struct backend *backend, struct feed *feed, void **host, struct error *error)
{
    (void)backend;
    (void)error;
    assert(feed->sent - feed->released < FEED_LOADS);
    *host = buffer_of(feed, feed->sent);
    return OK;
}

status cpu_feed_send(struct backend *backend, struct feed *feed, size_t bytes, struct error *error)
{
    (void)backend;
    (void)error;
    assert(bytes <= feed->bytes);
    (void)bytes;
    feed->sent++;
    return OK;
}

status cpu_feed_receive(struct backend *backend, struct feed *feed, const void **device, struct error *error)
{
    (void)backend;
    (void)error;
    assert(feed->received < feed->sent && feed->received == feed->released);
    *device = buffer_of(feed, feed->received++);
    return OK;
}

status cpu_feed_release(struct backend *backend, struct feed *feed, struct error *error)
{
    (void)backend;
    (void)error;
    assert(feed->released < feed->received);
    feed->released++;
    return OK;
}

void cpu_feed_close(struct backend *backend, struct feed *feed)
{
    (void)backend;
    free(feed->owner);
    *feed = (struct feed){0};
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
    return error_set(error, ERROR_ARGUMENT, "cpu backend: it records nothing to replay");
}

void cpu_recording_destroy(struct backend *backend, struct recording *recording)
{
    (void)backend;
    recording->owner = NULL;
}

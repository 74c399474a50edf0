/* Copies between host and device. Copies from pageable memory wait for the device, so small ones go through a ring of pinned
 * memory, and batches through staging queues on a stream of their own. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/cuda.h"

/* A recorded copy would repeat the host's values of the first time. */
static status check_not_recording(const struct cuda *cuda, const char *what, struct error *error)
{
    return cuda->recording ? error_set(error, ERROR_DEVICE, "cuda: %s cannot be recorded", what) : OK;
}

/* --- Uploads and downloads --- */

enum { SMALL = 16 << 10, SMALL_UPLOADS = 64 };

struct cuda_uploads {
    uint8_t *host; /* pinned, [SMALL_UPLOADS][SMALL] */
    cudaEvent_t copied[SMALL_UPLOADS];
    uint64_t count;
};

status cuda_uploads_create(struct cuda *cuda, struct error *error)
{
    struct cuda_uploads *uploads = (struct cuda_uploads *)xcalloc(1, sizeof *uploads);
    cuda->uploads = uploads;
    cudaError_t result = cudaHostAlloc((void **)&uploads->host, (size_t)SMALL * SMALL_UPLOADS, cudaHostAllocDefault);
    for (int i = 0; result == cudaSuccess && i < SMALL_UPLOADS; i++)
        result = cudaEventCreateWithFlags(&uploads->copied[i], cudaEventDisableTiming);
    return cuda_done(result, "pinning memory for uploads", error);
}

void cuda_uploads_destroy(struct cuda *cuda)
{
    struct cuda_uploads *uploads = cuda->uploads;
    if (uploads == NULL)
        return;
    cudaStreamSynchronize(cuda->stream);
    for (int i = 0; i < SMALL_UPLOADS; i++)
        if (uploads->copied[i] != NULL)
            cudaEventDestroy(uploads->copied[i]);
    cudaFreeHost(uploads->host);
    free(uploads);
    cuda->uploads = NULL;
}

static cudaError_t upload_small(struct cuda *cuda, void *device, const void *host, size_t bytes)
{
    struct cuda_uploads *uploads = cuda->uploads;
    size_t place = uploads->count++ % SMALL_UPLOADS;
    uint8_t *pinned = uploads->host + place * SMALL;
    cudaError_t result = cudaEventSynchronize(uploads->copied[place]);
    if (result != cudaSuccess)
        return result;
    memcpy(pinned, host, bytes);
    result = cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, cuda->stream);
    return result == cudaSuccess ? cudaEventRecord(uploads->copied[place], cuda->stream) : result;
}

status cuda_upload(struct backend *backend, void *device, const void *host, size_t bytes, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    cudaError_t result;
    TRY(check_not_recording(cuda, "a copy to the device", error));
    if (bytes <= SMALL) {
        result = upload_small(cuda, device, host, bytes);
    } else {
        result = cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, cuda->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(cuda->stream); /* the caller may change its memory */
    }
    return cuda_done(result, "a copy to the device", error);
}

status cuda_download(struct backend *backend, void *host, const void *device, size_t bytes, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(check_not_recording(cuda, "a copy from the device", error));
    cudaError_t result = cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda->stream);
    if (result == cudaSuccess)
        result = cudaStreamSynchronize(cuda->stream);
    return cuda_done(result, "a copy from the device", error);
}

/* --- Queues: copies of results are in the order of the operations, those of batches have a stream of their own --- */

/* Events: the copy has read its source, the operations have read the device's buffer. */
struct slot {
    uint8_t *host, *device; /* host: pinned; device: of batches */
    cudaEvent_t copied, released;
};

static struct slot *slot_of(const struct transfer_queue *queue, uint64_t number)
{
    return (struct slot *)queue->owner + number % TRANSFER_SLOTS;
}

static size_t device_bytes(const struct transfer_queue *queue)
{
    return queue->direction == TO_DEVICE ? queue->bytes : 0;
}

static cudaError_t create_slot(struct slot *slot, const struct transfer_queue *queue)
{
    cudaError_t result = cudaHostAlloc((void **)&slot->host, queue->bytes, cudaHostAllocDefault);
    if (result == cudaSuccess && queue->direction == TO_DEVICE)
        result = cudaMalloc((void **)&slot->device, queue->bytes);
    if (result == cudaSuccess)
        result = cudaEventCreateWithFlags(&slot->copied, cudaEventDisableTiming);
    if (result == cudaSuccess)
        result = cudaEventCreateWithFlags(&slot->released, cudaEventDisableTiming);
    return result;
}

status cuda_queue_open(struct backend *backend, struct transfer_queue *queue, enum transfer direction, size_t bytes,
                       struct error *error)
{
    *queue = {};
    queue->direction = direction;
    queue->bytes = bytes;
    cuda_take(cuda_of(backend), TRANSFER_SLOTS * device_bytes(queue));
    queue->owner = xcalloc(TRANSFER_SLOTS, sizeof(struct slot));
    cudaError_t result = cudaSuccess;
    for (uint64_t i = 0; result == cudaSuccess && i < TRANSFER_SLOTS; i++)
        result = create_slot(slot_of(queue, i), queue);
    if (result == cudaSuccess)
        return OK;
    cuda_queue_close(backend, queue);
    cudaGetLastError(); /* it is reported here, and no fault of the next operation */
    return error_set(error, result == cudaErrorMemoryAllocation ? ERROR_MEMORY : ERROR_DEVICE,
                     "cuda: cannot allocate %d buffers of %zu MiB for %s: %s; lower the batch size", TRANSFER_SLOTS,
                     bytes >> 20, direction == TO_DEVICE ? "batches, on host and device" : "results, on the host",
                     cudaGetErrorString(result));
}

void cuda_queue_close(struct backend *backend, struct transfer_queue *queue)
{
    struct cuda *cuda = cuda_of(backend);
    if (queue->owner == NULL)
        return;
    cudaStreamSynchronize(cuda->copies);
    cudaStreamSynchronize(cuda->stream);
    for (uint64_t i = 0; i < TRANSFER_SLOTS; i++) {
        struct slot *slot = slot_of(queue, i);
        if (slot->released != NULL)
            cudaEventDestroy(slot->released);
        if (slot->copied != NULL)
            cudaEventDestroy(slot->copied);
        cudaFree(slot->device);
        cudaFreeHost(slot->host);
    }
    cuda->backend.taken -= TRANSFER_SLOTS * device_bytes(queue);
    free(queue->owner);
    *queue = {};
}

status cuda_staging_acquire(struct backend *backend, struct transfer_queue *queue, void **host, struct error *error)
{
    assert(queue->sent - queue->released < TRANSFER_SLOTS);
    struct slot *slot = slot_of(queue, queue->sent);
    *host = slot->host;
    return cuda_done(cudaEventSynchronize(slot->copied), "waiting for a copy of a batch", error);
}

status cuda_staging_send(struct backend *backend, struct transfer_queue *queue, size_t bytes, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    assert(bytes <= queue->bytes);
    struct slot *slot = slot_of(queue, queue->sent++);
    cudaError_t result = cudaStreamWaitEvent(cuda->copies, slot->released, 0);
    if (result == cudaSuccess)
        result = cudaMemcpyAsync(slot->device, slot->host, bytes, cudaMemcpyHostToDevice, cuda->copies);
    if (result == cudaSuccess)
        result = cudaEventRecord(slot->copied, cuda->copies);
    return cuda_done(result, "a copy of a batch to the device", error);
}

status cuda_staging_receive(struct backend *backend, struct transfer_queue *queue, const void **device,
                            struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(check_not_recording(cuda, "the arrival of a batch", error));
    assert(queue->received < queue->sent && queue->received == queue->released);
    struct slot *slot = slot_of(queue, queue->received++);
    *device = slot->device;
    return cuda_done(cudaStreamWaitEvent(cuda->stream, slot->copied, 0), "the arrival of a batch", error);
}

status cuda_staging_release(struct backend *backend, struct transfer_queue *queue, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(check_not_recording(cuda, "the release of a batch", error));
    assert(queue->released < queue->received);
    struct slot *slot = slot_of(queue, queue->released++);
    return cuda_done(cudaEventRecord(slot->released, cuda->stream), "the release of a batch", error);
}

status cuda_fetch_copy(struct backend *backend, struct transfer_queue *queue, const void *device, size_t bytes,
                       struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(check_not_recording(cuda, "a copy from the device", error));
    assert(queue->sent - queue->received < TRANSFER_SLOTS && bytes <= queue->bytes - queue->filled);
    uint8_t *host = slot_of(queue, queue->sent)->host + queue->filled;
    queue->filled += bytes;
    return cuda_done(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda->stream),
                     "a copy from the device", error);
}

status cuda_fetch_send(struct backend *backend, struct transfer_queue *queue, struct error *error)
{
    queue->filled = 0;
    cudaEvent_t copied = slot_of(queue, queue->sent++)->copied;
    return cuda_done(cudaEventRecord(copied, cuda_of(backend)->stream), "sending results", error);
}

status cuda_fetch_take(struct backend *backend, struct transfer_queue *queue, const void **host, struct error *error)
{
    assert(queue->received < queue->sent);
    const struct slot *slot = slot_of(queue, queue->received++);
    *host = slot->host;
    return cuda_done(cudaEventSynchronize(slot->copied), "waiting for results", error);
}

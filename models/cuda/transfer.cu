/* Between host and device. Copies from memory that the system may page out wait for the device, so what is small goes
 * through a ring of pinned memory, and batches through feeds of their own, on a stream beside the one that computes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/cuda.h"

static status finish_transfer(cudaError_t result, const char *what, struct error *error)
{
    return result == cudaSuccess ? OK : cuda_failed(result, what, error);
}

/* A recorded copy would take the host's values of the first time again and again. */
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
    struct cuda_uploads *uploads = (struct cuda_uploads *)calloc(1, sizeof *uploads);
    cuda->uploads = uploads;
    if (uploads == NULL)
        return error_set(error, ERROR_MEMORY, "cuda: no memory for uploads");
    cudaError_t result = cudaHostAlloc((void **)&uploads->host, (size_t)SMALL * SMALL_UPLOADS, cudaHostAllocDefault);
    for (int i = 0; result == cudaSuccess && i < SMALL_UPLOADS; i++)
        result = cudaEventCreateWithFlags(&uploads->copied[i], cudaEventDisableTiming);
    return finish_transfer(result, "pinning memory for uploads", error);
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
    return finish_transfer(result, "a copy to the device", error);
}

status cuda_download(struct backend *backend, void *host, const void *device, size_t bytes, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(check_not_recording(cuda, "a copy from the device", error));
    cudaError_t result = cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda->stream);
    if (result == cudaSuccess)
        result = cudaStreamSynchronize(cuda->stream);
    return finish_transfer(result, "a copy from the device", error);
}

/* --- Feeds --- */

/* A load's buffers, and when the copy to the device has read the one and the operations the other. */
struct load {
    uint8_t *host, *device;
    cudaEvent_t copied, released;
};

static struct load *load_of(const struct feed *feed, uint64_t number)
{
    return (struct load *)feed->owner + number % FEED_LOADS;
}

static cudaError_t create_load(struct load *load, size_t bytes)
{
    cudaError_t result = cudaHostAlloc((void **)&load->host, bytes, cudaHostAllocDefault);
    if (result == cudaSuccess)
        result = cudaMalloc((void **)&load->device, bytes);
    if (result == cudaSuccess)
        result = cudaEventCreateWithFlags(&load->copied, cudaEventDisableTiming);
    if (result == cudaSuccess)
        result = cudaEventCreateWithFlags(&load->released, cudaEventDisableTiming);
    return result;
}

status cuda_feed_open(struct backend *backend, struct feed *feed, size_t bytes, struct error *error)
{
    *feed = {};
    feed->bytes = bytes;
    feed->owner = calloc(FEED_LOADS, sizeof(struct load));
    if (feed->owner == NULL)
        return error_set(error, ERROR_MEMORY, "cuda: no memory to describe a feed");
    cudaError_t result = cudaSuccess;
    for (int i = 0; result == cudaSuccess && i < FEED_LOADS; i++)
        result = create_load((struct load *)feed->owner + i, bytes);
    if (result == cudaSuccess)
        return OK;
    cuda_feed_close(backend, feed);
    cudaGetLastError(); /* it is told here, and no fault of the next operation */
    return error_set(error, result == cudaErrorMemoryAllocation ? ERROR_MEMORY : ERROR_DEVICE,
                     "cuda: %d buffers of %zu MiB on host and device for batches failed: %s; lower the batch size",
                     FEED_LOADS, bytes >> 20, cudaGetErrorString(result));
}

status cuda_feed_room(struct backend *backend, struct feed *feed, void **host, struct error *error)
{
    (void)backend;
    assert(feed->sent - feed->released < FEED_LOADS);
    struct load *load = load_of(feed, feed->sent);
    *host = load->host;
    return finish_transfer(cudaEventSynchronize(load->copied), "waiting for a copy of a batch", error);
}

status cuda_feed_send(struct backend *backend, struct feed *feed, size_t bytes, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    assert(bytes <= feed->bytes);
    struct load *load = load_of(feed, feed->sent++);
    cudaError_t result = cudaStreamWaitEvent(cuda->copies, load->released, 0);
    if (result == cudaSuccess)
        result = cudaMemcpyAsync(load->device, load->host, bytes, cudaMemcpyHostToDevice, cuda->copies);
    if (result == cudaSuccess)
        result = cudaEventRecord(load->copied, cuda->copies);
    return finish_transfer(result, "a copy of a batch to the device", error);
}

status cuda_feed_receive(struct backend *backend, struct feed *feed, const void **device, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(check_not_recording(cuda, "the arrival of a batch", error));
    assert(feed->received < feed->sent && feed->received == feed->released);
    struct load *load = load_of(feed, feed->received++);
    *device = load->device;
    return finish_transfer(cudaStreamWaitEvent(cuda->stream, load->copied, 0), "the arrival of a batch", error);
}

status cuda_feed_release(struct backend *backend, struct feed *feed, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    TRY(check_not_recording(cuda, "the release of a batch", error));
    assert(feed->released < feed->received);
    struct load *load = load_of(feed, feed->released++);
    return finish_transfer(cudaEventRecord(load->released, cuda->stream), "the release of a batch", error);
}

void cuda_feed_close(struct backend *backend, struct feed *feed)
{
    struct cuda *cuda = cuda_of(backend);
    if (feed->owner == NULL)
        return;
    cudaStreamSynchronize(cuda->copies);
    cudaStreamSynchronize(cuda->stream);
    for (int i = 0; i < FEED_LOADS; i++) {
        struct load *load = (struct load *)feed->owner + i;
        if (load->released != NULL)
            cudaEventDestroy(load->released);
        if (load->copied != NULL)
            cudaEventDestroy(load->copied);
        cudaFree(load->device);
        cudaFreeHost(load->host);
    }
    free(feed->owner);
    *feed = {};
}

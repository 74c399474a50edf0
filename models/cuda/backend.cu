#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/cuda.h"

extern "C" {
#include "models/cuda/cuda_backend.h"
}

status cuda_done(cudaError_t result, const char *what, struct error *error)
{
    if (result == cudaSuccess)
        return OK;
    cudaGetLastError(); /* it is reported here, and no fault of the next operation */
    return error_set(error, result == cudaErrorMemoryAllocation ? ERROR_MEMORY : ERROR_DEVICE, "cuda: %s failed: %s",
                     what, cudaGetErrorString(result));
}

status cuda_finish(struct cuda *cuda, const char *operation, struct error *error)
{
    (void)cuda;
    return cuda_done(cudaGetLastError(), operation, error);
}

status cuda_scratch(struct cuda *cuda, size_t bytes, void *pointer, struct error *error)
{
    void *memory = arena_take(&cuda->scratch, bytes);
    if (memory == NULL)
        return error_set(error, ERROR_MEMORY,
                         "cuda: an operation needs %zu MiB of scratch memory beside the %zu MiB it has, and the device "
                         "has %zu MiB left; lower training.batch, run.evaluation_batch or adapter.experts",
                         bytes >> 20, cuda->scratch.used >> 20, cuda->scratch.left >> 20);
    memcpy(pointer, &memory, sizeof memory);
    return OK;
}

static status zero(struct backend *backend, void *device, size_t bytes, struct error *error)
{
    return cuda_done(cudaMemsetAsync(device, 0, bytes, cuda_of(backend)->stream), "clearing memory", error);
}

static status copy(struct backend *backend, void *to, const void *from, size_t bytes, struct error *error)
{
    return cuda_done(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_of(backend)->stream),
                     "a copy on the device", error);
}

static void close_cuda(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    cuda_copies_destroy(cuda);
    cuda_products_destroy(cuda);
    cuda_uploads_destroy(cuda);
    cuda_arena_destroy(backend, &cuda->scratch);
    cuda_arena_destroy(backend, &cuda->side.scratch);
    if (cuda->side.forked != NULL)
        cudaEventDestroy(cuda->side.forked);
    if (cuda->side.joined != NULL)
        cudaEventDestroy(cuda->side.joined);
    if (cuda->side.stream != NULL)
        cudaStreamDestroy(cuda->side.stream);
    if (cuda->copies != NULL)
        cudaStreamDestroy(cuda->copies);
    if (cuda->stream != NULL)
        cudaStreamDestroy(cuda->stream);
    free(cuda);
}

#define ENTRY(operation) .operation = cuda_##operation,
static const struct backend_ops cuda_ops = {
    .name = "cuda",
    BACKEND_OPERATIONS(ENTRY).arena_create = cuda_arena_create,
    .arena_destroy = cuda_arena_destroy,
    .memory_left = cuda_memory_left,
    .upload = cuda_upload,
    .download = cuda_download,
    .zero = zero,
    .copy = copy,
    .staging_open = cuda_staging_open,
    .staging_acquire = cuda_staging_acquire,
    .staging_send = cuda_staging_send,
    .staging_receive = cuda_staging_receive,
    .staging_release = cuda_staging_release,
    .staging_close = cuda_staging_close,
    .fetch_open = cuda_fetch_open,
    .fetch_copy = cuda_fetch_copy,
    .fetch_send = cuda_fetch_send,
    .fetch_take = cuda_fetch_take,
    .fetch_close = cuda_fetch_close,
    .branches = cuda_branches,
    .record = cuda_record,
    .replay = cuda_replay,
    .recording_destroy = cuda_recording_destroy,
    .bind = cuda_bind,
    .process_group_create = cuda_process_group_create,
    .all_reduce = cuda_all_reduce,
    .process_group_abort = cuda_process_group_abort,
    .process_group_destroy = cuda_process_group_destroy,
    .close = close_cuda,
};

/* The runtime reports "insufficient driver" also where there is no driver at all. */
static const char *why_none(cudaError_t result, char *text, size_t size)
{
    int driver = 0, runtime = 0;
    if (result == cudaSuccess)
        return "the driver reports none";
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return "no NVIDIA driver is installed";
    if (result != cudaErrorInsufficientDriver)
        return cudaGetErrorString(result);
    cudaRuntimeGetVersion(&runtime);
    snprintf(text, size, "%s: the driver is of CUDA %d.%d, this program of %d.%d", cudaGetErrorString(result),
             driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return text;
}

static status count_devices(int *count, struct error *error)
{
    char text[160];
    cudaError_t result = cudaGetDeviceCount(count);
    if (result == cudaSuccess && *count > 0)
        return OK;
    return error_set(error, ERROR_DEVICE, "cuda: no device was found (%s); use the CPU (run.backend=cpu)",
                     why_none(result, text, sizeof text));
}

status cuda_gpus(struct gpus *gpus, struct error *error)
{
    int count = 0, runtime = 0, driver = 0;
    TRY(count_devices(&count, error));
    cudaError_t result = cudaRuntimeGetVersion(&runtime);
    if (result == cudaSuccess)
        result = cudaDriverGetVersion(&driver);
    for (int i = 0; result == cudaSuccess && i < count && i < GPUS; i++) {
        struct cudaDeviceProp properties;
        struct gpu *gpu = &gpus->list[i];
        result = cudaGetDeviceProperties(&properties, i);
        if (result != cudaSuccess)
            break;
        snprintf(gpu->name, sizeof gpu->name, "%.*s", (int)sizeof gpu->name - 1, properties.name);
        gpu->major = properties.major;
        gpu->minor = properties.minor;
        gpu->memory = properties.totalGlobalMem;
    }
    TRY(cuda_done(result, "asking for the devices", error));
    gpus->count = (size_t)(count < GPUS ? count : GPUS);
    snprintf(gpus->versions, sizeof gpus->versions, "CUDA %d.%d, the driver knows up to %d.%d", runtime / 1000,
             runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
    return OK;
}

static status choose_device(const struct backend_settings *settings, struct error *error)
{
    int count = 0;
    TRY(count_devices(&count, error));
    if (settings->device >= (size_t)count)
        return error_set(error, ERROR_ARGUMENT, "cuda: device %zu was asked for, but there %s %d, counted from 0",
                         settings->device, count == 1 ? "is" : "are", count);
    return cuda_done(cudaSetDevice((int)settings->device), "choosing the device", error);
}

enum { OLDEST = 8 }; /* major compute capability that the kernels are compiled for, see CMAKE_CUDA_ARCHITECTURES */

/* Products' algorithms depend on the device, the number of its multiprocessors (a part of a GPU has fewer) and the library;
 * code for a newer GPU than the program knows comes from the driver. */
static status describe(struct cuda *cuda, const struct cudaDeviceProp *properties, struct error *error)
{
    int runtime = 0, driver = 0;
    const char *precision = precision_name(cuda->backend.precision);
    cudaError_t result = cudaRuntimeGetVersion(&runtime);
    if (result == cudaSuccess)
        result = cudaDriverGetVersion(&driver);
    TRY(cuda_done(result, "asking for versions", error));
    snprintf(cuda->description, sizeof cuda->description, "cuda (%s, %zu MiB, CUDA %d.%d, %s)", properties->name,
             properties->totalGlobalMem >> 20, runtime / 1000, runtime % 1000 / 10, precision);
    snprintf(cuda->arithmetic, sizeof cuda->arithmetic,
             "cuda %s %d.%d %d multiprocessors CUDA %d driver %d cuBLASLt %zu %s", properties->name, properties->major,
             properties->minor, properties->multiProcessorCount, runtime, driver, cuda_products_version(cuda),
             precision);
    return OK;
}

static cudaError_t create_streams(struct cuda *cuda)
{
    cudaStream_t *const streams[] = {&cuda->stream, &cuda->copies, &cuda->side.stream};
    cudaEvent_t *const events[] = {&cuda->side.forked, &cuda->side.joined};
    cudaError_t result = cudaSuccess;
    for (size_t i = 0; result == cudaSuccess && i < sizeof streams / sizeof *streams; i++)
        result = cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking);
    for (size_t i = 0; result == cudaSuccess && i < sizeof events / sizeof *events; i++)
        result = cudaEventCreateWithFlags(events[i], cudaEventDisableTiming);
    return result;
}

/* A program that was built for other GPUs has no code for this one, which its first launch tells. */
static status try_kernel(struct cuda *cuda, const struct cudaDeviceProp *properties, struct error *error)
{
    struct arena_mark mark = arena_mark(&cuda->scratch);
    struct arange one = {};
    struct error failed;
    one.count = 1;
    TRY(cuda_scratch(cuda, sizeof *one.out, &one.out, error));
    arena_release(&cuda->scratch, mark);
    return cuda_arange(&cuda->backend, &one, &failed) == OK
               ? OK
               : error_set(
                     error, ERROR_DEVICE,
                     "cuda: device %zu, %s, of compute capability %d.%d, runs no kernel of this program (%s); build "
                     "it with CMAKE_CUDA_ARCHITECTURES=%d%d, or use the CPU (run.backend=cpu)",
                     cuda->device, properties->name, properties->major, properties->minor, failed.message,
                     properties->major, properties->minor);
}

static status open_device(struct cuda *cuda, const struct backend_settings *settings, struct error *error)
{
    struct cudaDeviceProp properties;
    TRY(choose_device(settings, error));
    cuda->backend.precision = settings->precision;
    cuda->device = settings->device;
    cudaError_t result = cudaGetDeviceProperties(&properties, (int)settings->device);
    if (result == cudaSuccess && properties.major < OLDEST)
        return error_set(error, ERROR_DEVICE,
                         "cuda: device %zu, %s, has compute capability %d.%d, but %d.0 or newer is needed; use another "
                         "(run.device) or the CPU (run.backend=cpu)",
                         settings->device, properties.name, properties.major, properties.minor, OLDEST);
    if (result == cudaSuccess)
        result = create_streams(cuda);
    TRY(cuda_done(result, "opening the device", error));
    TRY(cuda_arena_create(&cuda->backend, &cuda->scratch, 0, "scratch", error));
    TRY(cuda_arena_create(&cuda->backend, &cuda->side.scratch, 0, "second scratch", error));
    TRY(cuda_uploads_create(cuda, error));
    TRY(try_kernel(cuda, &properties, error));
    TRY(cuda_products_create(cuda, error));
    return describe(cuda, &properties, error);
}

status cuda_backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error)
{
    struct cuda *cuda = (struct cuda *)xcalloc(1, sizeof *cuda);
    cuda->backend.ops = &cuda_ops;
    cuda->backend.context = cuda;
    cuda->backend.description = cuda->description;
    cuda->backend.arithmetic = cuda->arithmetic;
    cuda->backend.asynchronous = true;
    cuda->backend.renew = cuda_renew;
    cuda->backend.forget = cuda_forget;
    status result = open_device(cuda, settings, error);
    if (result != OK) {
        close_cuda(&cuda->backend);
        return result;
    }
    *backend = &cuda->backend;
    return OK;
}

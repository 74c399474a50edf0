/* Opening the backend and its table; recordings, branches and process groups. The only file that calls NCCL, which is opened with the
 * first process group, so that a program that uses one GPU does not need it. */
#if __has_include(<nccl.h>)
#include <atomic>
#include <nccl.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/cuda/cuda.h"

status cuda_done(cudaError_t result, const char *what, struct error *error)
{
    if (result == cudaSuccess)
        return OK;
    cudaGetLastError(); /* it is reported here, and no fault of the next operation */
    return error_set(error, result == cudaErrorMemoryAllocation ? ERROR_MEMORY : ERROR_DEVICE, "cuda: %s failed: %s",
                     what, cudaGetErrorString(result));
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

/* ---- recorded operations are a CUDA graph, captured from the stream; what cannot be captured runs plainly instead. Branches are
 * two streams that part and meet at events, which a graph keeps as its edges ---- */

/* While the stream is captured, no operation is carried out. */
static bool capture(struct cuda *cuda, struct recording *recording, recorded_body body, void *context,
                    cudaGraphExec_t *executable)
{
    cudaGraph_t graph = NULL;
    cudaError_t result = cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal);
    status ran = OK;
    if (result == cudaSuccess) {
        cuda->recording = true;
        ran = body(context, &recording->refused);
        cuda->recording = false;
        result = cudaStreamEndCapture(cuda->stream, &graph);
    }
    if (result == cudaSuccess && ran == OK)
        result = cudaGraphInstantiateWithFlags(executable, graph, 0);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    cudaGetLastError(); /* the next operation must not report a failed capture */
    if (ran == OK)
        cuda_done(result, "capturing", &recording->refused);
    return result == cudaSuccess && ran == OK;
}

static status replay(struct backend *backend, const struct recording *recording, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    cuda_copies_update(cuda);
    arena_forget(&cuda->scratch); /* the graph has scratch memory as it was when it was recorded */
    arena_forget(&cuda->side.scratch);
    return cuda_done(cudaGraphLaunch((cudaGraphExec_t)recording->owner, cuda->stream), "a recorded step", error);
}

static status record(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                     struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch), side = arena_mark(&cuda->side.scratch);
    cudaGraphExec_t executable = NULL;
    *recording = {};
    cuda_copies_update(cuda);
    if (capture(cuda, recording, body, context, &executable)) {
        recording->owner = executable;
        return replay(backend, recording, error);
    }
    arena_release(&cuda->scratch, mark);
    arena_release(&cuda->side.scratch, side);
    return body(context, error);
}

static void destroy_recording(struct backend *backend, struct recording *recording)
{
    if (recording->owner == NULL)
        return;
    cudaStreamSynchronize(cuda_of(backend)->stream); /* it may still be carried out */
    cudaGraphExecDestroy((cudaGraphExec_t)recording->owner);
    recording->owner = NULL;
}

static void change_sides(struct cuda *cuda)
{
    cudaStream_t stream = cuda->stream;
    struct arena scratch = cuda->scratch;
    cuda->stream = cuda->side.stream;
    cuda->scratch = cuda->side.scratch;
    cuda->side.stream = stream;
    cuda->side.scratch = scratch;
    cuda->on_side = !cuda->on_side;
}

/* The streams meet also after a failure: a capture ends in one stream alone. */
static status run_branches(struct backend *backend, const struct branches *branches, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    const auto *main = &branches->list[0], *side = &branches->list[1];
    assert(!cuda->on_side);
    cudaError_t result = cudaEventRecord(cuda->side.forked, cuda->stream);
    if (result == cudaSuccess)
        result = cudaStreamWaitEvent(cuda->side.stream, cuda->side.forked, 0);
    TRY(cuda_done(result, "parting branches", error));
    status ran = main->body(main->context, error);
    change_sides(cuda);
    NEXT(ran, side->body(side->context, error));
    change_sides(cuda);
    result = cudaEventRecord(cuda->side.joined, cuda->side.stream);
    if (result == cudaSuccess)
        result = cudaStreamWaitEvent(cuda->stream, cuda->side.joined, 0);
    return ran == OK ? cuda_done(result, "joining branches", error) : ran;
}

/* ---- process groups: sums over several GPUs ---- */

static status bind_thread(struct backend *backend, struct error *error)
{
    return cuda_done(cudaSetDevice((int)cuda_of(backend)->device), "choosing the device", error);
}

#if __has_include(<nccl.h>)

#ifndef NCCL_LIBRARY
#define NCCL_LIBRARY "libnccl.so.2"
#endif

enum { RANKS = GPUS };

#define FUNCTIONS(f)                                                                                                   \
    f(ncclCommInitAll) f(ncclCommDestroy) f(ncclCommAbort) f(ncclGroupStart) f(ncclGroupEnd) f(ncclAllReduce)          \
        f(ncclGetErrorString)
struct library {
    void *handle;
    FUNCTIONS(CUDA_FUNCTION)
};

struct communicators {
    struct library library;
    bool made;
    std::atomic<bool> aborted;
    std::atomic<bool> asking[RANKS]; /* the rank's thread is inside the library */
    ncclComm_t of[RANKS];
};

static status open_library(struct library *library, struct error *error)
{
    const struct cuda_function wanted[] = {FUNCTIONS(CUDA_WANTED)};
    return cuda_library_open(&library->handle, NCCL_LIBRARY, "NCCL", "use one GPU (run.gpus=1)", wanted,
                             sizeof wanted / sizeof *wanted, error);
}

static status check(const struct communicators *c, ncclResult_t result, const char *what, struct error *error)
{
    return result == ncclSuccess
               ? OK
               : error_set(error, ERROR_DEVICE, "NCCL: %s failed: %s", what, c->library.ncclGetErrorString(result));
}

static status create(struct communicators *c, struct backend *const *ranks, size_t size, struct error *error)
{
    int devices[RANKS];
    if (size == 0 || size > RANKS)
        return error_set(error, ERROR_ARGUMENT, "cuda: %zu GPUs were asked for, but at most %d can work together", size,
                         RANKS);
    for (size_t i = 0; i < size; i++)
        devices[i] = (int)cuda_of(ranks[i])->device;
    TRY(open_library(&c->library, error));
    setenv("NCCL_ALGO", "Ring", 0);            /* sums in the order of the ring, whatever their size */
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 1); /* our arenas are mapped for their own device alone */
    TRY(check(c, c->library.ncclCommInitAll(c->of, (int)size, devices), "starting the process group", error));
    c->made = true;
    return OK;
}

static status all_reduce(struct backend *backend, const struct all_reduce *o, struct error *error)
{
    struct communicators *c = (struct communicators *)o->group->owner;
    c->asking[o->rank] = true;
    bool together = !c->aborted;
    ncclResult_t result = ncclSuccess;
    if (together)
        result = c->library.ncclAllReduce(
            o->values, o->values, o->n, o->reduction == SUM_FLOATS ? ncclFloat32 : ncclInt32,
            o->reduction == MAX_INTEGERS ? ncclMax : ncclSum, c->of[o->rank], cuda_of(backend)->stream);
    c->asking[o->rank] = false;
    return together ? check(c, result, "a sum over all GPUs", error)
                    : error_set(error, ERROR_STOPPED, "cuda: the process group was aborted");
}

/* Waits until no thread is inside the library, so that none reads freed memory. A thread that stays there waits for another
 * rank, and aborting releases it. */
static void wait_for_threads(const struct communicators *c, size_t size)
{
    enum { TRIES = 1000, MICROSECONDS = 1000 };
    for (int i = 0; i < TRIES; i++) {
        bool asking = false;
        for (size_t m = 0; m < size; m++)
            asking = asking || c->asking[m];
        if (!asking)
            return;
        usleep(MICROSECONDS);
    }
}

/* All at once: each waits for the others of its machine. */
static void end_all(struct communicators *c, size_t size, ncclResult_t (*end)(ncclComm_t))
{
    c->library.ncclGroupStart();
    for (size_t i = 0; i < size; i++)
        end(c->of[i]);
    c->library.ncclGroupEnd();
}

static void process_group_abort(struct backend *backend, struct process_group *group)
{
    struct communicators *c = (struct communicators *)group->owner;
    if (!c->made || c->aborted.exchange(true))
        return;
    wait_for_threads(c, group->size);
    end_all(c, group->size, c->library.ncclCommAbort);
}

static void process_group_destroy(struct backend *backend, struct process_group *group)
{
    struct communicators *c = (struct communicators *)group->owner;
    if (c == NULL)
        return;
    if (c->made && !c->aborted)
        end_all(c, group->size, c->library.ncclCommDestroy);
    if (c->library.handle != NULL)
        dlclose(c->library.handle);
    delete c;
    *group = {};
}

static status process_group_create(struct backend *const *ranks, struct process_group *group, struct error *error)
{
    struct communicators *c = new communicators();
    group->owner = c;
    status created = create(c, ranks, group->size, error);
    if (created != OK)
        process_group_destroy(ranks[0], group);
    return created;
}

#else

static status process_group_create(struct backend *const *ranks, struct process_group *group, struct error *error)
{
    *group = {};
    return error_set(error, ERROR_DEVICE,
                     "cuda: this program was built without NCCL (its header nccl.h was not found); use one GPU "
                     "(run.gpus=1)");
}

static status all_reduce(struct backend *backend, const struct all_reduce *o, struct error *error)
{
    return error_set(error, ERROR_DEVICE, "cuda: this program was built without NCCL");
}

static void process_group_abort(struct backend *backend, struct process_group *group)
{
}

static void process_group_destroy(struct backend *backend, struct process_group *group)
{
    *group = {};
}

#endif

/* ---- the table ---- */

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

/* Carries out an operation and gives back its scratch memory, also after a failure. */
#define RUN(operation)                                                                                                 \
    static status run_##operation(struct backend *backend, const struct operation *o, struct error *error)             \
    {                                                                                                                  \
        struct cuda *cuda = cuda_of(backend);                                                                          \
        struct arena_mark mark = arena_mark(&cuda->scratch);                                                           \
        status result = cuda_##operation(cuda, o, error);                                                              \
        arena_release(&cuda->scratch, mark);                                                                           \
        return result == OK ? cuda_done(cudaGetLastError(), #operation, error) : result;                               \
    }
BACKEND_OPERATIONS(RUN)

#define ENTRY(operation) .operation = run_##operation,
static const struct backend_ops cuda_ops = {
    .name = "cuda",
    BACKEND_OPERATIONS(ENTRY).arena_create = cuda_arena_create,
    .arena_destroy = cuda_arena_destroy,
    .memory_left = cuda_memory_left,
    .upload = cuda_upload,
    .download = cuda_download,
    .zero = zero,
    .copy = copy,
    .queue_open = cuda_queue_open,
    .queue_close = cuda_queue_close,
    .staging_acquire = cuda_staging_acquire,
    .staging_send = cuda_staging_send,
    .staging_receive = cuda_staging_receive,
    .staging_release = cuda_staging_release,
    .fetch_copy = cuda_fetch_copy,
    .fetch_send = cuda_fetch_send,
    .fetch_take = cuda_fetch_take,
    .branches = run_branches,
    .record = record,
    .replay = replay,
    .recording_destroy = destroy_recording,
    .bind = bind_thread,
    .process_group_create = process_group_create,
    .all_reduce = all_reduce,
    .process_group_abort = process_group_abort,
    .process_group_destroy = process_group_destroy,
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
    gpus->driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
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
        for (size_t k = 0; k < sizeof properties.uuid.bytes; k++)
            snprintf(gpu->uuid + 2 * k, 3, "%02x", (unsigned char)properties.uuid.bytes[k]);
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
    return cuda->backend.ops->arange(&cuda->backend, &one, &failed) == OK
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
    cuda->shared_bytes = properties.sharedMemPerMultiprocessor;
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
    cuda->backend.held = 2 * (size_t)CUDA_WORKSPACE;
    cuda_take(cuda, cuda->backend.held);
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

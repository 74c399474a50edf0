/* Memory, streams, events and graphs of the emulated device. Work waits in its stream as long as it may, so that who
 * reads or reuses memory too early finds it out. */
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <vector>

namespace
{

std::recursive_mutex device; /* held while memory is open */
std::map<void *, std::size_t> regions;
thread_local int opened; /* how often, by the thread that holds it */
bool accessible;
unsigned int times_shut; /* memory is always made inaccessible at first, and later one time in 16: it takes long */

void protect(int mode)
{
    for (const auto &[memory, bytes] : regions)
        if (mprotect(memory, bytes, mode) != 0) {
            std::fprintf(stderr, "CUDA on the host: device memory cannot be protected\n");
            std::abort();
        }
}

} // namespace

void emulation_open()
{
    device.lock();
    if (opened++ == 0 && !accessible) {
        protect(PROT_READ | PROT_WRITE);
        accessible = true;
    }
}

void emulation_shut()
{
    if (--opened == 0 && (++times_shut < 2000 || times_shut % 16 == 0)) {
        protect(PROT_NONE);
        accessible = false;
    }
    device.unlock();
}

int emulation_leave()
{
    int times = opened;
    for (int i = 0; i < times; i++)
        emulation_shut();
    return times;
}

void emulation_return(int times)
{
    for (int i = 0; i < times; i++)
        emulation_open();
}

void *emulation_reserve(std::size_t bytes)
{
    std::lock_guard<std::recursive_mutex> lock(device);
    void *memory = mmap(nullptr, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return nullptr;
    madvise(memory, bytes, MADV_HUGEPAGE); /* what is protected at every launch should be few pages */
    regions[memory] = bytes;
    return memory;
}

void emulation_free(void *memory)
{
    std::lock_guard<std::recursive_mutex> lock(device);
    auto region = regions.find(memory);
    if (region == regions.end())
        return;
    munmap(memory, region->second);
    regions.erase(region);
}

/* --- Streams, each of the device that made it; work is asked for by threads that have this device --- */

/* A piece of work, or without one a wait for the first `position` pieces of another stream of the graph. */
struct emulation_node {
    std::function<void()> work;
    std::size_t stream, position;
};

/* What streams were asked for while they were captured together; the first of them began. */
struct emulation_capture {
    std::vector<std::vector<emulation_node>> streams;
    std::vector<emulation_stream *> members;
    bool invalid;
    unsigned int launches;
};

struct emulation_graph {
    std::shared_ptr<emulation_capture> captured;
};

/* Another stream's work that this one's piece at a position waits for. Every second time it is done as soon as it may be, ahead of
 * what this stream has before that piece: a device may choose either order. */
struct ahead {
    std::size_t at;
    emulation_stream *other;
    std::size_t position;
};

struct emulation_stream {
    int device;
    std::recursive_mutex running, queue; /* held by who runs it; and while `waiting` is read or written */
    std::deque<std::function<void()>> waiting;
    std::size_t submitted, begun;
    std::atomic<std::size_t> done;
    std::deque<ahead> early;                          /* guarded by `queue` */
    std::map<emulation_stream *, unsigned int> waits; /* for each other stream */
    std::shared_ptr<emulation_capture> capture;       /* NULL: it is not captured */
    std::size_t number;                               /* in the capture */
};

struct emulation_event {
    emulation_stream *stream; /* NULL: not recorded yet */
    std::size_t position;
    std::shared_ptr<emulation_capture> capture; /* the position is one of it */
    std::size_t number;
};

namespace
{

thread_local emulation_stream *captured_here; /* the stream that this thread captures, or NULL */
thread_local cudaError_t last;                /* until it is asked for */

cudaError_t failed(cudaError_t error)
{
    return last = error;
}

/* Whether the calling thread captures a stream, which what it asks for spoils. */
bool spoils_capture()
{
    if (captured_here != nullptr)
        captured_here->capture->invalid = true;
    return captured_here != nullptr;
}

} // namespace

cudaError_t cudaMalloc(void **memory, std::size_t bytes)
{
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
    emulation_check_sums("memory is allocated");
    *memory = emulation_reserve((bytes + 4095) / 4096 * 4096);
    if (*memory == nullptr)
        return failed(cudaErrorMemoryAllocation);
    emulation_open();
    std::memset(*memory, 0xff, bytes); /* NaN: nothing may rely on zeros */
    emulation_shut();
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
    emulation_check_sums("memory is freed");
    emulation_free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, std::size_t bytes, unsigned int)
{
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
    emulation_check_sums("memory is pinned");
    *memory = std::malloc(bytes);
    return *memory != nullptr ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *memory)
{
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
    std::free(memory);
    return cudaSuccess;
}

namespace
{

void run_until(emulation_stream *stream, std::size_t position);

void run_early(emulation_stream *stream, std::size_t position)
{
    for (;;) {
        std::unique_lock<std::recursive_mutex> queue(stream->queue);
        if (stream->early.empty() || stream->early.front().at >= position)
            return;
        ahead next = stream->early.front();
        stream->early.pop_front();
        queue.unlock();
        run_until(next.other, next.position);
    }
}

/* Memory stays open from the first piece of work to the last: to open and to shut it costs more than most pieces. */
void run_until(emulation_stream *stream, std::size_t position)
{
    if (stream == nullptr || stream->done >= position)
        return;
    std::unique_lock<std::recursive_mutex> lock(stream->running, std::try_to_lock);
    if (!lock.owns_lock()) { /* who runs it needs the device */
        int times = emulation_leave();
        lock.lock();
        emulation_return(times);
    }
    emulation_open();
    run_early(stream, position);
    while (stream->begun < position) {
        std::unique_lock<std::recursive_mutex> queue(stream->queue);
        std::function<void()> work = std::move(stream->waiting.front());
        stream->waiting.pop_front();
        queue.unlock();
        stream->begun++; /* before it runs: it may wait for another stream that waits for work before it */
        work();
        stream->done++;
    }
    emulation_shut();
}

} // namespace

/* Of a program that counts nodes. */
extern "C" void graph_node_met(const char *kernel) __attribute__((weak));

void emulation_submit(cudaStream_t stream, std::function<void()> work, const char *name)
{
    int device;
    cudaGetDevice(&device);
    if (stream->device != device) {
        std::fprintf(stderr, "CUDA on the host: work for device %d while device %d is current\n", stream->device,
                     device);
        std::abort();
    }
    work = [body = std::move(work), name] {
        emulation_work = name;
        body();
    };
    if (stream->capture != nullptr) {
        stream->capture->streams[stream->number].push_back({std::move(work), 0, 0});
        if (graph_node_met != nullptr)
            graph_node_met(name);
        return;
    }
    std::lock_guard<std::recursive_mutex> lock(stream->queue);
    stream->waiting.push_back(std::move(work));
    stream->submitted++;
}

std::size_t emulation_submitted(cudaStream_t stream)
{
    return stream->submitted;
}

bool emulation_run(cudaStream_t stream, std::size_t position)
{
    std::unique_lock<std::recursive_mutex> lock(stream->running, std::try_to_lock);
    if (lock.owns_lock())
        run_until(stream, position);
    return lock.owns_lock();
}

bool emulation_captured(cudaStream_t stream)
{
    if (stream->capture != nullptr)
        stream->capture->invalid = true;
    return stream->capture != nullptr;
}

/* Some drivers take a copy of nothing from nowhere, and need not wait for it. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    if (to == nullptr || from == nullptr)
        return failed(cudaErrorInvalidValue);
    emulation_submit(
        stream,
        [=] {
            emulation_open();
            std::memcpy(to, from, bytes);
            emulation_shut();
        },
        "memory copy");
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream)
{
    emulation_submit(
        stream,
        [=] {
            emulation_open();
            std::memset(to, value, bytes);
            emulation_shut();
        },
        "memory set");
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (stream == nullptr)
        return cudaSuccess;
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
    run_until(stream, stream->submitted);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int)
{
    *stream = new emulation_stream{};
    cudaGetDevice(&(*stream)->device);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStreamSynchronize(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int)
{
    *event = new emulation_event{};
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    *event = {stream, stream->submitted, stream->capture, stream->number};
    if (stream->capture != nullptr)
        event->position = stream->capture->streams[stream->number].size();
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
    run_until(event->stream, event->position);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int)
{
    if (event->capture != nullptr && stream->capture == nullptr) { /* captured from here on, too */
        stream->capture = event->capture;
        stream->number = stream->capture->streams.size();
        stream->capture->streams.emplace_back();
        stream->capture->members.push_back(stream);
    }
    if (stream->capture != event->capture) { /* for what was not captured with it */
        stream->capture->invalid = true;
        return failed(cudaErrorStreamCaptureIsolation);
    }
    if (stream->capture != nullptr) {
        stream->capture->streams[stream->number].push_back({nullptr, event->number, event->position});
        return cudaSuccess;
    }
    if (event->stream != nullptr && ++stream->waits[event->stream] % 2 == 0) {
        std::lock_guard<std::recursive_mutex> lock(stream->queue);
        stream->early.push_back({stream->submitted, event->stream, event->position});
    }
    emulation_submit(
        stream, [other = event->stream, position = event->position] { run_until(other, position); }, "wait");
    return cudaSuccess;
}

/* --- Graphs: the work that captured streams were asked for --- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    captured_here = stream;
    stream->capture = std::make_shared<emulation_capture>();
    stream->capture->streams.emplace_back();
    stream->capture->members.push_back(stream);
    stream->number = 0;
    return cudaSuccess;
}

namespace
{

/* Whether the first stream ends after all work of the others. */
bool joined(const emulation_capture &capture)
{
    for (std::size_t i = 1; i < capture.streams.size(); i++) {
        bool awaited = false;
        for (const emulation_node &node : capture.streams[0])
            awaited |= node.stream == i && node.position == capture.streams[i].size();
        if (!awaited)
            return false;
    }
    return true;
}

/* Each stream in its order; which one is next is free where none waits for another. A device may choose any order, so every
 * launch takes the next of three: the first stream before the others, piece by piece in turn, the last stream first. */
void run_graph(const emulation_capture &capture, unsigned int launch)
{
    std::size_t count = capture.streams.size(), next = launch % 3 == 2 ? count - 1 : 0, idle = 0;
    bool spoils = emulation_spoils("graph");
    std::vector<std::size_t> done(count, 0);
    while (idle < count) {
        const std::vector<emulation_node> &stream = capture.streams[next];
        bool ready = done[next] < stream.size() && done[stream[done[next]].stream] >= stream[done[next]].position;
        const std::function<void()> *work = ready ? &stream[done[next]++].work : nullptr;
        if (ready && *work == nullptr) { /* a wait that is over takes no turn */
            idle = 0;
            continue;
        }
        if (ready && !(spoils && next == 0 && done[0] == stream.size()))
            (*work)();
        idle = ready ? 0 : idle + 1;
        if (!ready || launch % 3 == 1)
            next = (next + 1) % count;
        else if (launch % 3 == 2)
            next = count - 1;
        else
            next = 0;
    }
}

} // namespace

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    std::shared_ptr<emulation_capture> capture = stream->capture;
    captured_here = nullptr;
    for (emulation_stream *member : capture->members)
        member->capture = nullptr;
    bool usable = !capture->invalid && joined(*capture);
    *graph = usable ? new emulation_graph{capture} : nullptr;
    return usable ? cudaSuccess : failed(cudaErrorStreamCaptureInvalidated);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long)
{
    *executable = new emulation_graph(*graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    emulation_submit(
        stream,
        [capture = executable->captured, launch = executable->captured->launches++] { run_graph(*capture, launch); },
        "graph");
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    delete executable;
    return cudaSuccess;
}

/* --- The device --- */

namespace
{

constexpr int DEVICES = 2;
thread_local int current; /* device of the calling thread */

} // namespace

/* MTIL_CUDA_ON_HOST_DRIVER: the version of a driver that is too old for the program. */
cudaError_t cudaGetDeviceCount(int *count)
{
    *count = DEVICES;
    return std::getenv("MTIL_CUDA_ON_HOST_DRIVER") == nullptr ? cudaSuccess : cudaErrorInsufficientDriver;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    *properties = {"the host", std::size_t{8} << 30, std::size_t{228} << 10, 9, 0, 1, {{static_cast<char>(device)}}};
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    const char *old = std::getenv("MTIL_CUDA_ON_HOST_DRIVER");
    *version = old != nullptr ? std::atoi(old) : 13000;
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    cudaError_t error = last;
    last = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error of the emulation";
}

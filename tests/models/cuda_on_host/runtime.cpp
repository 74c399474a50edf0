/* Memory, streams, events and graphs of the emulated device. Work waits in its stream as long as it may, so that who
 * reads or reuses memory too early finds it out. */
#include <cuda_runtime.h>

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
int opened;
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

struct emulation_stream {
    int device;
    std::deque<std::function<void()>> waiting;
    std::size_t submitted, done;
    std::shared_ptr<emulation_capture> capture; /* NULL: it is not captured */
    std::size_t number;                         /* in the capture */
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
    *memory = emulation_reserve((bytes + 4095) / 4096 * 4096);
    return *memory != nullptr ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *memory)
{
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
    emulation_free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, std::size_t bytes, unsigned int)
{
    if (spoils_capture())
        return failed(cudaErrorStreamCaptureUnsupported);
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

/* Memory stays open from the first piece of work to the last: to open and to shut it costs more than most pieces. */
void run_until(emulation_stream *stream, std::size_t position)
{
    if (stream == nullptr || stream->done >= position)
        return;
    emulation_open();
    while (stream->done < position) {
        std::function<void()> work = std::move(stream->waiting.front());
        stream->waiting.pop_front();
        stream->done++; /* before it runs: it may wait for another stream that waits for work before it */
        work();
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
    if (stream->capture != nullptr) {
        stream->capture->streams[stream->number].push_back({std::move(work), 0, 0});
        if (graph_node_met != nullptr)
            graph_node_met(name);
        return;
    }
    stream->waiting.push_back(std::move(work));
    stream->submitted++;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
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
    std::vector<std::size_t> done(count, 0);
    while (idle < count) {
        const std::vector<emulation_node> &stream = capture.streams[next];
        bool ready = done[next] < stream.size() && done[stream[done[next]].stream] >= stream[done[next]].position;
        const std::function<void()> *work = ready ? &stream[done[next]++].work : nullptr;
        if (ready && *work == nullptr) { /* a wait that is over takes no turn */
            idle = 0;
            continue;
        }
        if (ready)
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

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long)
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

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = DEVICES;
    return cudaSuccess;
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

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    *properties = {"the host", std::size_t{8} << 30, 9, 0, 1};
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 0;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0;
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

/* Stands in for NVIDIA's cuda_runtime.h; see README.md. What models/cuda/ uses of it, and no more. */
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("emulated_shared")))
#define DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(emulation_shared())

struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int nx = 1, unsigned int ny = 1, unsigned int nz = 1) : x(nx), y(ny), z(nz)
    {
    }
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

typedef struct emulation_stream *cudaStream_t;
typedef struct emulation_event *cudaEvent_t;
typedef struct emulation_graph *cudaGraph_t, *cudaGraphExec_t;

/* What a stream is asked for waits until a thread waits for the stream, or is kept while the stream is captured. name: of
 * the node that it becomes then, for a program that counts them (graph_node_met in tests/bench/budget.h). */
void emulation_submit(cudaStream_t stream, std::function<void()> work, const char *name);

/* What is wrong with the device: the first block of the kernel of this name does not run; of products, named cublasLtMatmul, the
 * last row; of every graph, named graph, the last kernel. NULL: nothing; at first what MTIL_CUDA_ON_HOST_FAULT says. And who hears of every launch. */
extern "C" void emulation_spoil(const char *kernel);
extern "C" void emulation_watch(void (*launched)(const char *kernel));
bool emulation_spoils(const char *work); /* of a stream, by its name: it begins */
extern const char *emulation_work;       /* that was begun last */

/* What is learned of a kernel: which part of the program's static shared memory its blocks write, and how many bytes of it. */
struct emulation_kernel {
    std::size_t first, last, bytes;
    unsigned int launches;
};

void *emulation_shared();
/* most: of shared memory, static and dynamic. */
void emulation_launch(dim3 grid, dim3 block, std::size_t shared, std::size_t most, const std::function<void()> &thread,
                      emulation_kernel *kernel);
/* The value of the lane whose number differs by xor. All lanes of the mask meet at one site: a line, as the same function that is
 * inlined at two places has two instructions, but one line. */
std::uint64_t emulation_exchange(std::uint64_t value, int lanes, unsigned int mask, int site);
void *
emulation_warp_memory(std::size_t bytes); /* what a warp's lanes write before their next exchange, and read after it */
[[noreturn]] void emulation_fault(const char *what);

/* Copies to shared memory in groups of a thread. A place holds NaN from the beginning of its copy until its thread waits for it;
 * zeros unless there. */
void emulation_copy_later(void *to, const void *from, std::size_t bytes, bool there);
void emulation_commit();
void emulation_wait(std::size_t latest); /* for all groups but the latest ones */

void __syncthreads();

constexpr unsigned int WHOLE_WARP = 0xffffffffu;

static inline void __syncwarp(unsigned int mask = WHOLE_WARP, int site = __builtin_LINE())
{
    emulation_exchange(0, 0, mask, site);
}

/* Arguments have their values of now, whenever the kernel runs. */
template <typename Kernel, typename... Arguments>
void emulation_enqueue(cudaStream_t stream, const char *name, dim3 grid, dim3 block, std::size_t shared,
                       std::size_t most, Kernel kernel, Arguments... arguments)
{
    static emulation_kernel known; /* each launch in the program has functions of its own */
    emulation_submit(
        stream,
        [=] {
            emulation_launch(
                grid, block, shared, most, [=] { kernel(arguments...); }, &known);
        },
        name);
}

#define CUDA_LAUNCH(cuda, kernel, grid, block, shared, ...)                                                            \
    emulation_enqueue((cuda)->stream, #kernel, (grid), (block), (shared), 48 << 10,                                    \
                      [](auto... values) { kernel(values...); }, __VA_ARGS__)
#define CUDA_LAUNCH_LARGE(cuda, kernel, grid, block, shared, ...)                                                      \
    emulation_enqueue((cuda)->stream, #kernel, (grid), (block), (shared), 99 << 10,                                    \
                      [](auto... values) { kernel(values...); }, __VA_ARGS__)

template <typename T> T __shfl_xor_sync(unsigned int mask, T value, int lanes, int site = __builtin_LINE())
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = emulation_exchange(bits, lanes, mask, site);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/* A bit for every lane of the warp: whose value is not 0, or is that of the own lane. */
static inline unsigned int __ballot_sync(unsigned int mask, int value, int site = __builtin_LINE())
{
    unsigned int lane = threadIdx.x % 32, found = 0;
    for (int other = 0; other < 32; other++)
        found |= (__shfl_xor_sync(mask, value, other, site) != 0 ? 1u : 0u)
                 << (lane ^ static_cast<unsigned int>(other));
    return found;
}

template <typename T> unsigned int __match_any_sync(unsigned int mask, T value, int site = __builtin_LINE())
{
    unsigned int lane = threadIdx.x % 32, found = 0;
    for (int other = 0; other < 32; other++)
        found |= (__shfl_xor_sync(mask, value, other, site) == value ? 1u : 0u)
                 << (lane ^ static_cast<unsigned int>(other));
    return found;
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

static inline int __popc(unsigned int bits)
{
    return __builtin_popcount(bits);
}

/* One thread runs at a time. */
static inline int atomicAdd(int *address, int value)
{
    int before = *address;
    *address = before + value;
    return before;
}

enum cudaError_t {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInsufficientDriver,
    cudaErrorNotSupported,
    cudaErrorStreamCaptureUnsupported,
    cudaErrorStreamCaptureInvalidated,
    cudaErrorStreamCaptureIsolation,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0 };

struct cudaDeviceProp {
    char name[64];
    std::size_t totalGlobalMem, sharedMemPerMultiprocessor;
    int major, minor, multiProcessorCount;
    struct {
        char bytes[16];
    } uuid;
};

cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaMalloc(void **memory, std::size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, std::size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t error);

/* Device memory: reserved, and open only inside launches and copies. One thread at a time has it open. */
void *emulation_reserve(std::size_t bytes);
void emulation_free(void *memory);
void emulation_open();
void emulation_shut();

/* For sums of several devices, which each stream reaches in its own time. How much a stream was asked for; whether it could be run as
 * far as a position, which it cannot while another thread runs it; and whether it is captured, which is spoilt then. */
std::size_t emulation_submitted(cudaStream_t stream);
bool emulation_run(cudaStream_t stream, std::size_t position);
bool emulation_captured(cudaStream_t stream);

/* Ends the program where the current device does what may wait for all devices while another one is in a sum that this one was not
 * asked for: both would wait for ever (nccl.cpp). */
void emulation_check_sums(const char *what);

/* Shuts it for as long as a thread that has it open waits for others: leave gives how often it was opened. */
int emulation_leave();
void emulation_return(int times);

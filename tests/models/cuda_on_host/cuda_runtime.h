/* Stands in for NVIDIA's cuda_runtime.h; see README.md. What models/cuda/ uses of it, and no more. */
#ifndef MTIL_TESTS_CUDA_ON_HOST_CUDA_RUNTIME_H
#define MTIL_TESTS_CUDA_ON_HOST_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __shared__ static
#define DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(emulation_shared())

struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int nx = 1, unsigned int ny = 1, unsigned int nz = 1) : x(nx), y(ny), z(nz)
    {
    }
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

void *emulation_shared();
void emulation_launch(dim3 grid, dim3 block, std::size_t shared, const std::function<void()> &thread);
std::uint64_t emulation_exchange(std::uint64_t value, int lanes); /* the value of the lane whose number differs by xor */
void __syncthreads();

#define CUDA_LAUNCH(cuda, kernel, grid, block, shared, ...)                                                            \
    emulation_launch((grid), (block), (shared), [=] { kernel(__VA_ARGS__); })

template <typename T> T __shfl_xor_sync(unsigned int mask, T value, int lanes)
{
    (void)mask;
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = emulation_exchange(bits, lanes);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation,
    cudaErrorNotSupported,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1 };
typedef struct emulation_stream *cudaStream_t;

struct cudaDeviceProp {
    char name[64];
    std::size_t totalGlobalMem;
    int major, minor;
};

cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t error);

/* Device memory: reserved, and open only inside launches and copies. */
void *emulation_reserve(std::size_t bytes);
void emulation_free(void *memory, std::size_t bytes);
void emulation_open();
void emulation_shut();

#endif

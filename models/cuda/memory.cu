/* Arenas over device memory: addresses are reserved at once, pages are mapped when an arena first reaches them. The driver's
 * functions are looked up at run time, so that the program starts without a driver. */
#include <cuda.h>

#include <stdlib.h>

#include "models/cuda/cuda.h"

enum { CHUNK = 32 << 20 }; /* bytes mapped at a time, rounded to the device's granularity */

#define FUNCTIONS(f)                                                                                                   \
    f(cuMemAddressReserve) f(cuMemAddressFree) f(cuMemCreate) f(cuMemRelease) f(cuMemMap) f(cuMemUnmap)                \
        f(cuMemSetAccess) f(cuMemGetAllocationGranularity)
struct driver {
    FUNCTIONS(CUDA_FUNCTION)
};

cudaError_t cuda_driver_function(const char *name, unsigned version, void **function)
{
#if CUDART_VERSION >= 12050
    cudaError_t result = cudaGetDriverEntryPointByVersion(name, function, version, cudaEnableDefault, NULL);
#else /* of the version that this program is built with */
    cudaError_t result = cudaGetDriverEntryPoint(name, function, cudaEnableDefault);
#endif
    return result == cudaSuccess && *function == NULL ? cudaErrorNotSupported : result;
}

/* As dlsym; result: why there is none. */
static void *find_one(void *result, const char *name)
{
    enum { VERSION = 12000 };
    void *entry = NULL;
    cudaError_t *why = (cudaError_t *)result;
    *why = cuda_driver_function(name, VERSION, &entry);
    return *why == cudaSuccess ? entry : NULL;
}

static cudaError_t find_driver(struct driver *library)
{
    const struct cuda_function wanted[] = {FUNCTIONS(CUDA_WANTED)};
    cudaError_t result = cudaSuccess;
    cuda_functions_find(wanted, sizeof wanted / sizeof *wanted, find_one, &result);
    return result;
}

/* The owner of an arena: everything that is needed to map its pages. */
struct backing {
    struct cuda *cuda;
    struct driver driver;
    CUmemAllocationProp properties;
    size_t reserved, chunk;
};

size_t cuda_memory_left(struct backend *backend)
{
    size_t left = 0, total;
    return cudaMemGetInfo(&left, &total) == cudaSuccess ? left : 0;
}

static bool map_pages(const struct driver *driver, CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle pages,
                      const CUmemAccessDesc *access)
{
    if (driver->cuMemMap(at, bytes, 0, pages, 0) != CUDA_SUCCESS)
        return false;
    if (driver->cuMemSetAccess(at, bytes, access, 1) == CUDA_SUCCESS)
        return true;
    driver->cuMemUnmap(at, bytes);
    return false;
}

static bool back(struct arena *arena, size_t needed)
{
    struct backing *b = (struct backing *)arena->owner;
    if (b->cuda->recording)
        return false; /* a recorded step uses the memory of the step before it */
    while (arena->backed < needed) {
        CUmemGenericAllocationHandle pages;
        CUdeviceptr at = (CUdeviceptr)arena->base + arena->backed;
        CUmemAccessDesc access = {};
        access.location = b->properties.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (b->driver.cuMemCreate(&pages, b->chunk, &b->properties, 0) != CUDA_SUCCESS) {
            arena->left = cuda_memory_left(NULL) / b->chunk * b->chunk; /* less than a chunk is of no use */
            return false;
        }
        bool usable = map_pages(&b->driver, at, b->chunk, pages, &access);
        b->driver.cuMemRelease(pages); /* the mapping keeps them */
        if (!usable)
            return false;
        arena->backed += b->chunk;
        cuda_take(b->cuda, b->chunk);
    }
    return true;
}

static void fill(struct arena *arena, void *memory, size_t bytes)
{
    cudaMemsetAsync(memory, 0xff, bytes, ((const struct backing *)arena->owner)->cuda->stream);
}

static void read(struct arena *arena, void *to, const void *memory, size_t bytes)
{
    cudaMemcpy(to, memory, bytes, cudaMemcpyDeviceToHost);
}

static status reserve(struct arena *arena, struct backing *b, size_t limit, const char *name, struct error *error)
{
    int device;
    size_t free_bytes, total, granularity;
    cudaError_t result = cudaGetDevice(&device);
    if (result == cudaSuccess)
        result = cudaMemGetInfo(&free_bytes, &total);
    if (result == cudaSuccess)
        result = find_driver(&b->driver);
    TRY(cuda_done(result, "reserving memory", error));
    b->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    b->properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    b->properties.location.id = device;
    CUdeviceptr base;
    if (b->driver.cuMemGetAllocationGranularity(&granularity, &b->properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) !=
        CUDA_SUCCESS)
        return error_set(error, ERROR_DEVICE, "cuda: this device cannot map memory on demand");
    b->chunk = (CHUNK + granularity - 1) / granularity * granularity;
    b->reserved = ((limit > 0 ? limit : total) + b->chunk - 1) / b->chunk * b->chunk;
    if (b->driver.cuMemAddressReserve(&base, b->reserved, 0, 0, 0) != CUDA_SUCCESS)
        return error_set(error, ERROR_MEMORY, "cuda: cannot reserve %zu MiB of addresses for the %s arena",
                         b->reserved >> 20, name);
    *arena = {};
    arena->name = name;
    arena->base = (uint8_t *)base;
    arena->limit = b->reserved;
    arena->owner = b;
    arena->back = back;
    arena->fill = fill;
    arena->read = read;
    return OK;
}

status cuda_arena_create(struct backend *backend, struct arena *arena, size_t limit, const char *name,
                         struct error *error)
{
    struct backing *b = (struct backing *)xcalloc(1, sizeof *b);
    b->cuda = cuda_of(backend);
    status result = reserve(arena, b, limit, name, error);
    if (result != OK)
        free(b);
    return result;
}

void cuda_arena_destroy(struct backend *backend, struct arena *arena)
{
    struct backing *b = (struct backing *)arena->owner;
    if (b == NULL)
        return;
    cudaDeviceSynchronize();
    arena_check(arena);
    for (size_t at = 0; at < arena->backed; at += b->chunk)
        b->driver.cuMemUnmap((CUdeviceptr)arena->base + at, b->chunk);
    b->driver.cuMemAddressFree((CUdeviceptr)arena->base, b->reserved);
    b->cuda->backend.taken -= arena->backed;
    free(b);
    *arena = {};
}

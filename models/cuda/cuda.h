/* Internal to the CUDA backend: its context, how operations launch kernels, and the operations of its table. One file per
 * family of operations, as in models/cpu/.
 *
 *     TRY(cuda_scratch(cuda, bytes, &memory, error));               // device memory of one operation
 *     CUDA_LAUNCH(cuda, normalize_rows, grid, BLOCK, 0, matrix, norms);
 *     return OK;                                                    // the launches are checked, the memory is given back
 *
 * Kernels use no floating-point atomics: the same inputs give the same bits. They run in order in one stream, but for the
 * second of two branches, which has a stream, scratch memory and a workspace of its own; nothing waits for the device but
 * downloads, large uploads, results that are taken and a staging queue that is full.
 */
#pragma once

#include <cuda_runtime.h>

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

extern "C" {
#include "core/alloc.h"
#include "models/backend.h"
}

enum { WARP = 32, BLOCK = 256 };
enum { CUDA_SHARED_BYTES = 99 << 10 }; /* of a block, on every device from compute capability 8.0 on */

struct cuda_products; /* the library's handle and the plans of products seen before */

struct cuda_uploads; /* pinned memory that small uploads go through */

/* Weights and biases as products in bf16 read them (gemm.cu). */
struct cuda_copies {
    struct bf16_copy *list;
    size_t count;
};

struct cuda {
    struct backend backend;
    cudaStream_t stream, copies; /* copies: of staging queues, beside the stream that computes */
    size_t device, shared_bytes; /* of a multiprocessor */
    /* The second of two branches has these in place of the first one's; they are exchanged while its work is queued. */
    struct {
        cudaStream_t stream;
        struct arena scratch;
        cudaEvent_t forked, joined;
    } side;
    bool on_side;
    bool recording; /* the stream is captured: nothing is carried out, no memory may be mapped */
    struct cuda_uploads *uploads;
    struct arena scratch; /* of one operation; every operation leaves it as it was */
    struct cuda_products *products;
    struct cuda_copies bf16_copies;
    char description[192], arithmetic[256];
};

static inline struct cuda *cuda_of(struct backend *backend)
{
    return (struct cuda *)backend->context;
}

/* Counts the device's memory for backend.peak. */
static inline void cuda_take(struct cuda *cuda, size_t bytes)
{
    cuda->backend.taken += bytes;
    if (cuda->backend.peak < cuda->backend.taken)
        cuda->backend.peak = cuda->backend.taken;
}

#ifndef CUDA_LAUNCH
#define CUDA_LAUNCH(cuda, kernel, grid, block, shared, ...)                                                            \
    kernel<<<(grid), (block), (shared), (cuda)->stream>>>(__VA_ARGS__)
/* For kernels that need more than 48 KiB of shared memory. The limit is a kernel's own, and a recorded launch must still find it
 * after a smaller launch: it is always the same. */
#define CUDA_LAUNCH_LARGE(cuda, kernel, grid, block, shared, ...)                                                      \
    do {                                                                                                               \
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, CUDA_SHARED_BYTES);                  \
        CUDA_LAUNCH(cuda, kernel, grid, block, shared, __VA_ARGS__);                                                   \
    } while (0)
#endif

static inline unsigned int blocks_for(size_t n, size_t each)
{
    return (unsigned int)((n + each - 1) / each);
}

/* Rows of f32 values for kernels, and rows of any floating type. */
struct rows {
    float *data;
    size_t count, columns, stride;
};

struct typed_rows {
    void *data;
    enum tensor_type type;
    size_t count, columns, stride;
};

static inline struct rows rows_of(struct matrix m)
{
    assert(m.type == TENSOR_F32);
    return {(float *)m.data, m.rows, m.columns, m.stride};
}

static inline struct typed_rows typed_rows_of(struct matrix m)
{
    assert(m.type == TENSOR_F32 || m.type == TENSOR_BF16);
    return {m.data, m.type, m.rows, m.columns, m.stride};
}

status cuda_scratch(struct cuda *cuda, size_t bytes, void *pointer, struct error *error);
status cuda_done(cudaError_t result, const char *what,
                 struct error *error); /* OK, or an error that says what and why */

/* Defines an operation that is one launch, `each` of n to a block of threads: a thread per value, or a warp per row. */
#define CUDA_OPERATION(operation, n, each, kernel, ...)                                                                \
    status cuda_##operation(struct cuda *cuda, const struct operation *o, struct error *error)                         \
    {                                                                                                                  \
        if ((n) > 0)                                                                                                   \
            CUDA_LAUNCH(cuda, kernel, blocks_for(n, each), BLOCK, 0, __VA_ARGS__);                                     \
        return OK;                                                                                                     \
    }

/* Device memory whose pages come when an arena reaches them (memory.cu). */
status cuda_arena_create(struct backend *, struct arena *, size_t limit, const char *name, struct error *);
void cuda_arena_destroy(struct backend *, struct arena *);
size_t cuda_memory_left(struct backend *);

enum { CUDA_WORKSPACE = 32 << 20 }; /* of products, in bytes; the second branch has another */

/* The library reads a bias by 16 bytes, and no preference can state a smaller alignment. */
enum { CUDA_BIAS_ALIGNMENT = 16 };

/* One product out = scale · op(a) op(b) + bias (NULL: none) + beta · addend through cuBLASLt; addend may be out. a and b
 * have one type; out, bias and addend have another or the same. An addend that is out has its stride (product.cu). */
struct cuda_product {
    struct matrix a, b, out, addend;
    bool transpose_a, transpose_b;
    float scale, beta;
    const void *bias;
};
status cuda_products_create(struct cuda *cuda, struct error *error);
void cuda_products_destroy(struct cuda *cuda);
size_t cuda_products_version(const struct cuda *cuda); /* of the library that chooses the algorithms */
status cuda_product_run(struct cuda *cuda, const struct cuda_product *product, struct error *error);

/* bf16 [rows, columns] = the matrix, rounded (gemm.cu). */
void cuda_round(struct cuda *cuda, struct matrix matrix, void *bf16);
/* The matrix, or its values rounded to bf16: a copy that is kept (cuda_copies_find), else in scratch memory. */
status cuda_as_bf16(struct cuda *cuda, struct matrix *matrix, bool kept, struct error *error);

/* The copy of a matrix of parameters takes its place; false: there is none, because no memory is left or operations are recorded
 * (gemm.cu). */
bool cuda_copies_find(struct cuda *cuda, struct matrix *matrix);
/* The copies of what an optimizer is about to change, from number *next on, as many as a launch takes: it writes them too, at
 * values `first` and the `n` after it. Past all of them *next is the number of copies. */
enum { TRAINED_COPIES = 96 };
struct cuda_trained_copies {
    size_t count;
    struct {
        size_t first, n;
        void *memory;
    } list[TRAINED_COPIES];
};
void cuda_copies_list(struct cuda *cuda, const float *values, size_t n, size_t *next,
                      struct cuda_trained_copies *trained);
void cuda_copies_update(struct cuda *cuda); /* those whose parameters have changed, before a recording reads them */
void cuda_copies_destroy(struct cuda *cuda);
void cuda_renew(struct backend *, const float *values, size_t n);
void cuda_forget(struct backend *, const float *values, size_t n);

enum { SUMMED_ROWS = 256 }; /* of one partial sum (rows.cu) */
/* out [columns] += partial sums [chunks, columns], in their order */
void cuda_add_chunks(struct cuda *cuda, size_t chunks, size_t columns, const float *partial, float *out);

/* A dispatch as kernels read it. */
struct slots {
    size_t samples, experts, top_k;
    int32_t *chosen;
    float *gates;
    int32_t *slot, *sample, *choice, *offsets;
};
static inline struct slots slots_of(const struct dispatch *d)
{
    return {d->samples, d->experts, d->top_k, d->chosen, d->gates, d->slot, d->sample, d->choice, d->offsets};
}

/* The counts of a routing, as in struct route; counts NULL: nothing is counted, used NULL: not wanted. */
struct selections {
    int32_t *counts, *used;
    bool add_used;
    const int32_t *frozen;
};

/* The last step of routing (dispatch.cu): assigns slots to the choices by expert, then by sample, and counts what was selected
 * (NULL: nothing is). An expert keeps at most `limit` choices (0: all), first choices before second ones; the gates of the
 * others become 0. */
status cuda_sort_slots(struct cuda *cuda, const struct slots *d, size_t limit, const struct selections *selections,
                       struct error *error);

#define DECLARE(operation) status cuda_##operation(struct cuda *, const struct operation *, struct error *);
BACKEND_OPERATIONS(DECLARE)
#undef DECLARE

/* transfer.cu */
status cuda_uploads_create(struct cuda *cuda, struct error *error);
void cuda_uploads_destroy(struct cuda *cuda);
status cuda_upload(struct backend *, void *device, const void *host, size_t bytes, struct error *);
status cuda_download(struct backend *, void *host, const void *device, size_t bytes, struct error *);
status cuda_queue_open(struct backend *, struct transfer_queue *, enum transfer, size_t bytes, struct error *);
void cuda_queue_close(struct backend *, struct transfer_queue *);
status cuda_staging_acquire(struct backend *, struct transfer_queue *, void **host, struct error *);
status cuda_staging_send(struct backend *, struct transfer_queue *, size_t bytes, struct error *);
status cuda_staging_receive(struct backend *, struct transfer_queue *, const void **device, struct error *);
status cuda_staging_release(struct backend *, struct transfer_queue *, struct error *);
status cuda_fetch_copy(struct backend *, struct transfer_queue *, const void *device, size_t bytes, struct error *);
status cuda_fetch_send(struct backend *, struct transfer_queue *, struct error *);
status cuda_fetch_take(struct backend *, struct transfer_queue *, const void **host, struct error *);

/* Functions that are looked up at run time, so that the program starts without their libraries. Each is listed once:
 *
 *     #define FUNCTIONS(f) f(ncclGroupStart) f(ncclGroupEnd)
 *     struct library { void *handle; FUNCTIONS(CUDA_FUNCTION) } *library;           // library->ncclGroupStart()
 *     const struct cuda_function wanted[] = {FUNCTIONS(CUDA_WANTED)};
 *     TRY(cuda_library_open(&library->handle, "libnccl.so.2", "NCCL", "use one GPU", wanted, 2, error));
 */
struct cuda_function {
    const char *name;
    void *pointer; /* the address of a pointer to the function */
};
#define CUDA_FUNCTION(function) decltype(&::function) function;
#define CUDA_WANTED(function) {#function, &library->function},

/* find: as dlsym, from a handle. Returns the first function that is missing; NULL: none is. */
static inline const struct cuda_function *cuda_functions_find(const struct cuda_function *wanted, size_t count,
                                                              void *(*find)(void *from, const char *name), void *from)
{
    for (size_t i = 0; i < count; i++) {
        void *found = find(from, wanted[i].name);
        if (found == NULL)
            return &wanted[i];
        memcpy(wanted[i].pointer, &found, sizeof found);
    }
    return NULL;
}

/* A function of the driver as of a version (12000: 12.0), looked up so that the program starts without a driver (memory.cu). */
cudaError_t cuda_driver_function(const char *name, unsigned version, void **function);

/* The caller closes the handle, also after an error, unless it is NULL. name and otherwise: for messages. */
static inline status cuda_library_open(void **handle, const char *file, const char *name, const char *otherwise,
                                       const struct cuda_function *wanted, size_t count, struct error *error)
{
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*handle == NULL)
        return error_set(error, ERROR_DEVICE, "cuda: %s cannot be opened: %s; put its folder on LD_LIBRARY_PATH, or %s",
                         name, dlerror(), otherwise);
    const struct cuda_function *missing = cuda_functions_find(wanted, count, dlsym, *handle);
    if (missing == NULL)
        return OK;
    return error_set(error, ERROR_DEVICE, "cuda: %s lacks %s; a newer one is needed", name, missing->name);
}

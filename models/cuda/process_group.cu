/* The only file that calls NCCL: sums over several GPUs. The library is opened with the first process group, so that a program
 * that uses one GPU does not need it. */
#include "models/cuda/cuda.h"

status cuda_bind(struct backend *backend, struct error *error)
{
    return cuda_done(cudaSetDevice((int)cuda_of(backend)->device), "choosing the device", error);
}

#if __has_include(<nccl.h>)

#include <atomic>
#include <nccl.h>
#include <stdlib.h>
#include <unistd.h>

#include "models/cuda/library.cuh"

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

status cuda_process_group_create(struct backend *const *ranks, struct process_group *group, struct error *error)
{
    struct communicators *c = new communicators();
    group->owner = c;
    status created = create(c, ranks, group->size, error);
    if (created != OK)
        cuda_process_group_destroy(ranks[0], group);
    return created;
}

status cuda_all_reduce(struct backend *backend, const struct all_reduce *o, struct error *error)
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

void cuda_process_group_abort(struct backend *backend, struct process_group *group)
{
    (void)backend;
    struct communicators *c = (struct communicators *)group->owner;
    if (!c->made || c->aborted.exchange(true))
        return;
    wait_for_threads(c, group->size);
    end_all(c, group->size, c->library.ncclCommAbort);
}

void cuda_process_group_destroy(struct backend *backend, struct process_group *group)
{
    (void)backend;
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

#else

status cuda_process_group_create(struct backend *const *ranks, struct process_group *group, struct error *error)
{
    (void)ranks;
    *group = {};
    return error_set(error, ERROR_DEVICE,
                     "cuda: this program was built without NCCL (its header nccl.h was not found); use one GPU "
                     "(run.gpus=1)");
}

status cuda_all_reduce(struct backend *backend, const struct all_reduce *o, struct error *error)
{
    (void)backend;
    (void)o;
    return error_set(error, ERROR_DEVICE, "cuda: this program was built without NCCL");
}

void cuda_process_group_abort(struct backend *backend, struct process_group *group)
{
    (void)backend;
    (void)group;
}

void cuda_process_group_destroy(struct backend *backend, struct process_group *group)
{
    (void)backend;
    *group = {};
}

#endif

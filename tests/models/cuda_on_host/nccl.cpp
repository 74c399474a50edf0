/* Ranks meet; the last one to come computes for all, in their order. */
#include <nccl.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace
{

struct meeting {
    std::mutex mutex;
    std::condition_variable complete;
    std::size_t arrived = 0, number = 0;
    bool aborted = false;
    std::vector<void *> values;
};

template <typename T> void reduce(const std::vector<void *> &values, std::size_t n, ncclRedOp_t operation)
{
    emulation_open();
    for (std::size_t i = 0; i < n; i++) {
        T total = static_cast<const T *>(values[0])[i];
        for (std::size_t m = 1; m < values.size(); m++) {
            T value = static_cast<const T *>(values[m])[i];
            total = operation == ncclSum ? total + value : value > total ? value : total;
        }
        for (void *to : values)
            static_cast<T *>(to)[i] = total;
    }
    emulation_shut();
}

} // namespace

struct emulation_communicator {
    std::shared_ptr<meeting> of;
    std::size_t rank;
};

ncclResult_t ncclCommInitAll(ncclComm_t *communicators, int count, const int *devices)
{
    if (std::set<int>(devices, devices + count).size() != static_cast<std::size_t>(count))
        return ncclInvalidArgument;
    auto shared = std::make_shared<meeting>();
    shared->values.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++)
        communicators[i] = new emulation_communicator{shared, static_cast<std::size_t>(i)};
    return ncclSuccess;
}

namespace
{

thread_local bool grouped;

/* Where a thread that destroys one rank after another would wait for ever. */
void check_grouped()
{
    if (grouped)
        return;
    std::fprintf(stderr, "CUDA on the host: a rank of a process group is destroyed by itself\n");
    std::abort();
}

} // namespace

ncclResult_t ncclGroupStart()
{
    grouped = true;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd()
{
    grouped = false;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator)
{
    check_grouped();
    delete communicator;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator)
{
    check_grouped();
    {
        std::lock_guard<std::mutex> lock(communicator->of->mutex);
        communicator->of->aborted = true;
    }
    communicator->of->complete.notify_all();
    return ncclSuccess; /* other threads may still ask it for something */
}

static void meet(meeting &of, std::size_t rank, void *to, std::size_t n, ncclDataType_t type, ncclRedOp_t operation)
{
    std::unique_lock<std::mutex> lock(of.mutex);
    if (of.aborted)
        return;
    std::size_t number = of.number;
    of.values[rank] = to;
    if (++of.arrived == of.values.size()) {
        if (type == ncclFloat32)
            reduce<float>(of.values, n, operation);
        else
            reduce<int>(of.values, n, operation);
        of.arrived = 0;
        of.number++;
        of.complete.notify_all();
    }
    of.complete.wait(lock, [&] { return of.number != number || of.aborted; });
}

ncclResult_t ncclAllReduce(const void *, void *to, std::size_t n, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream)
{
    emulation_submit(
        stream,
        [=, of = communicator->of, rank = communicator->rank] {
            int opened = emulation_leave();
            meet(*of, rank, to, n, type, operation);
            emulation_return(opened);
        },
        "ncclAllReduce");
    cudaStreamSynchronize(stream); /* a device would get there by itself while its host waits for another rank */
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess ? "no error" : "two ranks on one device";
}

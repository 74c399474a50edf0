/* Sums of several devices. As on devices, who asks for one does not wait: each stream reaches it in its own time, where it
 * waits for the others. Since streams run only while a thread waits for them, the first to wait runs those of the others, too,
 * unless their threads do. The ranks' values are added in their order. */
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace
{

/* A sum that a rank was asked for. */
struct call {
    void *values;
    std::size_t n;
    ncclDataType_t type;
    ncclRedOp_t operation;
    cudaStream_t stream;
    std::size_t position; /* of its piece of work */
};

struct rank {
    int device;
    std::vector<call> calls;
    std::size_t reached; /* calls that its stream has come to */
};

struct meeting {
    std::mutex mutex;
    std::condition_variable moved;
    std::vector<rank> ranks;
    std::size_t done = 0; /* calls that were carried out */
    bool aborted = false;
};

std::mutex listing;
std::set<meeting *> meetings;

template <typename T> void reduce(const std::vector<void *> &values, std::size_t n, ncclRedOp_t operation)
{
    for (std::size_t i = 0; i < n; i++) {
        T total = static_cast<const T *>(values[0])[i];
        for (std::size_t m = 1; m < values.size(); m++) {
            T value = static_cast<const T *>(values[m])[i];
            total = operation == ncclSum ? total + value : value > total ? value : total;
        }
        for (void *to : values)
            static_cast<T *>(to)[i] = total;
    }
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
    const char *loading = std::getenv("CUDA_MODULE_LOADING");
    if (count > 1 && (loading == nullptr || std::strcmp(loading, "EAGER") != 0))
        return ncclInvalidUsage;
    std::shared_ptr<meeting> shared(new meeting, [](meeting *ended) {
        std::lock_guard<std::mutex> lock(listing);
        meetings.erase(ended);
        delete ended;
    });
    for (int i = 0; i < count; i++)
        shared->ranks.push_back({devices[i], {}, 0});
    std::lock_guard<std::mutex> lock(listing);
    meetings.insert(shared.get());
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
    communicator->of->moved.notify_all();
    return ncclSuccess; /* other threads may still ask it for something */
}

namespace
{

/* Whether a rank has everything before the call behind it. Its stream is run up to there unless another thread runs it. */
bool is_there(meeting &of, rank &each, std::size_t number, std::unique_lock<std::mutex> &lock)
{
    if (each.reached > number)
        return true;
    if (each.calls.size() <= number)
        return false;
    call next = each.calls[number];
    lock.unlock();
    bool there = emulation_run(next.stream, next.position);
    lock.lock();
    return there;
}

void carry_out(const meeting &of, std::size_t number)
{
    std::vector<void *> values;
    for (const rank &each : of.ranks)
        values.push_back(each.calls[number].values);
    const call &first = of.ranks[0].calls[number];
    emulation_open();
    if (first.type == ncclFloat32)
        reduce<float>(values, first.n, first.operation);
    else
        reduce<int>(values, first.n, first.operation);
    emulation_shut();
}

/* The stream of a rank has come to its call of that number. */
void meet(meeting &of, std::size_t own, std::size_t number)
{
    std::unique_lock<std::mutex> lock(of.mutex);
    of.ranks[own].reached = number + 1;
    while (!of.aborted && of.done <= number) {
        bool all = true;
        for (rank &each : of.ranks)
            all = is_there(of, each, number, lock) && all;
        if (all && !of.aborted && of.done <= number) {
            carry_out(of, number);
            of.done = number + 1;
        } else if (!all) {
            of.moved.wait_for(lock, std::chrono::milliseconds(1)); /* nobody says how far other threads run a stream */
        }
    }
    of.moved.notify_all();
}

} // namespace

ncclResult_t ncclAllReduce(const void *, void *to, std::size_t n, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream)
{
    std::shared_ptr<meeting> of = communicator->of;
    std::size_t own = communicator->rank;
    if (emulation_captured(stream))
        return ncclSuccess; /* it would be asked for once, and reached often */
    std::unique_lock<std::mutex> lock(of->mutex);
    std::vector<call> &calls = of->ranks[own].calls;
    std::size_t number = calls.size();
    calls.push_back({to, n, type, operation, stream, emulation_submitted(stream)});
    lock.unlock();
    emulation_submit(
        stream,
        [=] {
            int opened = emulation_leave();
            meet(*of, own, number);
            emulation_return(opened);
        },
        "ncclAllReduce");
    of->moved.notify_all();
    return ncclSuccess;
}

void emulation_check_sums(const char *what)
{
    int device;
    cudaGetDevice(&device);
    std::lock_guard<std::mutex> listed(listing);
    for (meeting *of : meetings) {
        std::lock_guard<std::mutex> lock(of->mutex);
        std::size_t own = SIZE_MAX, most = 0;
        for (const rank &each : of->ranks) {
            own = each.device == device ? each.calls.size() : own;
            most = std::max(most, each.calls.size());
        }
        if (own >= most || of->aborted)
            continue;
        std::fprintf(stderr, "CUDA on the host: %s on device %d, while another one waits for it in a sum\n", what,
                     device);
        std::abort();
    }
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess        ? "no error"
           : result == ncclInvalidUsage ? "several devices load their kernels lazily (CUDA_MODULE_LOADING)"
                                        : "two ranks on one device";
}

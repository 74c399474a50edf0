/* The emulated device reports what a device would do wrong without a word, and does in another order what a device may. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {
#include <cmocka.h>

#include "tests/fault.h"
}

#include <cuda_runtime.h>
#include <nccl.h>

namespace
{

constexpr unsigned int WARP = 32;

struct launcher {
    cudaStream_t stream;
} device;

void open_device(launcher &to, int number)
{
    cudaSetDevice(number);
    cudaStreamCreateWithFlags(&to.stream, cudaStreamNonBlocking);
}

/* Runs a launch that is to be reported. */
#define LAUNCHED(name, ...)                                                                                            \
    void name()                                                                                                        \
    {                                                                                                                  \
        open_device(device, 0);                                                                                        \
        CUDA_LAUNCH(&device, __VA_ARGS__);                                                                             \
        cudaStreamSynchronize(device.stream);                                                                          \
    }

void expect(void (*call)(), const char *word)
{
    const char *const words[] = {word, nullptr};
    expect_fault(call, words);
}

/* --- Shuffles --- */

float seen[WARP];

void add_half_a_warp(int)
{
    seen[threadIdx.x] = __shfl_xor_sync(0xffffu, 1.0f, 1);
}
LAUNCHED(shuffle_of_half_a_warp, add_half_a_warp, 1, WARP, 0, 0)

void add_at_two_places(int)
{
    if (threadIdx.x < WARP / 2)
        seen[threadIdx.x] = __shfl_xor_sync(WHOLE_WARP, 1.0f, 1);
    else
        seen[threadIdx.x] = 2 * __shfl_xor_sync(WHOLE_WARP, 1.0f, 1);
}
LAUNCHED(shuffle_at_two_places, add_at_two_places, 1, WARP, 0, 0)

void synchronize_at_two_places(int)
{
    if (threadIdx.x < WARP / 2)
        __syncwarp();
    else
        seen[threadIdx.x] = __shfl_xor_sync(WHOLE_WARP, 1.0f, 1);
}
LAUNCHED(barrier_beside_a_shuffle, synchronize_at_two_places, 1, WARP, 0, 0)

void add_other_lanes(int)
{
    seen[threadIdx.x] = __shfl_xor_sync(WHOLE_WARP, 1.0f, threadIdx.x < 4 ? 1 : 2);
}
LAUNCHED(shuffle_over_two_distances, add_other_lanes, 1, WARP, 0, 0)

void add_what_is_not_there(int)
{
    seen[threadIdx.x] = __shfl_xor_sync(WHOLE_WARP, 1.0f, 16);
}
LAUNCHED(shuffle_beyond_the_block, add_what_is_not_there, 1, 20, 0, 0)

void shuffles_that_a_device_leaves_undefined(void **)
{
    expect(shuffle_of_half_a_warp, "a part of a warp");
    expect(shuffle_at_two_places, "meet at different places");
    expect(barrier_beside_a_shuffle, "meet at different places");
    expect(shuffle_over_two_distances, "meet at different places");
    expect(shuffle_beyond_the_block, "a lane that the warp does not have");
}

/* --- Shared memory --- */

float found[3];

/* Reads what the block before it has left, and leaves something. */
void read_what_is_left(int)
{
    __shared__ float left[WARP];
    if (threadIdx.x == 7) /* before it writes */
        found[blockIdx.x] = left[7];
    left[threadIdx.x] = 1;
}

void shared_memory_is_no_number(void **)
{
    open_device(device, 0);
    for (int launch = 0; launch < 20; launch++) { /* also after the kernel is known */
        CUDA_LAUNCH(&device, read_what_is_left, 3, WARP, 0, 0);
        cudaStreamSynchronize(device.stream);
        for (float value : found)
            assert_true(std::isnan(value));
    }
}

void use_static_and_dynamic(int)
{
    __shared__ float values[8 << 10]; /* 32 KiB */
    DYNAMIC_SHARED(float, more);
    for (unsigned int i = threadIdx.x; i < 8 << 10; i += WARP)
        values[i] = 1;
    more[threadIdx.x] = values[threadIdx.x];
}
LAUNCHED(static_and_dynamic_memory, use_static_and_dynamic, 1, WARP, 24 << 10, 0)

void shared_memory_has_a_limit(void **)
{
    open_device(device, 0);
    CUDA_LAUNCH(&device, use_static_and_dynamic, 1, WARP, 8 << 10, 0);
    cudaStreamSynchronize(device.stream);
    expect(static_and_dynamic_memory, "more shared memory");
}

/* --- Branches, outside a graph --- */

int order[2], at;

void note(int branch)
{
    order[at++] = branch;
}

void branches_take_turns(void **)
{
    launcher side;
    cudaEvent_t forked, joined;
    int first[4];
    open_device(device, 0);
    open_device(side, 0);
    cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
    for (int &branch : first) {
        at = 0;
        cudaEventRecord(forked, device.stream);
        cudaStreamWaitEvent(side.stream, forked, 0);
        CUDA_LAUNCH(&device, note, 1, 1, 0, 0);
        CUDA_LAUNCH(&side, note, 1, 1, 0, 1);
        cudaEventRecord(joined, side.stream);
        cudaStreamWaitEvent(device.stream, joined, 0);
        cudaStreamSynchronize(device.stream);
        assert_int_equal(at, 2);
        branch = order[0];
    }
    assert_int_equal(first[0] + first[1], 1);
    assert_int_equal(first[2] + first[3], 1);
}

/* --- Sums of several devices --- */

struct ranks {
    launcher of[2];
    ncclComm_t communicators[2];
    void *values[2];
};

void open_ranks(ranks &r)
{
    const int devices[] = {0, 1};
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    assert_int_equal(ncclCommInitAll(r.communicators, 2, devices), ncclSuccess);
    for (int i = 0; i < 2; i++) {
        open_device(r.of[i], i);
        cudaMalloc(&r.values[i], sizeof(float));
    }
}

void set(float *to, float value)
{
    *to = value;
}

void ask_for_sum(ranks &r, int rank)
{
    cudaSetDevice(rank);
    CUDA_LAUNCH(&r.of[rank], set, 1, 1, 0, static_cast<float *>(r.values[rank]), static_cast<float>(rank + 1));
    ncclAllReduce(r.values[rank], r.values[rank], 1, ncclFloat32, ncclSum, r.communicators[rank], r.of[rank].stream);
}

/* One thread asks for both ranks, which would wait for ever if a call did. */
void sums_are_asked_for_and_not_waited_for(void **)
{
    ranks r;
    float sums[2] = {};
    open_ranks(r);
    for (int i = 0; i < 2; i++)
        ask_for_sum(r, i);
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        cudaMemcpyAsync(&sums[i], r.values[i], sizeof sums[i], cudaMemcpyDeviceToHost, r.of[i].stream);
        CUDA_LAUNCH(&r.of[i], set, 1, 1, 0, static_cast<float *>(r.values[i]), 100.0f); /* behind the sum */
    }
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        cudaStreamSynchronize(r.of[i].stream);
        assert_true(sums[i] == 3.0f);
    }
}

void allocate_behind()
{
    ranks r;
    void *memory;
    open_ranks(r);
    ask_for_sum(r, 0);
    cudaSetDevice(1);
    cudaMalloc(&memory, 1);
}

void who_is_awaited_in_a_sum_allocates_nothing(void **)
{
    expect(allocate_behind, "memory is allocated on device 1, while another one waits for it in a sum");
}

void several_devices_load_their_kernels_at_once(void **)
{
    const int devices[] = {0, 1};
    ncclComm_t communicators[2];
    unsetenv("CUDA_MODULE_LOADING");
    assert_int_equal(ncclCommInitAll(communicators, 2, devices), ncclInvalidUsage);
}

void copies_to_nowhere_are_refused(void **)
{
    char byte;
    open_device(device, 0);
    assert_int_equal(cudaMemcpyAsync(&byte, nullptr, 0, cudaMemcpyDeviceToHost, device.stream), cudaErrorInvalidValue);
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffles_that_a_device_leaves_undefined),
        cmocka_unit_test(shared_memory_is_no_number),
        cmocka_unit_test(shared_memory_has_a_limit),
        cmocka_unit_test(branches_take_turns),
        cmocka_unit_test(sums_are_asked_for_and_not_waited_for),
        cmocka_unit_test(who_is_awaited_in_a_sum_allocates_nothing),
        cmocka_unit_test(several_devices_load_their_kernels_at_once),
        cmocka_unit_test(copies_to_nowhere_are_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

/* Blocks one after another; the threads of a block are coroutines on one thread of the host. */
#include <cuda_runtime.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ucontext.h>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum state { READY, AT_BARRIER, AT_SHUFFLE, DONE };

constexpr std::size_t STACK = 256 << 10, ALIGNMENT = 128;
constexpr unsigned int THREADS = 1024, LANES = 32;

struct coroutine {
    jmp_buf place;
    char *stack;
    enum state state;
    dim3 index;
    std::uint64_t exchanged;
};

struct block {
    std::vector<coroutine> threads; /* kept for all launches; they are made as they are needed */
    std::vector<char> shared;       /* with room to align */
    const std::function<void()> *body;
    unsigned int count, current;
    bool reversed;
    jmp_buf scheduler;
    ucontext_t start;
};

block running;

[[noreturn]] void fault(const char *what)
{
    emulation_fault(what);
}

/* The life of a coroutine: the body once for every block that it takes part in. */
void live()
{
    unsigned int own = running.current;
    if (_setjmp(running.threads[own].place) == 0)
        setcontext(&running.start);
    for (;;) {
        (*running.body)();
        running.threads[own].state = DONE;
        if (_setjmp(running.threads[own].place) == 0)
            _longjmp(running.scheduler, 1);
    }
}

void make_coroutine(unsigned int number)
{
    running.threads.push_back({});
    coroutine &c = running.threads.back();
    c.stack = static_cast<char *>(std::malloc(STACK));
    if (c.stack == nullptr)
        fault("no memory for a thread's stack");
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = c.stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, live, 0);
    running.current = number;
    swapcontext(&running.start, &context);
}

void resume(unsigned int number)
{
    running.current = number;
    threadIdx = running.threads[number].index;
    if (_setjmp(running.scheduler) == 0)
        _longjmp(running.threads[number].place, 1);
}

void pause_as(enum state state)
{
    coroutine &c = running.threads[running.current];
    c.state = state;
    if (_setjmp(c.place) == 0)
        _longjmp(running.scheduler, 1);
}

unsigned int count_in(enum state state, unsigned int first, unsigned int last)
{
    unsigned int count = 0;
    for (unsigned int i = first; i < last; i++)
        count += running.threads[i].state == state;
    return count;
}

bool release(enum state state, unsigned int first, unsigned int last)
{
    unsigned int waiting = count_in(state, first, last);
    if (waiting == 0 || waiting + count_in(DONE, first, last) != last - first)
        return false;
    if (waiting != last - first)
        fault(state == AT_SHUFFLE ? "a shuffle that some lanes of the warp have left"
                                  : "a barrier that some threads of the block have left");
    for (unsigned int i = first; i < last; i++)
        if (running.threads[i].state == state)
            running.threads[i].state = READY;
    return true;
}

void run_block()
{
    while (count_in(DONE, 0, running.count) < running.count) {
        bool moved = false;
        for (unsigned int i = 0; i < running.count; i++) {
            unsigned int number = running.reversed ? running.count - 1 - i : i;
            if (running.threads[number].state != READY)
                continue;
            resume(number);
            moved = true;
        }
        for (unsigned int first = 0; first < running.count; first += LANES)
            moved = release(AT_SHUFFLE, first, first + LANES < running.count ? first + LANES : running.count) || moved;
        moved = release(AT_BARRIER, 0, running.count) || moved;
        if (!moved)
            fault("threads wait for one another at different places");
    }
}

} // namespace

void emulation_launch(dim3 grid, dim3 block, std::size_t shared, std::size_t most, const std::function<void()> &thread)
{
    emulation_open();
    running.count = block.x * block.y * block.z;
    if (running.count == 0 || running.count > THREADS || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
        grid.z > 65535 || shared > most)
        fault("a launch that a device would refuse");
    while (running.threads.size() < running.count) {
        running.threads.reserve(THREADS); /* coroutines hold on to their places */
        make_coroutine(static_cast<unsigned int>(running.threads.size()));
    }
    running.body = &thread;
    running.reversed = !running.reversed;
    running.shared.assign(shared + ALIGNMENT, static_cast<char>(0xff)); /* NaN: nothing may rely on zeros */
    blockDim = block;
    gridDim = grid;
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
                for (unsigned int i = 0; i < running.count; i++) {
                    running.threads[i].state = READY;
                    running.threads[i].index = dim3(i % block.x, i / block.x % block.y, i / block.x / block.y);
                }
                run_block();
            }
    emulation_shut();
}

void emulation_fault(const char *what)
{
    std::fprintf(stderr, "CUDA on the host: block %u %u %u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, what);
    std::abort();
}

void *emulation_shared()
{
    void *place = running.shared.data();
    std::size_t room = running.shared.size();
    return std::align(ALIGNMENT, room - ALIGNMENT, place, room);
}

void __syncthreads()
{
    pause_as(AT_BARRIER);
}

std::uint64_t emulation_exchange(std::uint64_t value, int lanes)
{
    unsigned int own = running.current;
    running.threads[own].exchanged = value;
    pause_as(AT_SHUFFLE);
    std::uint64_t other = running.threads[own ^ static_cast<unsigned int>(lanes)].exchanged;
    pause_as(AT_SHUFFLE); /* no lane writes the next value before all have read this one */
    return other;
}

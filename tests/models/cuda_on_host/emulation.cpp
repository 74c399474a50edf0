/* Blocks one after another; the threads of a block are coroutines on one thread of the host. */
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum state { READY, AT_BARRIER, AT_SHUFFLE, DONE, STATES };

constexpr std::size_t STACK = 256 << 10, ALIGNMENT = 128;
constexpr unsigned int THREADS = 1024, LANES = 32, WARP_MEMORY = 2048;

/* A stack. It runs one thread after another until one of them waits, then that one alone until it ends. */
struct coroutine {
    void *place[5]; /* of __builtin_setjmp, which costs a tenth of the library's */
    char *stack;
};

struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    std::size_t bytes, group;
};

struct thread {
    enum state state;
    coroutine *on; /* NULL: not started */
    dim3 index;
    std::uint64_t exchanged[2]; /* by turns: a lane may write its next value before all have read this one */
    unsigned int turn;
    int site, lanes;          /* of the exchange that it waits in */
    std::vector<copy> copies; /* that were not waited for */
    std::size_t groups;       /* committed */
};

struct warp {
    unsigned int first, last, in[STATES]; /* how many lanes are in a state */
};

struct alignas(16) memory_of_warp {
    char bytes[2][WARP_MEMORY]; /* by turns, as above */
};

struct block {
    thread threads[THREADS];
    warp warps[THREADS / LANES];
    memory_of_warp memories[THREADS / LANES];
    unsigned int count, warp_count, current;
    std::vector<coroutine *> idle; /* kept for all launches; they are made as they are needed */
    std::vector<char> shared;      /* with room to align */
    const std::function<void()> *body;
    bool reversed;
    void *scheduler[5];
    coroutine *made;
    ucontext_t start;
};

block running;

[[noreturn]] void fault(const char *what)
{
    emulation_fault(what);
}

void enter(enum state state)
{
    thread &t = running.threads[running.current];
    warp &w = running.warps[running.current / LANES];
    w.in[t.state]--;
    w.in[state]++;
    t.state = state;
}

/* Makes the next lane of the current one's warp that is ready the current one; false when none is left in this round. */
bool next_lane()
{
    const warp &w = running.warps[running.current / LANES];
    unsigned int next = running.current;
    for (;;) {
        if (next == (running.reversed ? w.first : w.last - 1))
            return false;
        next += running.reversed ? -1u : 1u;
        if (running.threads[next].state == READY)
            break;
    }
    running.current = next;
    threadIdx = running.threads[next].index;
    return true;
}

[[noreturn, gnu::noinline]] void jump(void **place)
{
    __builtin_longjmp(place, 1);
}

/* The life of a coroutine: the bodies of threads that have not started. */
void live()
{
    coroutine *own = running.made;
    if (__builtin_setjmp(own->place) == 0)
        setcontext(&running.start);
    for (;;) {
        running.threads[running.current].on = own;
        (*running.body)();
        if (!running.threads[running.current].copies.empty())
            fault("a thread that ends without waiting for its copies to shared memory");
        enter(DONE);
        bool more = next_lane();
        if (more && running.threads[running.current].on == nullptr)
            continue;
        running.idle.push_back(own);
        if (__builtin_setjmp(own->place) == 0)
            jump(more ? running.threads[running.current].on->place : running.scheduler);
    }
}

void make_coroutine()
{
    coroutine *c = new coroutine{};
    c->stack = static_cast<char *>(std::malloc(STACK));
    if (c->stack == nullptr)
        fault("no memory for a thread's stack");
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = c->stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, live, 0);
    running.made = c;
    swapcontext(&running.start, &context);
    running.idle.push_back(c);
}

/* Where the current thread goes on or starts. */
void **place_of_current()
{
    coroutine *on = running.threads[running.current].on;
    if (on == nullptr) {
        if (running.idle.empty())
            make_coroutine();
        on = running.idle.back();
        running.idle.pop_back();
    }
    return on->place;
}

void pause_as(enum state state)
{
    coroutine *own = running.threads[running.current].on;
    enter(state);
    void **next = next_lane() ? place_of_current() : running.scheduler;
    if (__builtin_setjmp(own->place) == 0)
        jump(next);
}

/* One round: every lane that is ready, until it waits or ends. */
void run_lanes(const warp &w)
{
    running.current = running.reversed ? w.last - 1 : w.first;
    threadIdx = running.threads[running.current].index;
    if (running.threads[running.current].state != READY && !next_lane())
        return;
    void **first = place_of_current();
    if (__builtin_setjmp(running.scheduler) == 0)
        jump(first);
}

void make_ready(warp &w, enum state state)
{
    for (unsigned int i = w.first; i < w.last; i++)
        if (running.threads[i].state == state)
            running.threads[i].state = READY;
    w.in[READY] += w.in[state];
    w.in[state] = 0;
}

/* Lanes that meet in an exchange are in the same one. */
void check_exchange(const warp &w)
{
    const thread &first = running.threads[w.first];
    if (w.in[DONE] > 0)
        fault("a shuffle that some lanes of the warp have left");
    for (unsigned int i = w.first; i < w.last; i++)
        if (running.threads[i].site != first.site || running.threads[i].lanes != first.lanes)
            fault("a shuffle in which lanes of a warp meet at different places");
}

/* A warp runs as long as its shuffles let it. */
bool run_warp(warp &w)
{
    if (w.in[READY] == 0)
        return false;
    while (w.in[READY] > 0) {
        run_lanes(w);
        if (w.in[AT_SHUFFLE] > 0 && w.in[AT_SHUFFLE] + w.in[DONE] == w.last - w.first) {
            check_exchange(w);
            make_ready(w, AT_SHUFFLE);
        }
    }
    return true;
}

unsigned int count_in(enum state state)
{
    unsigned int count = 0;
    for (unsigned int i = 0; i < running.warp_count; i++)
        count += running.warps[i].in[state];
    return count;
}

void run_block()
{
    for (unsigned int done = 0; done < running.count; done = count_in(DONE)) {
        bool moved = false;
        for (unsigned int i = 0; i < running.warp_count; i++)
            moved = run_warp(running.warps[running.reversed ? running.warp_count - 1 - i : i]) || moved;
        unsigned int waiting = count_in(AT_BARRIER);
        if (waiting > 0 && waiting + count_in(DONE) == running.count) {
            if (waiting != running.count)
                fault("a barrier that some threads of the block have left");
            for (unsigned int i = 0; i < running.warp_count; i++)
                make_ready(running.warps[i], AT_BARRIER);
        } else if (!moved) {
            fault("threads wait for one another at different places");
        }
    }
}

void start_block()
{
    for (unsigned int i = 0; i < running.count; i++) {
        running.threads[i].state = READY;
        running.threads[i].on = nullptr;
        running.threads[i].turn = 0;
        running.threads[i].groups = 0;
    }
    for (unsigned int i = 0; i < running.warp_count; i++) {
        warp &w = running.warps[i];
        w = {i * LANES, (i + 1) * LANES < running.count ? (i + 1) * LANES : running.count, {}};
        w.in[READY] = w.last - w.first;
    }
}

/* Static shared memory of all kernels, which the linker gathers. Every block begins with NaN in it, as far as its kernel is known
 * to write it, which is looked up in the first blocks and now and then. */
extern "C" char __start_emulated_shared[] __attribute__((weak)), __stop_emulated_shared[] __attribute__((weak));

void poison(std::size_t first, std::size_t last)
{
    if (first < last)
        std::memset(__start_emulated_shared + first, 0xff, last - first);
}

void learn(emulation_kernel *kernel)
{
    std::size_t size = static_cast<std::size_t>(__stop_emulated_shared - __start_emulated_shared), bytes = 0;
    for (std::size_t i = 0; i < size; i++)
        if (static_cast<unsigned char>(__start_emulated_shared[i]) != 0xff) {
            kernel->first = bytes == 0 && (i < kernel->first || kernel->last == 0) ? i : kernel->first;
            kernel->last = i + 1 > kernel->last ? i + 1 : kernel->last;
            bytes++;
        }
    kernel->bytes = bytes > kernel->bytes ? bytes : kernel->bytes;
}

} // namespace

const char *emulation_work;

static const char *spoilt = std::getenv("MTIL_CUDA_ON_HOST_FAULT");
static void (*watcher)(const char *kernel);

extern "C" void emulation_spoil(const char *kernel)
{
    spoilt = kernel;
}

extern "C" void emulation_watch(void (*launched)(const char *kernel))
{
    watcher = launched;
}

bool emulation_spoils(const char *kernel)
{
    if (watcher != nullptr)
        watcher(kernel);
    return spoilt != nullptr && std::strcmp(spoilt, kernel) == 0;
}

void emulation_launch(dim3 grid, dim3 block, std::size_t shared, std::size_t most, const std::function<void()> &thread,
                      emulation_kernel *kernel)
{
    static emulation_kernel unknown;
    bool spoils = emulation_spoils(emulation_work);
    emulation_open();
    running.count = block.x * block.y * block.z;
    if (running.count == 0 || running.count > THREADS || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
        grid.z > 65535 || shared > most)
        fault("a launch that a device would refuse");
    running.warp_count = (running.count + LANES - 1) / LANES;
    for (unsigned int i = 0; i < running.count; i++)
        running.threads[i].index = dim3(i % block.x, i / block.x % block.y, i / block.x / block.y);
    running.body = &thread;
    running.reversed = !running.reversed;
    blockDim = block;
    gridDim = grid;
    std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
    kernel = kernel != nullptr ? kernel : &unknown;
    bool learns = kernel->launches < 8 || kernel->launches % 64 == 0;
    kernel->launches++;
    for (std::size_t i = 0; i < blocks; i++) {
        std::size_t n = running.reversed ? blocks - 1 - i : i;
        if (spoils && n == 0)
            continue;
        blockIdx = dim3(n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y);
        running.shared.assign(shared + ALIGNMENT, static_cast<char>(0xff)); /* NaN: nothing may rely on zeros */
        if (learns && i == 0)
            poison(0, static_cast<std::size_t>(__stop_emulated_shared - __start_emulated_shared));
        else
            poison(kernel->first, kernel->last);
        start_block();
        run_block();
        if (learns && i == 0)
            learn(kernel);
        if (shared + kernel->bytes > most)
            fault("a block with more shared memory, static and dynamic, than a device has");
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

std::uint64_t emulation_exchange(std::uint64_t value, int lanes, unsigned int mask, int site)
{
    unsigned int own = running.current, turn = running.threads[own].turn ^= 1,
                 other = own ^ static_cast<unsigned int>(lanes);
    if (mask != WHOLE_WARP)
        fault("a shuffle of a part of a warp, which no kernel needs");
    running.threads[own].exchanged[turn] = value;
    running.threads[own].site = site;
    running.threads[own].lanes = lanes;
    pause_as(AT_SHUFFLE);
    if (other >= running.warps[own / LANES].last)
        fault("a shuffle from a lane that the warp does not have");
    return running.threads[other].exchanged[turn];
}

void *emulation_warp_memory(std::size_t bytes)
{
    if (bytes > WARP_MEMORY)
        fault("more than a warp's memory");
    return running.memories[running.current / LANES].bytes[running.threads[running.current].turn ^ 1];
}

void emulation_copy_later(void *to, const void *from, std::size_t bytes, bool there)
{
    if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 || reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
        fault("an asynchronous copy from or to a place that is no multiple of its size");
    thread &t = running.threads[running.current];
    std::memset(to, 0xff, bytes);
    t.copies.push_back({to, there ? from : nullptr, bytes, t.groups});
}

void emulation_commit()
{
    running.threads[running.current].groups++;
}

void emulation_wait(std::size_t latest)
{
    thread &t = running.threads[running.current];
    std::size_t done = 0;
    while (done < t.copies.size() && t.copies[done].group + latest < t.groups) {
        const copy &c = t.copies[done++];
        if (c.from != nullptr)
            std::memcpy(c.to, c.from, c.bytes);
        else
            std::memset(c.to, 0, c.bytes);
    }
    t.copies.erase(t.copies.begin(), t.copies.begin() + static_cast<std::ptrdiff_t>(done));
}

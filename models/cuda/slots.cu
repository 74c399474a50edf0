/* From chosen experts to slots: a stable counting sort of all choices. A warp takes a run of neighbouring choices, 32 at a
 * time, and keeps the counts of all experts in shared memory. Up to MOST_TOGETHER choices are sorted by one block in one
 * launch; more of them by many blocks in three. */
#include "models/cuda/kernel.cuh"

/* A run has RUN choices where many blocks sort. Shared memory, counts [warps + 1, E]: at most SHARED bytes, which 32 warps
 * need for 364 experts. */
enum { MOST_TOGETHER = 8192, RUN = 256, MOST_WARPS = 32, SHARED = 48 << 10, IN_FLIGHT = 8 };

struct counting {
    size_t runs, each;        /* each: choices of a run, a multiple of 32 */
    bool first_choices_first; /* the order: else by sample */
    bool limited;             /* slot says already which choices have none */
    int32_t *starts;          /* [runs, E] choices of an expert in a run, then in all runs before it */
    struct selections selections;
};

static __device__ inline size_t choice_at(const struct slots *d, const struct counting *c, size_t place)
{
    return c->first_choices_first ? place % d->samples * d->top_k + place / d->samples : place;
}

/* −1: it gets no slot */
static __device__ inline int32_t expert_of(const struct slots *d, const struct counting *c, size_t choice)
{
    return c->limited && d->slot[choice] < 0 ? -1 : d->chosen[choice];
}

/* By a warp: slot becomes the number of a choice among those of its expert in the run, −1 for those without a slot, and
 * counts [E] the choices of each expert. Counts of selections are whole numbers, in any order the same. */
static __device__ void count_run(const struct slots *d, const struct counting *c, size_t run, int32_t *counts)
{
    size_t choices = d->samples * d->top_k, first = run * c->each,
           last = first + c->each < choices ? first + c->each : choices;
    for (size_t from = first; from < last; from += WARP) {
        size_t place = from + lane(), choice = place < last ? choice_at(d, c, place) : 0;
        int32_t own = place < last ? expert_of(d, c, choice) : -1;
        unsigned int alike = __match_any_sync(0xffffffffu, own), before = alike & ((1u << lane()) - 1);
        bool selected = c->selections.counts != NULL && own >= 0 && d->gates[choice] > 0;
        unsigned int selections = __ballot_sync(0xffffffffu, selected) & alike;
        int32_t start = own >= 0 ? counts[own] : 0;
        __syncwarp();
        if (own >= 0 && before == 0) {
            counts[own] = start + __popc(alike);
            if (selections != 0)
                atomicAdd(c->selections.counts + own, __popc(selections));
        }
        __syncwarp();
        if (place < last)
            d->slot[choice] = own >= 0 ? start + __popc(before) : -1;
    }
}

/* A thread has an expert, the block all of them: starts become sums over the runs before, totals [E] sums over all. */
static __device__ void add_up_runs(const struct slots *d, const struct counting *c, int32_t *starts, int32_t *totals)
{
    for (size_t e = threadIdx.x; e < d->experts; e += blockDim.x) {
        int32_t total = 0, own[IN_FLIGHT];
        for (size_t run = 0; run < c->runs; run += IN_FLIGHT) { /* loads that do not wait for the stores before */
            for (size_t n = 0; n < IN_FLIGHT; n++)
                own[n] = run + n < c->runs ? starts[(run + n) * d->experts + e] : 0;
            for (size_t n = 0; n < IN_FLIGHT && run + n < c->runs; n++) {
                starts[(run + n) * d->experts + e] = total;
                total += own[n];
            }
        }
        totals[e] = total;
        const struct selections *s = &c->selections;
        if (s->used != NULL)
            s->used[e] = (s->add_used && s->used[e] != 0) || (total > 0 && (s->frozen == NULL || s->frozen[e] == 0));
    }
}

/* By a warp: totals become the experts' first slots. A lane has neighbouring experts. */
static __device__ void find_offsets(const struct slots *d, int32_t *totals)
{
    size_t each = (d->experts + WARP - 1) / WARP, first = lane() * each < d->experts ? lane() * each : d->experts,
           last = first + each < d->experts ? first + each : d->experts;
    int32_t own = 0, before = 0;
    for (size_t e = first; e < last; e++)
        own += totals[e];
    for (int step = 1; step < WARP; step *= 2) { /* own: of all lanes that differ in lower bits alone */
        int32_t other = __shfl_xor_sync(0xffffffffu, own, step);
        before += (lane() & (unsigned int)step) != 0 ? other : 0;
        own += other;
    }
    for (size_t e = first; e < last; e++) {
        int32_t total = totals[e];
        d->offsets[e] = totals[e] = before;
        before += total;
    }
    if (lane() == 0)
        d->offsets[d->experts] = own;
}

/* By a warp: slot becomes 0, or −1 for choices beyond the limit. */
static __device__ void mark_run(const struct slots *d, const struct counting *c, size_t run, const int32_t *starts,
                                int32_t limit)
{
    size_t choices = d->samples * d->top_k;
    for (size_t i = run * c->each + lane(); i < (run + 1) * c->each && i < choices; i += WARP) {
        size_t choice = choice_at(d, c, i);
        int32_t e = d->chosen[choice];
        bool full = e >= 0 && starts[e] + d->slot[choice] >= limit;
        if (e >= 0)
            d->slot[choice] = full ? -1 : 0;
        if (full)
            d->gates[choice] *= 0.0f; /* NaN stays */
    }
}

/* By a warp. */
static __device__ void place_run(const struct slots *d, const struct counting *c, size_t run, const int32_t *starts,
                                 const int32_t *offsets)
{
    size_t choices = d->samples * d->top_k;
    for (size_t choice = run * c->each + lane(); choice < (run + 1) * c->each && choice < choices; choice += WARP) {
        int32_t number = d->slot[choice];
        if (number < 0)
            continue;
        int32_t e = d->chosen[choice], slot = offsets[e] + starts[e] + number;
        d->choice[slot] = (int32_t)choice;
        d->sample[slot] = (int32_t)(choice / d->top_k);
        d->slot[choice] = slot;
    }
}

static __device__ inline void clear(int32_t *counts, size_t n)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        counts[i] = 0;
    __syncthreads();
}

/* One block, a run for each of its first warps. Shared memory: starts [runs, E], totals [E] */
static __global__ void __launch_bounds__(MOST_WARPS *WARP)
    sort_together(struct slots d, struct counting c, struct counting first, int32_t limit)
{
    DYNAMIC_SHARED(int32_t, starts);
    int32_t *totals = starts + c.runs * d.experts;
    size_t run = threadIdx.x / WARP;
    int32_t *own = starts + run * d.experts;
    clear(starts, c.runs * d.experts);
    if (c.limited) {
        if (run < c.runs)
            count_run(&d, &first, run, own);
        __syncthreads();
        add_up_runs(&d, &first, starts, totals);
        __syncthreads();
        if (run < c.runs)
            mark_run(&d, &first, run, own, limit);
        __syncthreads();
        clear(starts, c.runs * d.experts);
    }
    if (run < c.runs)
        count_run(&d, &c, run, own);
    __syncthreads();
    add_up_runs(&d, &c, starts, totals);
    __syncthreads();
    if (run == 0)
        find_offsets(&d, totals);
    __syncthreads();
    if (run < c.runs)
        place_run(&d, &c, run, own, totals);
}

/* Shared memory: counts [warps, E] */
static __global__ void count_runs(struct slots d, struct counting c)
{
    DYNAMIC_SHARED(int32_t, counts);
    size_t warps = blockDim.x / WARP, run = global_warp();
    int32_t *own = counts + threadIdx.x / WARP * d.experts;
    clear(counts, warps * d.experts);
    if (run >= c.runs)
        return;
    count_run(&d, &c, run, own);
    __syncwarp();
    for (size_t e = lane(); e < d.experts; e += WARP)
        c.starts[run * d.experts + e] = own[e];
}

/* One block. Shared memory: totals [E] */
static __global__ void add_up(struct slots d, struct counting c)
{
    DYNAMIC_SHARED(int32_t, totals);
    add_up_runs(&d, &c, c.starts, totals);
    __syncthreads();
    if (threadIdx.x < WARP)
        find_offsets(&d, totals);
}

static __global__ void mark_kept(struct slots d, struct counting c, int32_t limit)
{
    size_t run = global_warp();
    if (run < c.runs)
        mark_run(&d, &c, run, c.starts + run * d.experts, limit);
}

static __global__ void place_choices(struct slots d, struct counting c)
{
    size_t run = global_warp();
    if (run < c.runs)
        place_run(&d, &c, run, c.starts + run * d.experts, d.offsets);
}

/* Warps of a block whose counts are in shared memory, no more than there are runs of 32 choices. */
static size_t warps_for(size_t experts, size_t choices)
{
    size_t warps = MOST_WARPS;
    while (warps > 1 && (warps + 1) * experts * sizeof(int32_t) > SHARED)
        warps /= 2;
    while (warps > 4 && warps / 2 * WARP >= choices)
        warps /= 2;
    return warps;
}

/* The counting that finds the choices beyond the limit, before any is selected. */
static struct counting before_limit(const struct counting *c)
{
    struct counting first = *c;
    first.first_choices_first = true;
    first.limited = false;
    first.selections = {};
    return first;
}

static status sort_by_many_blocks(struct cuda *cuda, const struct slots *d, struct counting c, int32_t limit,
                                  struct error *error)
{
    struct arena_mark mark = arena_mark(&cuda->scratch);
    size_t warps = warps_for(d->experts, d->samples * d->top_k);
    warps = warps < BLOCK / WARP ? warps : BLOCK / WARP;
    c.each = RUN;
    c.runs = blocks_for(d->samples * d->top_k, RUN);
    unsigned int blocks = blocks_for(c.runs, warps), threads = (unsigned int)warps * WARP;
    size_t counts = warps * d->experts * sizeof(int32_t), totals = d->experts * sizeof(int32_t);
    TRY(cuda_scratch(cuda, c.runs * d->experts * sizeof(int32_t), &c.starts, error));
    if (c.limited) {
        struct counting first = before_limit(&c);
        CUDA_LAUNCH(cuda, count_runs, blocks, threads, counts, *d, first);
        CUDA_LAUNCH(cuda, add_up, 1, BLOCK, totals, *d, first);
        CUDA_LAUNCH(cuda, mark_kept, blocks, threads, 0, *d, first, limit);
    }
    CUDA_LAUNCH(cuda, count_runs, blocks, threads, counts, *d, c);
    CUDA_LAUNCH(cuda, add_up, 1, BLOCK, totals, *d, c);
    CUDA_LAUNCH(cuda, place_choices, blocks, threads, 0, *d, c);
    arena_release(&cuda->scratch, mark);
    return OK;
}

status cuda_sort_slots(struct cuda *cuda, const struct slots *d, size_t limit, const struct selections *selections,
                       struct error *error)
{
    size_t choices = d->samples * d->top_k, warps = warps_for(d->experts, choices);
    struct counting c = {};
    c.limited = limit > 0 && limit < choices;
    if (selections != NULL)
        c.selections = *selections;
    if (choices > MOST_TOGETHER) {
        TRY(sort_by_many_blocks(cuda, d, c, (int32_t)limit, error));
    } else {
        c.each = blocks_for(choices, warps * WARP) * (size_t)WARP;
        c.runs = choices > 0 ? blocks_for(choices, c.each) : 0;
        CUDA_LAUNCH(cuda, sort_together, 1, (unsigned int)warps * WARP, (c.runs + 1) * d->experts * sizeof(int32_t), *d,
                    c, before_limit(&c), (int32_t)limit);
    }
    return cuda_finish(cuda, "sorting by expert", error);
}

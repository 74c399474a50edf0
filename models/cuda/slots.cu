/* From chosen experts to slots: a stable counting sort of all choices, in chunks of a block's threads. */
#include "models/cuda/kernel.cuh"

struct counting {
    size_t chunks;
    bool first_choices_first; /* the order: else by sample */
    bool limited;             /* slot says already which choices have none */
    int32_t *number;          /* [B · K] of a choice among those of its expert in its chunk */
    int32_t *counts, *starts; /* [chunks, E] choices of an expert in a chunk, and in all chunks before it */
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

static __global__ void count_chunks(struct slots d, struct counting c)
{
    __shared__ int32_t experts[BLOCK];
    size_t place = global_thread();
    int32_t *counts = c.counts + blockIdx.x * d.experts;
    int32_t own = place < d.samples * d.top_k ? expert_of(&d, &c, choice_at(&d, &c, place)) : -1, before = 0, after = 0;
    experts[threadIdx.x] = own;
    for (size_t e = threadIdx.x; e < d.experts; e += BLOCK)
        counts[e] = 0;
    __syncthreads();
    for (unsigned int t = 0; t < BLOCK; t++) {
        before += experts[t] == own && t < threadIdx.x;
        after += experts[t] == own && t > threadIdx.x;
    }
    if (own < 0)
        return;
    c.number[place] = before;
    if (after == 0)
        counts[own] = before + 1;
}

/* A thread has an expert; one block. Shared memory: totals [E] */
static __global__ void add_up_chunks(size_t chunks, size_t experts, const int32_t *__restrict__ counts,
                                     int32_t *__restrict__ starts, int32_t *__restrict__ offsets)
{
    DYNAMIC_SHARED(int32_t, totals);
    for (size_t e = threadIdx.x; e < experts; e += blockDim.x) {
        int32_t total = 0;
        for (size_t chunk = 0; chunk < chunks; chunk++) {
            starts[chunk * experts + e] = total;
            total += counts[chunk * experts + e];
        }
        totals[e] = total;
    }
    __syncthreads();
    int32_t before = 0; /* in a register, so that loads of totals do not wait for stores */
    for (size_t e = 0; threadIdx.x == 0 && e < experts; e++)
        totals[e] = before += totals[e];
    __syncthreads();
    for (size_t e = threadIdx.x; e <= experts; e += blockDim.x)
        offsets[e] = e > 0 ? totals[e - 1] : 0;
}

static __device__ inline int32_t number_of(const struct slots *d, const struct counting *c, size_t place, int32_t e)
{
    return c->starts[place / BLOCK * d->experts + (size_t)e] + c->number[place];
}

/* Sets slot to −1 for choices without a slot and to 0 for the others. */
static __global__ void mark_kept(struct slots d, struct counting c, int32_t limit)
{
    size_t place = global_thread();
    if (place >= d.samples * d.top_k)
        return;
    size_t choice = choice_at(&d, &c, place);
    int32_t e = d.chosen[choice];
    bool full = e >= 0 && number_of(&d, &c, place, e) >= limit;
    d.slot[choice] = e < 0 || full ? -1 : 0;
    if (full)
        d.gates[choice] *= 0.0f; /* NaN stays */
}

static __global__ void place_choices(struct slots d, struct counting c)
{
    size_t choice = global_thread();
    if (choice >= d.samples * d.top_k)
        return;
    int32_t e = expert_of(&d, &c, choice), slot = -1;
    if (e >= 0) {
        slot = d.offsets[e] + number_of(&d, &c, choice, e);
        d.choice[slot] = (int32_t)choice;
        d.sample[slot] = (int32_t)(choice / d.top_k);
    }
    d.slot[choice] = slot;
}

static void count(struct cuda *cuda, const struct slots *d, const struct counting *c)
{
    if (c->chunks > 0)
        CUDA_LAUNCH(cuda, count_chunks, (unsigned int)c->chunks, BLOCK, 0, *d, *c);
    CUDA_LAUNCH(cuda, add_up_chunks, 1, BLOCK, d->experts * sizeof(int32_t), c->chunks, d->experts, c->counts,
                c->starts, d->offsets);
}

status cuda_sort_slots(struct cuda *cuda, const struct slots *d, size_t limit, struct error *error)
{
    struct arena_mark mark = arena_mark(&cuda->scratch);
    size_t choices = d->samples * d->top_k;
    struct counting c = {};
    c.chunks = blocks_for(choices, BLOCK);
    void *memory;
    TRY(cuda_scratch(cuda, (choices + 2 * c.chunks * d->experts) * sizeof(int32_t), &memory, error));
    c.number = (int32_t *)memory;
    c.counts = c.number + choices;
    c.starts = c.counts + c.chunks * d->experts;
    c.limited = limit > 0 && limit < choices;
    if (c.limited) {
        struct counting first = c;
        first.first_choices_first = true;
        first.limited = false;
        count(cuda, d, &first);
        CUDA_LAUNCH(cuda, mark_kept, (unsigned int)c.chunks, BLOCK, 0, *d, first, (int32_t)limit);
    }
    count(cuda, d, &c);
    if (c.chunks > 0)
        CUDA_LAUNCH(cuda, place_choices, (unsigned int)c.chunks, BLOCK, 0, *d, c);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "sorting by expert", error);
}

/* A warp has an expert. */
static __global__ void count_selections(struct slots d, int32_t *counts, int32_t *used, bool add_used,
                                        const int32_t *frozen)
{
    size_t e = global_warp();
    if (e >= d.experts)
        return;
    int32_t first = d.offsets[e], last = d.offsets[e + 1];
    double selected = 0; /* whole numbers: in any order the same */
    for (int32_t s = first + (int32_t)lane(); s < last; s += WARP)
        selected += d.gates[d.choice[s]] > 0 ? 1.0 : 0.0;
    selected = warp_sum(selected);
    if (lane() > 0)
        return;
    counts[e] += (int32_t)selected;
    if (used != NULL)
        used[e] = (add_used && used[e] != 0) || (last > first && (frozen == NULL || frozen[e] == 0));
}

void cuda_count_selections(struct cuda *cuda, const struct slots *d, int32_t *counts, int32_t *used, bool add_used,
                           const int32_t *frozen)
{
    CUDA_LAUNCH(cuda, count_selections, blocks_for(d->experts, BLOCK / WARP), BLOCK, 0, *d, counts, used, add_used,
                frozen);
}

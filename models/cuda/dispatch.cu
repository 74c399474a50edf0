/* Samples to the slots of their experts and back. Only the device knows the number of slots, so kernels are launched for the
 * largest possible number. */
#include "models/cuda/kernel.cuh"

extern "C" {
#include "core/rng.h"
}

/* --- To the experts and back --- */

static __device__ inline bool is_slot(const struct slots *d, size_t slot)
{
    return slot < (size_t)d->offsets[d->experts];
}

/* Values of samples or slots, `each` of one. */
struct batch_values {
    void *data;
    enum tensor_type type;
    size_t each;
};

static bool lies_by_eight(struct batch_values v)
{
    return goes_by_eight({v.data, v.type, 0, v.each, v.each});
}

/* Blocks (s, 0), (s, 1) … share the values of slot or sample s, because there may be more slots than a grid's second axis
 * allows. This thread's number among the threads of s, and how many there are. */
static __device__ inline size_t thread_across()
{
    return (size_t)blockIdx.y * blockDim.x + threadIdx.x;
}

static __device__ inline size_t threads_across()
{
    return (size_t)gridDim.y * blockDim.x;
}

static __global__ void gather_slots(struct slots d, struct batch_values x, struct batch_values out, bool by_eight)
{
    size_t s = blockIdx.x, step = threads_across();
    if (!is_slot(&d, s))
        return;
    size_t from = (size_t)d.sample[s] * x.each, to = s * x.each;
    for (size_t i = thread_across() * EIGHT; by_eight && i < x.each; i += step * EIGHT) {
        float values[EIGHT];
        load_eight(x.data, x.type, from + i, values);
        store_eight(out.data, out.type, to + i, values);
    }
    for (size_t i = thread_across(); !by_eight && i < x.each; i += step)
        set_value(out.data, out.type, to + i, value_at(x.data, x.type, from + i));
}

enum { ACROSS = 32 }; /* blocks that share the values of a slot or sample at most */

static unsigned int across(size_t values)
{
    unsigned int blocks = blocks_for(values, BLOCK);
    return blocks < ACROSS ? blocks : ACROSS;
}

status cuda_dispatch_gather(struct cuda *cuda, const struct dispatch_gather *o, struct error *error)
{
    struct slots d = slots_of(o->dispatch);
    size_t values = o->rows_per_sample * o->width;
    struct batch_values x = {(void *)o->x, o->x_type, values}, out = {o->out, o->out_type, values};
    if (d.samples * d.top_k * values > 0)
        CUDA_LAUNCH(cuda, gather_slots, dim3((unsigned int)(d.samples * d.top_k), across(values)), BLOCK, 0, d, x, out,
                    lies_by_eight(x) && lies_by_eight(out));
    return OK;
}

struct mixture {
    struct batch_values rows;
    const float *weights;
    float scale;
    float *y;
};

static __device__ inline float weight_of_choice(const struct mixture *m, size_t choice)
{
    return m->scale * (m->weights != NULL ? m->weights[choice] : 1.0f);
}

static __global__ void combine_samples(struct slots d, struct mixture m)
{
    size_t b = blockIdx.x, values = m.rows.each;
    for (size_t i = thread_across(); i < values; i += threads_across()) {
        float total = m.y[b * values + i];
        for (size_t k = 0; k < d.top_k; k++) {
            int32_t slot = d.slot[b * d.top_k + k];
            if (slot >= 0)
                total += weight_of_choice(&m, b * d.top_k + k) *
                         value_at(m.rows.data, m.rows.type, (size_t)slot * values + i);
        }
        m.y[b * values + i] = total;
    }
}

static __global__ void combine_samples_by_eight(struct slots d, struct mixture m)
{
    size_t b = blockIdx.x, values = m.rows.each;
    for (size_t i = thread_across() * EIGHT; i < values; i += threads_across() * EIGHT) {
        float total[EIGHT], more[EIGHT];
        load_eight(m.y, TENSOR_F32, b * values + i, total);
        for (size_t k = 0; k < d.top_k; k++) {
            int32_t slot = d.slot[b * d.top_k + k];
            if (slot < 0)
                continue;
            load_eight(m.rows.data, m.rows.type, (size_t)slot * values + i, more);
            for (int n = 0; n < EIGHT; n++)
                total[n] += weight_of_choice(&m, b * d.top_k + k) * more[n];
        }
        store_eight(m.y, TENSOR_F32, b * values + i, total);
    }
}

status cuda_dispatch_combine(struct cuda *cuda, const struct dispatch_combine *o, struct error *error)
{
    struct slots d = slots_of(o->dispatch);
    size_t values = o->rows_per_sample * o->width;
    struct mixture m = {{(void *)o->rows, o->rows_type, values}, o->weights, o->scale, (float *)o->y};
    dim3 grid((unsigned int)d.samples, across(values));
    if (d.samples * values == 0)
        return OK;
    if (lies_by_eight(m.rows) && lies_by_eight({o->y, TENSOR_F32, values}))
        CUDA_LAUNCH(cuda, combine_samples_by_eight, grid, BLOCK, 0, d, m);
    else
        CUDA_LAUNCH(cuda, combine_samples, grid, BLOCK, 0, d, m);
    return OK;
}

static __global__ void drop_slots(struct slots d, size_t fours, uint64_t base, const struct step_state *state,
                                  uint32_t threshold, float scale, struct batch_values hidden)
{
    size_t s = blockIdx.x;
    if (!is_slot(&d, s))
        return;
    for (size_t i = thread_across(); i < fours; i += threads_across()) {
        uint32_t words[4];
        philox_of_step(state, RNG_DROPOUT, base / 4 + (uint64_t)d.choice[s] * fours + i, words);
        size_t four = 4 * (s * fours + i);
        for (size_t w = 0; w < 4; w++)
            set_value(hidden.data, hidden.type, four + w,
                      words[w] < threshold ? 0.0f : value_at(hidden.data, hidden.type, four + w) * scale);
    }
}

status cuda_dispatch_dropout(struct cuda *cuda, const struct dispatch_dropout *o, struct error *error)
{
    size_t values = o->rows_per_sample * o->width;
    if (values % 4 != 0 || o->base % 4 != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "dropout: expected a multiple of 4 hidden values per sample, found %zu; change "
                         "adapter.bottleneck, or model.hidden",
                         values);
    if (o->probability <= 0)
        return OK;
    struct slots d = slots_of(o->dispatch);
    struct batch_values hidden = {o->hidden, o->type, values};
    if (d.samples * d.top_k * values > 0)
        CUDA_LAUNCH(cuda, drop_slots, dim3((unsigned int)(d.samples * d.top_k), across(values / 4)), BLOCK, 0, d,
                    values / 4, o->base, o->state, (uint32_t)((double)o->probability * 4294967296.0),
                    1.0f / (1.0f - o->probability), hidden);
    return OK;
}

/* --- The gates --- */

struct gate_values {
    size_t rows, hidden, width;
    float scale, keep;
    struct batch_values h, before, dh, dy;
    enum activation activation;
    const float *up_bias;
    float *dgates, *dup_bias, *sums; /* sums [slots, d] Σ over rows of dy */
    const int32_t *frozen;
};

/* Sum over the block of one value a thread; every thread gets it. warps [BLOCK / WARP] */
static __device__ float block_sum(float x, float *warps)
{
    x = warp_sum(x);
    if (lane() == 0)
        warps[threadIdx.x / WARP] = x;
    __syncthreads();
    float total = 0;
    for (unsigned int w = 0; w < blockDim.x / WARP; w++)
        total += warps[w];
    __syncthreads();
    return total;
}

/* A block has a slot: Σ_l dy, dgate, and dh and h scaled by the gate. ReLU without `before` is a kernel of its own, which
 * needs few registers. */
template <bool RELU> static __global__ void gate_slots(struct slots d, struct gate_values g)
{
    __shared__ float warps[BLOCK / WARP];
    size_t s = blockIdx.x;
    if (!is_slot(&d, s))
        return;
    size_t choice = (size_t)d.choice[s], expert = (size_t)d.chosen[choice], values = g.rows * g.hidden;
    const float *bias = g.up_bias + expert * g.width;
    float along = 0, weight = g.scale * d.gates[choice];
    for (size_t j = threadIdx.x; j < g.width; j += blockDim.x) {
        float total = 0;
        for (size_t l = 0; l < g.rows; l++)
            total += value_at(g.dy.data, g.dy.type, (s * g.rows + l) * g.width + j);
        g.sums[s * g.width + j] = total;
        along += bias[j] * total;
    }
    for (size_t i = s * values + threadIdx.x; i < (s + 1) * values; i += blockDim.x) {
        float h = value_at(g.h.data, g.h.type, i), dh = value_at(g.dh.data, g.dh.type, i);
        along += h * dh;
        float slope =
            RELU ? (h > 0 ? weight / g.keep * dh : 0.0f)
                 : activated_backward(g.activation, value_at(g.before.data, g.before.type, i), weight / g.keep * dh);
        set_value(g.dh.data, g.dh.type, i, slope);
        set_value(g.h.data, g.h.type, i, weight * h);
    }
    along = block_sum(along, warps);
    if (threadIdx.x == 0)
        g.dgates[choice] = g.scale * along;
}

static __global__ void gate_bias(struct slots d, struct gate_values g)
{
    size_t at = global_thread(), j = at % g.width, e = at / g.width;
    if (e >= d.experts || (g.frozen != NULL && g.frozen[e]))
        return;
    float total = g.dup_bias[at];
    for (int32_t s = d.offsets[e]; s < d.offsets[e + 1]; s++)
        total += g.scale * d.gates[d.choice[s]] * g.sums[(size_t)s * g.width + j];
    g.dup_bias[at] = total;
}

status cuda_expert_gate_backward(struct cuda *cuda, const struct expert_gate_backward *o, struct error *error)
{
    struct slots d = slots_of(o->dispatch);
    size_t most = d.samples * d.top_k;
    void *sums;
    if (most == 0)
        return OK;
    TRY(cuda_scratch(cuda, most * o->width * sizeof(float), &sums, error));
    struct gate_values g = {o->rows_per_sample,
                            o->hidden,
                            o->width,
                            o->scale,
                            o->keep,
                            {o->h, o->type, o->rows_per_sample * o->hidden},
                            {(void *)o->before, o->type, o->rows_per_sample * o->hidden},
                            {o->dh, o->type, o->rows_per_sample * o->hidden},
                            {(void *)o->dy, o->type, o->rows_per_sample * o->width},
                            o->activation,
                            (const float *)o->up_bias,
                            o->dgates,
                            (float *)o->dup_bias,
                            (float *)sums,
                            o->frozen};
    TRY(cuda->backend.ops->zero(&cuda->backend, o->dgates, most * sizeof *o->dgates, error));
    if (o->before == NULL)
        CUDA_LAUNCH(cuda, gate_slots<true>, (unsigned int)most, BLOCK, 0, d, g);
    else
        CUDA_LAUNCH(cuda, gate_slots<false>, (unsigned int)most, BLOCK, 0, d, g);
    CUDA_LAUNCH(cuda, gate_bias, blocks_for(d.experts * o->width, BLOCK), BLOCK, 0, d, g);
    return OK;
}

/* A thread has a pair of experts: whole numbers without atomics, in any order the same. */
static __global__ void count_pairs_of_experts(struct count_pairs o)
{
    size_t pair = global_thread();
    if (pair >= o.experts * o.experts)
        return;
    int32_t e = (int32_t)(pair / o.experts), f = (int32_t)(pair % o.experts), found = 0;
    for (size_t b = 0; b < o.samples; b++) {
        bool has_first = false, has_second = false;
        for (size_t k = 0; k < o.top_k; k++) {
            has_first = has_first || o.first[b * o.top_k + k] == e;
            has_second = has_second || o.second[b * o.top_k + k] == f;
        }
        found += has_first && has_second;
    }
    o.counts[pair] += found;
}

CUDA_OPERATION(count_pairs, o->experts * o->experts, BLOCK, count_pairs_of_experts, *o)

/* ---- From chosen experts to slots: a stable counting sort of all choices. A warp takes a run of neighbouring choices, 32 at a
 * time, and keeps the counts of all experts in shared memory. Up to MOST_TOGETHER choices are sorted by one block in one
 * launch; more of them by many blocks in three. ---- */

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
    return OK;
}

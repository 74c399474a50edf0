/* Softmax top-k with capacity, and random partitions. */
#include "models/cuda/kernel.cuh"
#include "models/routing.h"

extern "C" {
#include "core/rng.h"
}

/* --- Softmax top-k --- */

struct choice_values {
    const int32_t *router;
    const float *logits; /* [T, B, E] every sample's of every router */
    float deviation;     /* of the noise; 0: none */
    const float *noise;  /* given, or NULL: drawn */
    uint64_t noise_base;
    const struct step_state *state;
    float *probabilities;
};

static __device__ inline float noise_at(const struct choice_values *v, size_t i)
{
    uint32_t words[4];
    if (v->noise != NULL)
        return v->noise[i];
    philox_of_step(v->state, RNG_ROUTER_NOISE, v->noise_base + i, words);
    return philox_normal(words);
}

/* A warp has a sample. */
static __global__ void choose_rows(struct slots d, struct choice_values v)
{
    size_t b = global_warp(), row = b * d.experts;
    if (b >= d.samples)
        return;
    int32_t r = v.router[b], *chosen = d.chosen + b * d.top_k;
    float *gates = d.gates + b * d.top_k, *p = v.probabilities + row;
    if (r < 0) {
        for (size_t e = lane(); e < d.experts; e += WARP)
            p[e] = 0;
        for (size_t k = lane(); k < d.top_k; k += WARP) {
            chosen[k] = -1;
            gates[k] = 0;
        }
        return;
    }
    const float *logits = v.logits + (size_t)r * d.samples * d.experts + row;
    float most = -INFINITY, total = 0;
    for (size_t e = lane(); e < d.experts; e += WARP) {
        float z = logits[e] + (v.deviation > 0 ? v.deviation * noise_at(&v, row + e) : 0.0f);
        p[e] = z;
        most = fmaxf(most, z);
        total += 0.0f * z; /* what is not finite goes through */
    }
    most = warp_max(most);
    struct candidate last = {INFINITY, -1};
    for (size_t k = 0; k < d.top_k; k++) {
        last = next_candidate(p, d.experts, last);
        if (lane() == 0)
            chosen[k] = last.index;
    }
    for (size_t e = lane(); e < d.experts; e += WARP)
        total += p[e] = expf(p[e] - most);
    total = warp_sum(total);
    for (size_t e = lane(); e < d.experts; e += WARP)
        p[e] /= total;
    __syncwarp();
    for (size_t k = lane(); k < d.top_k; k += WARP)
        gates[k] = p[chosen[k]];
}

static __global__ void weigh_rows(struct slots d, enum alignment aligned, float *weights)
{
    size_t b = global_thread(), at = b * d.top_k;
    if (b >= d.samples)
        return;
    if (aligned != ALIGN_NONE)
        routing_align(d.top_k, aligned == ALIGN_EACH, d.slot + at, d.gates + at, weights + at);
    for (size_t k = at; aligned == ALIGN_NONE && k < at + d.top_k; k++)
        weights[k] = d.gates[k];
}

/* Router r of matrices [T, d, E]. */
static struct matrix router_of(const void *matrices, size_t r, size_t width, size_t experts)
{
    return matrix_rows((float *)matrices + r * width * experts, width, experts);
}

/* logits [T, B, E] */
static status project(struct backend *backend, const struct route_softmax *o, float *logits, struct error *error)
{
    for (size_t r = 0; r < o->routers; r++) {
        struct gemm product = {};
        product.a = matrix_rows((void *)o->x, o->samples, o->width);
        product.b = router_of(o->routers_value, r, o->width, o->experts);
        product.out = matrix_rows(logits + r * o->samples * o->experts, o->samples, o->experts);
        product.exact = true;
        TRY(cuda_gemm(backend, &product, error));
    }
    return OK;
}

status cuda_route_softmax(struct backend *backend, const struct route_softmax *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    struct slots d = slots_of(o->dispatch);
    void *logits;
    TRY(cuda_scratch(cuda, o->routers * o->samples * o->experts * sizeof(float), &logits, error));
    TRY(project(backend, o, (float *)logits, error));
    struct choice_values v = {o->router,
                              (const float *)logits,
                              o->training ? o->noise_deviation : 0.0f,
                              (const float *)o->noise,
                              o->noise_base,
                              o->state,
                              o->probabilities};
    if (o->samples > 0)
        CUDA_LAUNCH(cuda, choose_rows, blocks_for(o->samples, BLOCK / WARP), BLOCK, 0, d, v);
    const struct selections selections = {o->counts, o->used, o->add_used, o->frozen};
    TRY(cuda_sort_slots(cuda, &d, o->limit, o->training ? &selections : NULL, error));
    if (o->weights != NULL && o->samples > 0)
        CUDA_LAUNCH(cuda, weigh_rows, blocks_for(o->samples, BLOCK), BLOCK, 0, d, o->aligned, o->weights);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "route_softmax", error);
}

struct slope_values {
    size_t routers;
    const int32_t *router;
    const float *probabilities, *dgates, *dprobabilities;
    float *dz; /* [T, B, E] gradients of the logits, 0 for all routers but the sample's */
};

/* A warp has a sample. */
static __global__ void slope_rows(struct slots d, struct slope_values v)
{
    size_t b = global_warp(), row = b * d.experts;
    if (b >= d.samples)
        return;
    int32_t own = v.router[b];
    for (size_t r = 0; r < v.routers; r++)
        for (size_t e = lane(); (int32_t)r != own && e < d.experts; e += WARP)
            v.dz[r * d.samples * d.experts + row + e] = 0;
    if (own < 0)
        return;
    float *dz = v.dz + (size_t)own * d.samples * d.experts + row, mean = 0;
    const float *p = v.probabilities + row;
    for (size_t e = lane(); e < d.experts; e += WARP) {
        float dp = v.dprobabilities != NULL ? v.dprobabilities[row + e] : 0.0f;
        for (size_t i = b * d.top_k; i < (b + 1) * d.top_k; i++)
            if (d.chosen[i] == (int32_t)e && d.slot[i] >= 0)
                dp += v.dgates[i];
        dz[e] = dp;
        mean += p[e] * dp;
    }
    mean = warp_sum(mean);
    for (size_t e = lane(); e < d.experts; e += WARP)
        dz[e] = routing_drop_tiny(p[e] * (dz[e] - mean));
}

status cuda_route_softmax_backward(struct backend *backend, const struct route_softmax_backward *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    size_t n = o->samples * o->experts;
    void *memory;
    if (n == 0)
        return OK;
    TRY(cuda_scratch(cuda, o->routers * n * sizeof(float), &memory, error));
    float *dz = (float *)memory;
    struct slope_values v = {o->routers, o->router, o->probabilities, o->dgates, o->dprobabilities, dz};
    CUDA_LAUNCH(cuda, slope_rows, blocks_for(o->samples, BLOCK / WARP), BLOCK, 0, slots_of(o->dispatch), v);
    for (size_t r = 0; r < o->routers; r++) {
        struct gemm weights = {}, input = {};
        weights.a = matrix_rows((void *)o->x, o->samples, o->width);
        weights.b = input.a = matrix_rows(dz + r * n, o->samples, o->experts);
        weights.out = router_of(o->drouters, r, o->width, o->experts);
        input.b = router_of(o->routers_value, r, o->width, o->experts);
        input.out = matrix_rows(o->dx, o->samples, o->width);
        weights.transpose_a = input.transpose_b = true;
        weights.accumulate = input.accumulate = weights.exact = input.exact = true;
        TRY(cuda_gemm(backend, &weights, error));
        if (o->dx != NULL)
            TRY(cuda_gemm(backend, &input, error));
    }
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "route_softmax_backward", error);
}

/* --- Partitions --- */

/* The order of the numbers drawn: samples sorted by the highest eight bits, in which they are few, and compared there. */
enum { BUCKETS = 256 };

struct lots {
    const int32_t *router, *owner;
    uint64_t base;
    const struct step_state *state;
    uint32_t *numbers;
    struct slots buckets;
};

static __global__ void draw_numbers(struct lots l)
{
    size_t b = global_thread();
    uint32_t words[4];
    if (b >= l.buckets.samples)
        return;
    philox_of_step(l.state, RNG_TOKENS, l.base + b, words);
    l.numbers[b] = words[0];
    l.buckets.chosen[b] = l.router[b] < 0 ? -1 : (int32_t)(words[0] >> 24);
}

static __device__ inline int32_t drawn_expert(const struct lots *l, size_t b, size_t experts)
{
    const struct slots *d = &l->buckets;
    int32_t first = d->offsets[d->chosen[b]], last = d->offsets[d->chosen[b] + 1], before = first;
    for (int32_t s = first; s < last; s++) {
        size_t other = (size_t)d->sample[s];
        before += l->numbers[other] < l->numbers[b] || (l->numbers[other] == l->numbers[b] && other < b);
    }
    return routing_group((size_t)before, (size_t)d->offsets[BUCKETS], experts);
}

static __global__ void give_samples(struct slots d, struct lots l)
{
    size_t b = global_thread();
    if (b >= d.samples)
        return;
    bool takes_part = l.router[b] >= 0;
    d.gates[b] = takes_part ? 1.0f : 0.0f;
    d.chosen[b] = !takes_part ? -1 : l.owner != NULL ? l.owner[b] : drawn_expert(&l, b, d.experts);
}

static status draw_lots(struct cuda *cuda, struct lots *l, size_t samples, struct error *error)
{
    void *memory;
    TRY(cuda_scratch(cuda, (5 * samples + BUCKETS + 1) * sizeof(int32_t), &memory, error));
    int32_t *values = (int32_t *)memory;
    l->numbers = (uint32_t *)values;
    l->buckets = {samples,
                  BUCKETS,
                  1,
                  values + samples,
                  NULL,
                  values + 2 * samples,
                  values + 3 * samples,
                  values + 4 * samples,
                  values + 5 * samples};
    CUDA_LAUNCH(cuda, draw_numbers, blocks_for(samples, BLOCK), BLOCK, 0, *l);
    return cuda_sort_slots(cuda, &l->buckets, 0, NULL, error);
}

status cuda_partition(struct backend *backend, const struct partition *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    struct slots d = slots_of(o->dispatch);
    struct lots l = {o->router, o->owner, o->base, o->state};
    if (o->owner == NULL && d.samples > 0)
        TRY(draw_lots(cuda, &l, d.samples, error));
    if (d.samples > 0)
        CUDA_LAUNCH(cuda, give_samples, blocks_for(d.samples, BLOCK), BLOCK, 0, d, l);
    const struct selections selections = {o->counts, o->used, o->add_used, o->frozen};
    TRY(cuda_sort_slots(cuda, &d, 0, o->counts != NULL ? &selections : NULL, error));
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "partition", error);
}

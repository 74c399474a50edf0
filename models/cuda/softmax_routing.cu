/* Softmax top-k with capacity, random partitions, and the balance losses of noisy top-k and of softmax top-k. */
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
static status project(struct cuda *cuda, const struct route_softmax *o, float *logits, struct error *error)
{
    for (size_t r = 0; r < o->routers; r++) {
        struct gemm product = {};
        product.a = matrix_rows((void *)o->x, o->samples, o->width);
        product.b = router_of(o->routers_value, r, o->width, o->experts);
        product.out = matrix_rows(logits + r * o->samples * o->experts, o->samples, o->experts);
        product.exact = true;
        TRY(cuda->backend.ops->gemm(&cuda->backend, &product, error));
    }
    return OK;
}

status cuda_route_softmax(struct cuda *cuda, const struct route_softmax *o, struct error *error)
{
    struct slots d = slots_of(o->dispatch);
    void *logits;
    TRY(cuda_scratch(cuda, o->routers * o->samples * o->experts * sizeof(float), &logits, error));
    TRY(project(cuda, o, (float *)logits, error));
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
    return OK;
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

status cuda_route_softmax_backward(struct cuda *cuda, const struct route_softmax_backward *o, struct error *error)
{
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
        TRY(cuda->backend.ops->gemm(&cuda->backend, &weights, error));
        if (o->dx != NULL)
            TRY(cuda->backend.ops->gemm(&cuda->backend, &input, error));
    }
    return OK;
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

status cuda_partition(struct cuda *cuda, const struct partition *o, struct error *error)
{
    struct slots d = slots_of(o->dispatch);
    struct lots l = {o->router, o->owner, o->base, o->state};
    if (o->owner == NULL && d.samples > 0)
        TRY(draw_lots(cuda, &l, d.samples, error));
    if (d.samples > 0)
        CUDA_LAUNCH(cuda, give_samples, blocks_for(d.samples, BLOCK), BLOCK, 0, d, l);
    const struct selections selections = {o->counts, o->used, o->add_used, o->frozen};
    return cuda_sort_slots(cuda, &d, 0, o->counts != NULL ? &selections : NULL, error);
}

/* ---- The balance losses of noisy top-k and of softmax top-k: sums by expert, gradients by sample. ---- */

struct balance_values {
    size_t samples, experts, top_k;
    const int32_t *chosen;
    const float *gates, *noise_logits, *drawn;
    float epsilon, weight;
    float *logits, *dnoise_logits, *dgates, *loss, *unweighted;
    float share;
    int32_t *next;             /* [B] the expert of the (K + 1)-th largest z; −1: none */
    float *probability;        /* [B, E] of being chosen; 0 where all or none are */
    double *importance, *load; /* [E], then their slopes */
};

/* A block has a sample. */
static __global__ void find_probabilities(struct balance_values v)
{
    __shared__ int32_t next;
    size_t b = blockIdx.x, row = b * v.experts;
    const int32_t *chosen = v.chosen + b * v.top_k;
    const float *z = v.logits + row;
    if (threadIdx.x == 0) {
        next = chosen[0] < 0 ? -1 : routing_next(z, v.experts, v.top_k, chosen);
        v.next[b] = next;
    }
    __syncthreads();
    for (size_t e = threadIdx.x; e < v.experts; e += blockDim.x) {
        float p = 0;
        if (next >= 0) {
            float threshold = z[routing_is_chosen(chosen, v.top_k, e) ? next : chosen[v.top_k - 1]];
            p = routing_probability(routing_margin(z[e], routing_deviation(v.noise_logits[row + e], v.epsilon),
                                                   v.drawn[row + e], threshold));
        }
        v.probability[row + e] = p;
    }
}

/* A thread has an expert and takes the samples in order. */
static __global__ void add_experts(struct balance_values v)
{
    size_t e = global_thread();
    if (e >= v.experts)
        return;
    double importance = 0, load = 0;
    for (size_t b = 0; b < v.samples; b++) {
        for (size_t k = 0; k < v.top_k; k++)
            importance += v.chosen[b * v.top_k + k] == (int32_t)e ? (double)v.gates[b * v.top_k + k] : 0.0;
        load += (double)v.probability[b * v.experts + e];
    }
    v.importance[e] = importance;
    v.load[e] = load;
}

/* One thread. */
static __global__ void add_variations(struct balance_values v)
{
    double weight = (double)v.weight;
    double variation =
        routing_variation(v.importance, v.experts, weight) + routing_variation(v.load, v.experts, weight);
    *v.loss += (float)(weight * variation);
    if (v.unweighted != NULL)
        *v.unweighted += (float)((double)v.share * variation);
}

/* A block has a sample. Shared memory: from [E], what each expert's probability takes back from its threshold */
static __global__ void find_gradients(struct balance_values v)
{
    DYNAMIC_SHARED(float, from);
    size_t b = blockIdx.x, row = b * v.experts;
    const int32_t *chosen = v.chosen + b * v.top_k;
    int32_t next = v.next[b];
    float *z = v.logits + row, *du = v.dnoise_logits + row;
    const float *u = v.noise_logits + row, *n = v.drawn + row;
    for (size_t k = threadIdx.x; k < v.top_k; k += blockDim.x)
        v.dgates[b * v.top_k + k] = chosen[k] >= 0 ? (float)v.importance[chosen[k]] : 0.0f;
    float kth = next >= 0 ? z[chosen[v.top_k - 1]] : 0.0f, after = next >= 0 ? z[next] : 0.0f;
    __syncthreads(); /* the thresholds are overwritten from here on */
    for (size_t e = threadIdx.x; e < v.experts; e += blockDim.x) {
        if (next < 0) {
            z[e] = du[e] = 0;
            continue;
        }
        float threshold = routing_is_chosen(chosen, v.top_k, e) ? after : kth, load = (float)v.load[e];
        struct routing_slopes slopes = routing_slopes(z[e], u[e], n[e], threshold, v.epsilon);
        from[e] = load * slopes.clean;
        z[e] = load * slopes.clean;
        du[e] = load * slopes.noise;
    }
    __syncthreads();
    if (next < 0 || threadIdx.x > 0)
        return;
    float from_kth = 0, from_after = 0;
    for (size_t e = 0; e < v.experts; e++) {
        if (routing_is_chosen(chosen, v.top_k, e))
            from_after -= from[e];
        else
            from_kth -= from[e];
    }
    int32_t last = chosen[v.top_k - 1];
    z[last] += from_kth;
    du[last] += from_kth * n[last] * routing_sigmoid(u[last]);
    z[next] += from_after;
    du[next] += from_after * n[next] * routing_sigmoid(u[next]);
}

status cuda_balance(struct cuda *cuda, const struct balance *o, struct error *error)
{
    const struct dispatch *d = o->dispatch;
    struct balance_values v = {d->samples,       d->experts, d->top_k,   d->chosen,     d->gates,
                               o->noise_logits,  o->drawn,   o->epsilon, o->weight,     o->logits,
                               o->dnoise_logits, o->dgates,  o->loss,    o->unweighted, o->share};
    if (d->samples == 0)
        return OK;
    TRY(cuda_scratch(cuda, d->samples * sizeof *v.next, &v.next, error));
    TRY(cuda_scratch(cuda, d->samples * d->experts * sizeof *v.probability, &v.probability, error));
    TRY(cuda_scratch(cuda, 2 * d->experts * sizeof *v.importance, &v.importance, error));
    v.load = v.importance + d->experts;
    CUDA_LAUNCH(cuda, find_probabilities, (unsigned int)d->samples, BLOCK, 0, v);
    CUDA_LAUNCH(cuda, add_experts, blocks_for(d->experts, BLOCK), BLOCK, 0, v);
    CUDA_LAUNCH(cuda, add_variations, 1, 1, 0, v);
    CUDA_LAUNCH(cuda, find_gradients, (unsigned int)d->samples, BLOCK, d->experts * sizeof(float), v);
    return OK;
}

/* --- Of softmax top-k --- */

enum { CHUNK_SAMPLES = 64 };

struct softmax_values {
    enum balance_softmax_kind kind;
    size_t chunks;
    const float *probabilities;
    float weight, share;
    float *dprobabilities, *loss, *unweighted;
    double *sums, *sent; /* [chunks, E]: Σ p, or of kept gates (RMoE); choices */
    double *slopes;      /* [E]: of the loss along p (WideNet) or along a kept gate */
};

/* A block has CHUNK_SAMPLES samples, a thread experts, and takes the samples in order. */
static __global__ void sum_samples(struct slots d, struct softmax_values v)
{
    size_t first = (size_t)blockIdx.x * CHUNK_SAMPLES,
           last = first + CHUNK_SAMPLES < d.samples ? first + CHUNK_SAMPLES : d.samples;
    for (size_t e = threadIdx.x; e < d.experts; e += blockDim.x) {
        double sum = 0, sent = 0;
        for (size_t b = first; v.kind == BALANCE_WIDENET && b < last; b++)
            sum += (double)v.probabilities[b * d.experts + e];
        for (size_t i = first * d.top_k; i < last * d.top_k; i++) {
            bool own = d.chosen[i] == (int32_t)e;
            sent += own ? 1.0 : 0.0;
            sum += own && v.kind == BALANCE_RMOE ? (double)d.gates[i] : 0.0; /* 0 beyond the limit */
        }
        v.sums[blockIdx.x * d.experts + e] = sum;
        v.sent[blockIdx.x * d.experts + e] = sent;
    }
}

/* One block; a thread has experts. Shared memory: sums [E], sent [E] */
static __global__ void add_balance(struct slots d, struct softmax_values v)
{
    DYNAMIC_SHARED(double, sums);
    double *sent = sums + d.experts, loss = 0, choices = 0, weight = (double)v.weight;
    for (size_t e = threadIdx.x; e < d.experts; e += blockDim.x) {
        sums[e] = sent[e] = 0;
        for (size_t c = 0; c < v.chunks; c++) {
            sums[e] += v.sums[c * d.experts + e];
            sent[e] += v.sent[c * d.experts + e];
        }
    }
    __syncthreads();
    for (size_t e = 0; v.kind == BALANCE_WIDENET && e < d.experts; e++)
        choices += sent[e];
    double samples = choices > 0 ? choices / (double)d.top_k : 1;
    for (size_t e = threadIdx.x; v.kind == BALANCE_WIDENET && e < d.experts; e += blockDim.x)
        v.slopes[e] = (double)d.experts * sent[e] / samples / samples;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (size_t e = 0; v.kind == BALANCE_WIDENET && e < d.experts; e++)
        loss += v.slopes[e] * sums[e];
    for (size_t e = 0; v.kind == BALANCE_WIDENET && e < d.experts; e++)
        v.slopes[e] *= weight;
    if (v.kind == BALANCE_RMOE) {
        loss = routing_population_variation(sums, d.experts, weight);
        for (size_t e = 0; e < d.experts; e++)
            v.slopes[e] = sums[e];
    }
    *v.loss += (float)(weight * loss);
    if (v.unweighted != NULL)
        *v.unweighted += (float)((double)v.share * loss);
}

static __global__ void probability_gradients(struct slots d, struct softmax_values v)
{
    size_t at = global_thread(), e = at % d.experts, b = at / d.experts;
    if (b >= d.samples)
        return;
    bool has_part = v.kind == BALANCE_WIDENET && d.chosen[b * d.top_k] >= 0;
    for (size_t i = b * d.top_k; v.kind == BALANCE_RMOE && i < (b + 1) * d.top_k; i++)
        has_part = has_part || (d.chosen[i] == (int32_t)e && d.slot[i] >= 0);
    v.dprobabilities[at] = has_part ? (float)v.slopes[e] : 0.0f;
}

status cuda_balance_softmax(struct cuda *cuda, const struct balance_softmax *o, struct error *error)
{
    struct slots d = slots_of(o->dispatch);
    if (d.samples == 0)
        return OK;
    size_t chunks = blocks_for(d.samples, CHUNK_SAMPLES), each = chunks * d.experts;
    void *memory;
    TRY(cuda_scratch(cuda, (2 * each + d.experts) * sizeof(double), &memory, error));
    double *sums = (double *)memory;
    struct softmax_values v = {o->kind,           chunks,  o->probabilities, o->weight, o->share,
                               o->dprobabilities, o->loss, o->unweighted,    sums,      sums + each,
                               sums + 2 * each};
    CUDA_LAUNCH(cuda, sum_samples, (unsigned int)chunks, BLOCK, 0, d, v);
    CUDA_LAUNCH(cuda, add_balance, 1, BLOCK, 2 * d.experts * sizeof(double), d, v);
    CUDA_LAUNCH(cuda, probability_gradients, blocks_for(d.samples * d.experts, BLOCK), BLOCK, 0, d, v);
    return OK;
}

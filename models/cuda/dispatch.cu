/* Routing of samples to experts, and combining the experts' outputs. Only the device knows the number of slots, so kernels
 * are launched for the largest possible number. */
#include "models/cuda/kernel.cuh"
#include "models/routing.h"

extern "C" {
#include "core/rng.h"
}

/* --- Routing --- */

/* Experts per block of project_samples where there are more than FEW_EXPERTS, so that many blocks share the matrices' rows. */
enum { FEW_EXPERTS = 128, EXPERTS_TOGETHER = 32 };

struct route_values {
    size_t positions, width, together; /* together: experts of a block */
    const float *x, *routers, *noise_matrix;
    const int32_t *router;
    bool training;
    const float *noise; /* given, or NULL: drawn */
    uint64_t noise_base;
    const struct step_state *state;
    float epsilon;
    float *noise_logits, *drawn, *logits;
};

/* Σ_i x[i] matrix[i, e] of expert first + t, t < count, to the block's thread t; partial [blockDim.x] */
static __device__ float project(size_t width, size_t experts, size_t first, size_t count, const float *x,
                                const float *matrix, float *partial)
{
    size_t parts = blockDim.x / count, e = threadIdx.x % count, part = threadIdx.x / count;
    float total = 0;
    if (part < parts)
        for (size_t i = part; i < width; i += parts)
            total += x[i] * matrix[i * experts + first + e];
    __syncthreads(); /* what was there is read */
    partial[threadIdx.x] = total;
    __syncthreads();
    if (part == 0)
        for (size_t p = 1; p < parts; p++)
            total += partial[p * count + e];
    return total;
}

static __device__ inline float noise_at(const struct route_values *r, size_t i)
{
    uint32_t words[4];
    philox_of_step(r->state, RNG_ROUTER_NOISE, r->noise_base + i, words);
    return philox_normal(words);
}

/* Block (b, i) has logits of sample b for the i-th `together` experts. */
static __global__ void project_samples(struct slots d, struct route_values r)
{
    __shared__ float partial[BLOCK];
    size_t b = blockIdx.x, first = blockIdx.y * r.together;
    if (r.router[b] < 0)
        return;
    size_t count = d.experts - first < r.together ? d.experts - first : r.together,
           offset = (size_t)r.router[b] * r.width * d.experts, at = b * d.experts + first + threadIdx.x;
    const float *x0 = r.x + b * r.positions * r.width;
    float z = project(r.width, d.experts, first, count, x0, r.routers + offset, partial), u = 0;
    if (r.training)
        u = project(r.width, d.experts, first, count, x0, r.noise_matrix + offset, partial);
    if (threadIdx.x >= count)
        return;
    if (r.training) {
        r.noise_logits[at] = u;
        r.drawn[at] = r.noise != NULL ? r.noise[at] : noise_at(&r, at);
        z += r.drawn[at] * routing_deviation(u, r.epsilon);
    }
    r.logits[at] = z;
}

/* A warp has a sample. */
static __global__ void choose_samples(struct slots d, const int32_t *router, const float *logits)
{
    size_t b = global_warp();
    if (b >= d.samples)
        return;
    const float *z = logits + b * d.experts;
    int32_t *chosen = d.chosen + b * d.top_k;
    float *gates = d.gates + b * d.top_k, nothing = 0;
    bool off = router[b] < 0;
    for (size_t k = lane(); off && k < d.top_k; k += WARP) {
        chosen[k] = -1;
        gates[k] = 0;
    }
    if (off)
        return;
    for (size_t e = lane(); e < d.experts; e += WARP)
        nothing += 0.0f * z[e];
    nothing = warp_sum(nothing);
    struct candidate last = {INFINITY, -1};
    for (size_t k = 0; k < d.top_k; k++) {
        last = next_candidate(z, d.experts, last);
        if (lane() == 0)
            chosen[k] = last.index;
    }
    if (lane() == 0)
        routing_gates_of(z, (double)nothing, chosen, d.top_k, gates);
}

status cuda_route(struct backend *backend, const struct route *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    struct slots d = slots_of(o->dispatch);
    void *logits = o->logits;
    if (logits == NULL)
        TRY(cuda_scratch(cuda, o->batch * o->experts * sizeof(float), &logits, error));
    struct route_values r = {};
    r.positions = o->positions;
    r.width = o->width;
    r.together = o->experts <= FEW_EXPERTS ? o->experts : EXPERTS_TOGETHER;
    r.x = (const float *)o->x;
    r.routers = (const float *)o->routers_value;
    r.noise_matrix = (const float *)o->noise_value;
    r.router = o->router;
    r.training = o->training;
    r.noise = (const float *)o->noise;
    r.noise_base = o->noise_base;
    r.state = o->state;
    r.epsilon = o->epsilon;
    r.noise_logits = o->noise_logits;
    r.drawn = o->drawn;
    r.logits = (float *)logits;
    if (o->batch > 0) {
        CUDA_LAUNCH(cuda, project_samples, dim3((unsigned int)o->batch, blocks_for(o->experts, r.together)), BLOCK, 0,
                    d, r);
        CUDA_LAUNCH(cuda, choose_samples, blocks_for(o->batch, BLOCK / WARP), BLOCK, 0, d, o->router, r.logits);
    }
    TRY(cuda_sort_slots(cuda, &d, 0, error));
    if (o->training)
        cuda_count_selections(cuda, &d, o->counts, o->used, o->add_used, o->frozen);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "route", error);
}

static __global__ void chosen_gradients(struct slots d, const float *dgates, const float *noise_logits,
                                        const float *drawn, float *dz, float *du)
{
    size_t b = global_thread(), at = b * d.top_k;
    if (b < d.samples)
        routing_gradients(d.top_k, d.chosen + at, d.gates + at, dgates + at, noise_logits + b * d.experts,
                          drawn + b * d.experts, dz + at, du + at);
}

struct route_slopes {
    size_t positions, width;
    const float *x, *routers, *noise;
    const int32_t *router;
    const float *dz, *du, *dlogits, *dnoise_logits;
    float *drouters, *dnoise, *dx;
};

/* A thread has coordinate i of the width and expert e, and takes the samples that chose it in order. */
static __global__ void router_gradients(struct slots d, struct route_slopes r)
{
    size_t at = global_thread(), e = at % d.experts, i = at / d.experts;
    if (i >= r.width)
        return;
    for (int32_t s = d.offsets[e]; s < d.offsets[e + 1]; s++) {
        size_t b = (size_t)d.sample[s], choice = (size_t)d.choice[s];
        size_t to = ((size_t)r.router[b] * r.width + i) * d.experts + e;
        float x0 = r.x[b * r.positions * r.width + i];
        r.drouters[to] += x0 * r.dz[choice];
        r.dnoise[to] += x0 * r.du[choice];
    }
    for (size_t b = 0; r.dlogits != NULL && b < d.samples; b++) {
        if (r.router[b] < 0)
            continue;
        size_t to = ((size_t)r.router[b] * r.width + i) * d.experts + e;
        float x0 = r.x[b * r.positions * r.width + i];
        r.drouters[to] += x0 * r.dlogits[b * d.experts + e];
        r.dnoise[to] += x0 * r.dnoise_logits[b * d.experts + e];
    }
}

static __global__ void router_input_gradients(struct slots d, struct route_slopes r)
{
    size_t at = global_thread(), i = at % r.width, b = at / r.width;
    if (b >= d.samples || r.router[b] < 0)
        return;
    float *dx0 = r.dx + b * r.positions * r.width;
    for (size_t k = 0; k < d.top_k; k++) {
        size_t choice = b * d.top_k + k;
        size_t from = ((size_t)r.router[b] * r.width + i) * d.experts + (size_t)d.chosen[choice];
        dx0[i] += r.dz[choice] * r.routers[from] + r.du[choice] * r.noise[from];
    }
    size_t from = ((size_t)r.router[b] * r.width + i) * d.experts;
    for (size_t e = 0; r.dlogits != NULL && e < d.experts; e++)
        dx0[i] +=
            r.dlogits[b * d.experts + e] * r.routers[from + e] + r.dnoise_logits[b * d.experts + e] * r.noise[from + e];
}

status cuda_route_backward(struct backend *backend, const struct route_backward *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    struct slots d = slots_of(o->dispatch);
    size_t choices = o->batch * o->top_k;
    void *memory;
    if (choices == 0)
        return OK;
    TRY(cuda_scratch(cuda, 2 * choices * sizeof(float), &memory, error));
    float *dz = (float *)memory, *du = dz + choices;
    struct route_slopes r = {o->positions,
                             o->width,
                             (const float *)o->x,
                             (const float *)o->routers_value,
                             (const float *)o->noise_value,
                             o->router,
                             dz,
                             du,
                             o->dlogits,
                             o->dnoise_logits,
                             (float *)o->drouters,
                             (float *)o->dnoise,
                             (float *)o->dx};
    CUDA_LAUNCH(cuda, chosen_gradients, blocks_for(o->batch, BLOCK), BLOCK, 0, d, o->dgates, o->noise_logits, o->drawn,
                dz, du);
    CUDA_LAUNCH(cuda, router_gradients, blocks_for(o->width * o->experts, BLOCK), BLOCK, 0, d, r);
    if (o->dx != NULL)
        CUDA_LAUNCH(cuda, router_input_gradients, blocks_for(o->batch * o->width, BLOCK), BLOCK, 0, d, r);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "route_backward", error);
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

status cuda_dispatch_gather(struct backend *backend, const struct dispatch_gather *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct slots d = slots_of(o->dispatch);
    size_t values = o->rows_per_sample * o->width;
    struct batch_values x = {(void *)o->x, o->x_type, values}, out = {o->out, o->out_type, values};
    if (d.samples * d.top_k * values > 0)
        CUDA_LAUNCH(cuda, gather_slots, dim3((unsigned int)(d.samples * d.top_k), across(values)), BLOCK, 0, d, x, out,
                    lies_by_eight(x) && lies_by_eight(out));
    return cuda_finish(cuda, "dispatch_gather", error);
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

status cuda_dispatch_combine(struct backend *backend, const struct dispatch_combine *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
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
    return cuda_finish(cuda, "dispatch_combine", error);
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

status cuda_dispatch_dropout(struct backend *backend, const struct dispatch_dropout *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
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
    return cuda_finish(cuda, "dispatch_dropout", error);
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

status cuda_expert_gate_backward(struct backend *backend, const struct expert_gate_backward *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
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
    TRY(backend->ops->zero(backend, o->dgates, most * sizeof *o->dgates, error));
    if (o->before == NULL)
        CUDA_LAUNCH(cuda, gate_slots<true>, (unsigned int)most, BLOCK, 0, d, g);
    else
        CUDA_LAUNCH(cuda, gate_slots<false>, (unsigned int)most, BLOCK, 0, d, g);
    CUDA_LAUNCH(cuda, gate_bias, blocks_for(d.experts * o->width, BLOCK), BLOCK, 0, d, g);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "expert_gate_backward", error);
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

status cuda_count_pairs(struct backend *backend, const struct count_pairs *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    CUDA_LAUNCH(cuda, count_pairs_of_experts, blocks_for(o->experts * o->experts, BLOCK), BLOCK, 0, *o);
    return cuda_finish(cuda, "count_pairs", error);
}

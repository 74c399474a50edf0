/* Noisy top-k: two launches forward, the second to sort slots (dispatch.cu), and one backward. */
#include "models/cuda/kernel.cuh"
#include "models/routing.h"

extern "C" {
#include "core/rng.h"
}

/* A block adds up the logits of all experts at once if they are few, else of some after the others: a logit has BLOCK /
 * experts partial sums. */
enum { FEW_EXPERTS = 128, EXPERTS_TOGETHER = 32, IN_FLIGHT = 8 };

struct route_values {
    size_t positions, width, together; /* together: experts whose logits are added up at once */
    const float *x, *routers, *noise_matrix;
    const int32_t *router;
    const float *noise; /* given, or NULL: drawn */
    uint64_t noise_base;
    const struct step_state *state;
    float epsilon;
    float *noise_logits, *drawn, *logits; /* logits NULL: not kept */
};

static __device__ inline float noise_at(const struct route_values *r, size_t i)
{
    uint32_t words[4];
    if (r->noise != NULL)
        return r->noise[i];
    philox_of_step(r->state, RNG_ROUTER_NOISE, r->noise_base + i, words);
    return philox_normal(words);
}

/* Shared memory of a block: partial sums of both projections, z [E] and u [E]. */
struct logits {
    float *clean, *noise, *z, *u;
};

/* z = x₀R, and in training u = x₀N, of the experts first … first + together − 1. A thread has every parts-th coordinate of
 * one expert, IN_FLIGHT loads of each matrix on their way at once. */
template <bool TRAINING>
static __device__ void project(const struct slots *d, const struct route_values *r, size_t b, size_t first,
                               struct logits l)
{
    size_t count = d->experts - first < r->together ? d->experts - first : r->together, parts = blockDim.x / count,
           e = threadIdx.x % count, part = threadIdx.x / count,
           matrix = (size_t)r->router[b] * r->width * d->experts + first + e;
    const float *__restrict__ x0 = r->x + b * r->positions * r->width;
    const float *__restrict__ routers = r->routers + matrix;
    const float *__restrict__ noise_matrix = r->noise_matrix + (TRAINING ? matrix : 0);
    float clean = 0, noise = 0;
    size_t i = part < parts ? part : r->width;
    for (; i + (IN_FLIGHT - 1) * parts < r->width; i += IN_FLIGHT * parts) {
        float x[IN_FLIGHT], of_routers[IN_FLIGHT], of_noise[IN_FLIGHT];
        for (int n = 0; n < IN_FLIGHT; n++) {
            x[n] = x0[i + n * parts];
            of_routers[n] = routers[(i + n * parts) * d->experts];
            of_noise[n] = TRAINING ? noise_matrix[(i + n * parts) * d->experts] : 0.0f;
        }
        for (int n = 0; n < IN_FLIGHT; n++) {
            clean += x[n] * of_routers[n];
            noise += x[n] * of_noise[n];
        }
    }
    for (; i < r->width; i += parts) {
        clean += x0[i] * routers[i * d->experts];
        noise += TRAINING ? x0[i] * noise_matrix[i * d->experts] : 0.0f;
    }
    __syncthreads(); /* what was there is read */
    l.clean[threadIdx.x] = clean;
    l.noise[threadIdx.x] = noise;
    __syncthreads();
    if (part > 0)
        return;
    for (size_t p = 1; p < parts; p++) {
        clean += l.clean[p * count + e];
        noise += l.noise[p * count + e];
    }
    l.z[first + e] = clean;
    l.u[first + e] = noise;
}

/* Adds the noise; every thread has experts. */
static __device__ void add_noise(const struct slots *d, const struct route_values *r, size_t b, struct logits l)
{
    for (size_t e = threadIdx.x; e < d->experts; e += blockDim.x) {
        size_t at = b * d->experts + e;
        float drawn = noise_at(r, at);
        r->noise_logits[at] = l.u[e];
        r->drawn[at] = drawn;
        l.z[e] += drawn * routing_deviation(l.u[e], r->epsilon);
    }
}

/* By one warp. */
static __device__ void choose(const struct slots *d, size_t b, const float *z)
{
    int32_t *chosen = d->chosen + b * d->top_k;
    float nothing = 0;
    for (size_t e = lane(); e < d->experts; e += WARP)
        nothing += 0.0f * z[e];
    nothing = warp_sum(nothing);
    struct candidate last = {INFINITY, -1};
    for (size_t k = 0; k < d->top_k; k++) {
        last = next_candidate(z, d->experts, last);
        if (lane() == 0)
            chosen[k] = last.index;
    }
    if (lane() == 0)
        routing_gates_of(z, (double)nothing, chosen, d->top_k, d->gates + b * d->top_k);
}

/* A block has a sample. Shared memory: z [E], u [E] */
template <bool TRAINING>
static __global__ void __launch_bounds__(BLOCK, 4) route_samples(struct slots d, struct route_values r)
{
    __shared__ float clean[BLOCK], noise[BLOCK];
    DYNAMIC_SHARED(float, z);
    struct logits l = {clean, noise, z, z + d.experts};
    size_t b = blockIdx.x;
    for (size_t k = threadIdx.x; r.router[b] < 0 && k < d.top_k; k += blockDim.x) {
        d.chosen[b * d.top_k + k] = -1;
        d.gates[b * d.top_k + k] = 0;
    }
    if (r.router[b] < 0)
        return;
    for (size_t first = 0; first < d.experts; first += r.together)
        project<TRAINING>(&d, &r, b, first, l);
    __syncthreads();
    if (TRAINING)
        add_noise(&d, &r, b, l);
    __syncthreads();
    for (size_t e = threadIdx.x; r.logits != NULL && e < d.experts; e += blockDim.x)
        r.logits[b * d.experts + e] = z[e];
    if (threadIdx.x < WARP)
        choose(&d, b, z);
}

status cuda_route(struct cuda *cuda, const struct route *o, struct error *error)
{
    struct slots d = slots_of(o->dispatch);
    const struct selections selections = {o->counts, o->used, o->add_used, o->frozen};
    struct route_values r = {};
    r.positions = o->positions;
    r.width = o->width;
    r.together = o->experts <= FEW_EXPERTS ? o->experts : EXPERTS_TOGETHER;
    r.x = (const float *)o->x;
    r.routers = (const float *)o->routers_value;
    r.noise_matrix = (const float *)o->noise_value;
    r.router = o->router;
    r.noise = (const float *)o->noise;
    r.noise_base = o->noise_base;
    r.state = o->state;
    r.epsilon = o->epsilon;
    r.noise_logits = o->noise_logits;
    r.drawn = o->drawn;
    r.logits = o->logits;
    size_t shared = 2 * o->experts * sizeof(float);
    if (o->batch > 0 && o->training)
        CUDA_LAUNCH(cuda, route_samples<true>, (unsigned int)o->batch, BLOCK, shared, d, r);
    else if (o->batch > 0)
        CUDA_LAUNCH(cuda, route_samples<false>, (unsigned int)o->batch, BLOCK, shared, d, r);
    return cuda_sort_slots(cuda, &d, 0, o->training ? &selections : NULL, error);
}

/* --- Gradients --- */

/* A block has COORDINATES of the width, which a sample's x₀ holds in one sector of memory. It takes ROWS slots or samples at
 * a time, or, for the inputs' gradients, SAMPLES in all. */
enum { COORDINATES = 8, ROWS = BLOCK, SAMPLES = 64 };

struct route_slopes {
    size_t positions, width;
    const float *x, *routers, *noise;
    const int32_t *router;
    const float *noise_logits, *drawn, *dgates, *dlogits, *dnoise_logits;
    float *drouters, *dnoise, *dx;
};

/* 12 KiB. Nine floats a row: threads with neighbouring rows read different banks. */
struct row_tile {
    size_t from; /* its first row, of all slots or samples */
    size_t count;
    int32_t router[ROWS];
    float dz[ROWS], du[ROWS], x[ROWS][COORDINATES + 1];
};

static __device__ inline float mean_of(const struct slots *d, const struct route_slopes *r, size_t b)
{
    return routing_mean(d->top_k, d->gates + b * d->top_k, r->dgates + b * d->top_k);
}

struct gradient_pair {
    float clean, noise;
};

/* Gradients of a chosen logit and of its noise logit. */
static __device__ inline struct gradient_pair chosen_gradients(const struct slots *d, const struct route_slopes *r,
                                                               size_t b, size_t choice, float mean)
{
    size_t at = b * d->experts + (size_t)d->chosen[choice];
    float dz = routing_logit_gradient(d->gates[choice], r->dgates[choice], mean);
    return {dz, routing_noise_gradient(dz, r->noise_logits[at], r->drawn[at])};
}

/* Rows of a tile are slots, or, without choices, samples. */
static __device__ void load_tile(const struct slots *d, const struct route_slopes *r, size_t first, bool choices,
                                 struct row_tile *tile, size_t from, size_t rows)
{
    size_t count = rows - from < ROWS ? rows - from : ROWS;
    __syncthreads(); /* what was there is read */
    for (size_t s = threadIdx.x; s < count; s += blockDim.x) {
        size_t b = choices ? (size_t)d->sample[from + s] : from + s;
        tile->router[s] = r->router[b];
        if (choices) {
            struct gradient_pair g = chosen_gradients(d, r, b, (size_t)d->choice[from + s], mean_of(d, r, b));
            tile->dz[s] = g.clean;
            tile->du[s] = g.noise;
        }
    }
    for (size_t v = threadIdx.x; v < count * COORDINATES; v += blockDim.x) {
        size_t s = v / COORDINATES, i = v % COORDINATES, b = choices ? (size_t)d->sample[from + s] : from + s;
        tile->x[s][i] = first + i < r->width ? r->x[b * r->positions * r->width + first + i] : 0.0f;
    }
    if (threadIdx.x == 0) {
        tile->from = from;
        tile->count = count;
    }
    __syncthreads();
}

/* The gradients of one value of a router and of its noise matrix, in registers until another router's turn comes. */
struct sums {
    int32_t router; /* −1: none yet */
    size_t at;
    struct gradient_pair total;
};

static __device__ inline void put_back(const struct route_slopes *r, const struct sums *sums)
{
    if (sums->router >= 0) {
        r->drouters[sums->at] = sums->total.clean;
        r->dnoise[sums->at] = sums->total.noise;
    }
}

static __device__ inline void turn_to(const struct slots *d, const struct route_slopes *r, int32_t router, size_t i,
                                      size_t e, struct sums *sums)
{
    if (sums->router == router)
        return;
    put_back(r, sums);
    sums->router = router;
    sums->at = ((size_t)router * r->width + i) * d->experts + e;
    sums->total = {r->drouters[sums->at], r->dnoise[sums->at]};
}

/* Slots [begin, end) of expert e, in order. */
static __device__ void add_slots(const struct slots *d, const struct route_slopes *r, const struct row_tile *tile,
                                 size_t first, size_t i, size_t e)
{
    size_t begin = (size_t)d->offsets[e], end = (size_t)d->offsets[e + 1], last = tile->from + tile->count;
    struct sums sums = {-1, 0, {0, 0}};
    for (size_t slot = begin > tile->from ? begin : tile->from; slot < end && slot < last; slot++) {
        size_t s = slot - tile->from;
        turn_to(d, r, tile->router[s], first + i, e, &sums);
        sums.total.clean += tile->x[s][i] * tile->dz[s];
        sums.total.noise += tile->x[s][i] * tile->du[s];
    }
    put_back(r, &sums);
}

/* All samples of a tile, in order. */
static __device__ void add_samples(const struct slots *d, const struct route_slopes *r, const struct row_tile *tile,
                                   size_t first, size_t i, size_t e)
{
    struct sums sums = {-1, 0, {0, 0}};
    for (size_t s = 0; s < tile->count; s++) {
        size_t at = (tile->from + s) * d->experts + e;
        if (tile->router[s] < 0)
            continue;
        turn_to(d, r, tile->router[s], first + i, e, &sums);
        sums.total.clean += tile->x[s][i] * r->dlogits[at];
        sums.total.noise += tile->x[s][i] * r->dnoise_logits[at];
    }
    put_back(r, &sums);
}

/* A thread has values (i, e) of the matrices, neighbouring threads neighbouring experts. */
static __device__ void matrix_gradients(const struct slots *d, const struct route_slopes *r, size_t first,
                                        struct row_tile *tile)
{
    size_t slots = (size_t)d->offsets[d->experts],
           coordinates = r->width - first < COORDINATES ? r->width - first : COORDINATES;
    for (size_t from = 0; from < slots; from += ROWS) {
        load_tile(d, r, first, true, tile, from, slots);
        for (size_t v = threadIdx.x; v < coordinates * d->experts; v += blockDim.x)
            add_slots(d, r, tile, first, v / d->experts, v % d->experts);
    }
    for (size_t from = 0; r->dlogits != NULL && from < d->samples; from += ROWS) {
        load_tile(d, r, first, false, tile, from, d->samples);
        for (size_t v = threadIdx.x; v < coordinates * d->experts; v += blockDim.x)
            add_samples(d, r, tile, first, v / d->experts, v % d->experts);
    }
}

/* dx₀ at coordinate i of sample b. */
static __device__ void input_gradient(const struct slots *d, const struct route_slopes *r, size_t b, size_t i)
{
    float *dx0 = r->dx + b * r->positions * r->width + i, total = *dx0, mean = mean_of(d, r, b);
    size_t row = ((size_t)r->router[b] * r->width + i) * d->experts;
    for (size_t k = 0; k < d->top_k; k++) {
        size_t choice = b * d->top_k + k, from = row + (size_t)d->chosen[choice];
        struct gradient_pair g = chosen_gradients(d, r, b, choice, mean);
        total += g.clean * r->routers[from] + g.noise * r->noise[from];
    }
    for (size_t e = 0; r->dlogits != NULL && e < d->experts; e++)
        total += r->dlogits[b * d->experts + e] * r->routers[row + e] +
                 r->dnoise_logits[b * d->experts + e] * r->noise[row + e];
    *dx0 = total;
}

/* Blocks (c, 0) have the matrices at the coordinates c, blocks (c, 1) … the inputs of some samples there. */
static __global__ void __launch_bounds__(BLOCK, 4) router_gradients(struct slots d, struct route_slopes r)
{
    __shared__ struct row_tile tile;
    size_t first = (size_t)blockIdx.x * COORDINATES;
    if (blockIdx.y == 0) {
        matrix_gradients(&d, &r, first, &tile);
        return;
    }
    for (size_t v = threadIdx.x; v < SAMPLES * COORDINATES; v += blockDim.x) {
        size_t b = (blockIdx.y - 1) * (size_t)SAMPLES + v / COORDINATES, i = first + v % COORDINATES;
        if (b < d.samples && i < r.width && r.router[b] >= 0)
            input_gradient(&d, &r, b, i);
    }
}

status cuda_route_backward(struct cuda *cuda, const struct route_backward *o, struct error *error)
{
    if (o->batch * o->top_k == 0)
        return OK;
    struct route_slopes r = {};
    r.positions = o->positions;
    r.width = o->width;
    r.x = (const float *)o->x;
    r.routers = (const float *)o->routers_value;
    r.noise = (const float *)o->noise_value;
    r.router = o->router;
    r.noise_logits = o->noise_logits;
    r.drawn = o->drawn;
    r.dgates = o->dgates;
    r.dlogits = o->dlogits;
    r.dnoise_logits = o->dnoise_logits;
    r.drouters = (float *)o->drouters;
    r.dnoise = (float *)o->dnoise;
    r.dx = (float *)o->dx;
    dim3 grid(blocks_for(o->width, COORDINATES), 1 + (o->dx != NULL ? blocks_for(o->batch, SAMPLES) : 0));
    CUDA_LAUNCH(cuda, router_gradients, grid, BLOCK, 0, slots_of(o->dispatch), r);
    return OK;
}

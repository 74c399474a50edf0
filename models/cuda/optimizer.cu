/* Optimizers over many tensors in one launch, steps that are skipped, and weighted sums. */
#include "models/cuda/kernel.cuh"

/* Segments are cut into pieces of PIECE values, a block each. Segment s has the blocks from offsets[s] / PIECE + s on: at
 * least as many as it has pieces, in a launch whose size the host knows. */
enum { PIECE = 16384 };

struct correction {
    float first, second; /* 1 − β₁ˢ and √(1 − β₂ˢ) after s steps */
};

/* Scratch memory of a launch over pieces. */
struct pieces {
    size_t blocks;
    int32_t *segment;               /* [blocks] */
    struct correction *corrections; /* [segments] or NULL */
    __nv_bfloat16 **copies;         /* [segments] NULL, or where the copy of value 0 would be */
};

static __device__ inline size_t first_block(const uint64_t *offsets, size_t s)
{
    return offsets[s] / PIECE + s;
}

/* By the thread of segment s. */
static __device__ inline void list_pieces(const uint64_t *offsets, size_t s, struct pieces pieces)
{
    for (size_t block = first_block(offsets, s); block < first_block(offsets, s + 1); block++)
        pieces.segment[block] = (int32_t)s;
}

/* The values of a block. */
struct span {
    size_t segment, first, last;
};

static __device__ inline struct span span_of(const uint64_t *offsets, struct pieces pieces)
{
    size_t s = (size_t)pieces.segment[blockIdx.x], end = offsets[s + 1],
           first = offsets[s] + (blockIdx.x - first_block(offsets, s)) * PIECE,
           last = first + PIECE < end ? first + PIECE : end;
    return {s, first, last};
}

static status take_pieces(struct cuda *cuda, size_t n, size_t segments, struct pieces *pieces, struct error *error)
{
    void *memory;
    pieces->blocks = n / PIECE + segments;
    TRY(cuda_scratch(cuda, segments * (sizeof(struct correction) + sizeof(void *)) + pieces->blocks * sizeof(int32_t),
                     &memory, error));
    pieces->copies = (__nv_bfloat16 **)memory;
    pieces->corrections = (struct correction *)(pieces->copies + segments);
    pieces->segment = (int32_t *)(pieces->corrections + segments);
    return OK;
}

/* Every thread that finds one writes the same value. */
static __global__ void find_values(size_t n, const float *values, int32_t *found)
{
    bool here = false;
    for (size_t i = global_thread(); i < n; i += (size_t)gridDim.x * blockDim.x)
        here = here || !is_finite(values[i]);
    if (here)
        *found = 1;
}

static __global__ void list_all_pieces(size_t segments, const uint64_t *offsets, struct pieces pieces)
{
    if (global_thread() < segments)
        list_pieces(offsets, global_thread(), pieces);
}

static __global__ void find_in_segments(struct find_not_finite o, struct pieces pieces)
{
    struct span span = span_of(o.offsets, pieces);
    bool here = false;
    if (!o.flags[o.flag[span.segment]])
        return;
    for (size_t i = span.first + threadIdx.x; i < span.last; i += blockDim.x)
        here = here || !is_finite(o.values[i]);
    if (here)
        *o.found = 1;
}

status cuda_find_not_finite(struct cuda *cuda, const struct find_not_finite *o, struct error *error)
{
    enum { MOST_BLOCKS = 2048 };
    unsigned int blocks = blocks_for(o->n, BLOCK);
    if (o->segments > 0) {
        struct pieces pieces;
        TRY(take_pieces(cuda, o->n, o->segments, &pieces, error));
        CUDA_LAUNCH(cuda, list_all_pieces, blocks_for(o->segments, BLOCK), BLOCK, 0, o->segments, o->offsets, pieces);
        CUDA_LAUNCH(cuda, find_in_segments, (unsigned int)pieces.blocks, BLOCK, 0, *o, pieces);
    } else if (o->n > 0) {
        CUDA_LAUNCH(cuda, find_values, blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, BLOCK, 0, o->n, o->values,
                    o->found);
    }
    return OK;
}

/* One block. */
static __global__ void skip(struct skip_step o)
{
    if (!o.guard->skip)
        return;
    if (threadIdx.x == 0) {
        o.guard->skipped++;
        if (o.guard->first == 0)
            o.guard->first = (int32_t)o.state->step + 1;
    }
    for (size_t l = 0; l < RESTORED_COUNTS; l++)
        for (size_t i = threadIdx.x; i < o.lists[l].n; i += blockDim.x)
            o.lists[l].counts[i] = o.lists[l].before[i];
}

status cuda_skip_step(struct cuda *cuda, const struct skip_step *o, struct error *error)
{
    CUDA_LAUNCH(cuda, skip, 1, BLOCK, 0, *o);
    return OK;
}

static __device__ inline bool is_skipped(const struct step_guard *guard)
{
    return guard != NULL && guard->skip;
}

/* By the thread of segment s: its copy, if it is one of these. */
static __device__ inline void find_copy(const uint64_t *offsets, size_t s, struct pieces pieces,
                                        const struct cuda_trained_copies *trained)
{
    for (size_t i = 0; i < trained->count; i++)
        if (offsets[s] - trained->list[i].first < trained->list[i].n)
            pieces.copies[s] = (__nv_bfloat16 *)trained->list[i].memory - trained->list[i].first;
}

/* A thread has a segment: its pieces, its copy, its count of steps, and its bias corrections. */
static __global__ void begin_update(struct update u, double beta1, double beta2, struct pieces pieces,
                                    struct cuda_trained_copies trained)
{
    size_t s = global_thread();
    if (s >= u.segments)
        return;
    list_pieces(u.offsets, s, pieces);
    pieces.copies[s] = NULL;
    find_copy(u.offsets, s, pieces, &trained);
    if (is_skipped(u.guard) || u.flags[u.flag[s]] == 0)
        return;
    double steps = (double)++u.steps[s];
    if (u.changes != NULL)
        u.changes[s]++;
    pieces.corrections[s] = {(float)(1.0 - pow(beta1, steps)), (float)sqrt(1.0 - pow(beta2, steps))};
}

static __global__ void find_more_copies(struct update u, struct pieces pieces, struct cuda_trained_copies trained)
{
    if (global_thread() < u.segments)
        find_copy(u.offsets, global_thread(), pieces, &trained);
}

static status begin(struct cuda *cuda, const struct update *u, double beta1, double beta2, struct pieces *pieces,
                    struct error *error)
{
    struct cuda_trained_copies trained;
    unsigned int blocks = blocks_for(u->segments, BLOCK);
    size_t next = 0;
    TRY(take_pieces(cuda, u->n, u->segments, pieces, error));
    cuda_copies_list(cuda, u->values, u->n, &next, &trained);
    CUDA_LAUNCH(cuda, begin_update, blocks, BLOCK, 0, *u, beta1, beta2, *pieces, trained);
    while (next < cuda->bf16_copies.count) {
        cuda_copies_list(cuda, u->values, u->n, &next, &trained);
        CUDA_LAUNCH(cuda, find_more_copies, blocks, BLOCK, 0, *u, *pieces, trained);
    }
    return OK;
}

/* Whether a block has values to update: not where the step is skipped or the flag is not set. Clears the gradients of a
 * skipped step. */
static __device__ inline bool find_span(const struct update *u, struct pieces pieces, struct span *span)
{
    bool skipped = is_skipped(u->guard);
    *span = span_of(u->offsets, pieces);
    for (size_t i = span->first + threadIdx.x; skipped && u->clear_skipped && i < span->last; i += blockDim.x)
        u->gradients[i] = 0;
    return !skipped && u->flags[u->flag[span->segment]] != 0;
}

/* rule(x) with the values x [N] of N arrays at every place of a span, which it may change: four neighbours of a thread at
 * a time where they are aligned, 16 bytes an access. The first one's go to their copy (NULL: none), too. */
template <int N, typename Rule>
static __device__ void update_values(float *const (&arrays)[N], struct span span, __nv_bfloat16 *copy, Rule rule)
{
    uintptr_t addresses = 0;
    for (int n = 0; n < N; n++)
        addresses |= (uintptr_t)(arrays[n] + span.first);
    size_t values = span.last > span.first ? span.last - span.first : 0,
           fours = addresses % sizeof(struct four_floats) == 0 ? values / FOUR * FOUR : 0;
    for (size_t i = span.first + FOUR * threadIdx.x; i < span.first + fours; i += FOUR * blockDim.x) {
        struct four_floats packed[N];
        for (int n = 0; n < N; n++)
            packed[n] = *(const struct four_floats *)(arrays[n] + i);
        for (int v = 0; v < FOUR; v++) {
            float x[N];
            for (int n = 0; n < N; n++)
                x[n] = packed[n].value[v];
            rule(x);
            for (int n = 0; n < N; n++)
                packed[n].value[v] = x[n];
        }
        for (int n = 0; n < N; n++)
            *(struct four_floats *)(arrays[n] + i) = packed[n];
        if (copy != NULL)
            store_four(copy, TENSOR_BF16, i, packed[0].value);
    }
    for (size_t i = span.first + fours + threadIdx.x; i < span.last; i += blockDim.x) {
        float x[N];
        for (int n = 0; n < N; n++)
            x[n] = arrays[n][i];
        rule(x);
        for (int n = 0; n < N; n++)
            arrays[n][i] = x[n];
        if (copy != NULL)
            copy[i] = __float2bfloat16(x[0]);
    }
}

/* The arrays of an update, in the order of update_values. */
enum { VALUE, GRADIENT, FIRST, SECOND };

static __global__ void __launch_bounds__(BLOCK, 4) step_adamw(struct adamw o, struct pieces pieces)
{
    struct update u = o.update;
    struct span span;
    if (!find_span(&u, pieces, &span))
        return;
    float beta1 = (float)o.beta1, beta2 = (float)o.beta2, rest1 = (float)(1.0 - o.beta1),
          rest2 = (float)(1.0 - o.beta2), epsilon = (float)o.epsilon, l2 = (float)o.l2, rate = u.state->learning_rate;
    struct correction correction = pieces.corrections[span.segment];
    float step = rate / correction.first, inverse = 1.0f / correction.second, decay = rate * (float)o.weight_decay;
    float *const arrays[] = {u.values, u.gradients, u.first_moment, u.second_moment};
    update_values(arrays, span, pieces.copies[span.segment], [=](float *x) {
        float g = x[GRADIENT] + l2 * x[VALUE];
        float m = beta1 * x[FIRST] + rest1 * g;
        float v = beta2 * x[SECOND] + rest2 * g * g;
        x[FIRST] = m;
        x[SECOND] = v;
        x[VALUE] = x[VALUE] - decay * x[VALUE] - step * m / (sqrtf(v) * inverse + epsilon);
        x[GRADIENT] = 0;
    });
}

status cuda_adamw(struct cuda *cuda, const struct adamw *o, struct error *error)
{
    struct pieces pieces;
    if (o->update.segments == 0)
        return OK;
    TRY(begin(cuda, &o->update, o->beta1, o->beta2, &pieces, error));
    CUDA_LAUNCH(cuda, step_adamw, (unsigned int)pieces.blocks, BLOCK, 0, *o, pieces);
    return OK;
}

static __global__ void step_sgd(struct sgd o, struct pieces pieces)
{
    struct update u = o.update;
    struct span span;
    if (!find_span(&u, pieces, &span))
        return;
    float momentum = (float)o.momentum, l2 = (float)o.l2, rate = u.state->learning_rate;
    float *const arrays[] = {u.values, u.gradients, u.first_moment};
    update_values(arrays, span, pieces.copies[span.segment], [=](float *x) {
        float m = momentum * x[FIRST] + (x[GRADIENT] + l2 * x[VALUE]);
        x[FIRST] = m;
        x[VALUE] = x[VALUE] - rate * m;
        x[GRADIENT] = 0;
    });
}

status cuda_sgd(struct cuda *cuda, const struct sgd *o, struct error *error)
{
    struct pieces pieces;
    if (o->update.segments == 0)
        return OK;
    TRY(begin(cuda, &o->update, 0, 0, &pieces, error));
    CUDA_LAUNCH(cuda, step_sgd, (unsigned int)pieces.blocks, BLOCK, 0, *o, pieces);
    return OK;
}

/* Sum over the block of one value a thread; every thread gets it. warps [BLOCK / WARP] */
static __device__ double block_sum(double x, double *warps)
{
    x = warp_sum(x);
    if (lane() == 0)
        warps[threadIdx.x / WARP] = x;
    __syncthreads();
    double total = 0;
    for (unsigned int w = 0; w < blockDim.x / WARP; w++)
        total += warps[w];
    __syncthreads();
    return total;
}

struct squares {
    double values, directions;
};

/* Moments, u in place of the gradient, and Σ p² and Σ u² of every block. */
static __global__ void find_directions(struct lamb o, struct pieces pieces, struct squares *squares)
{
    __shared__ double warps[BLOCK / WARP];
    struct update u = o.update;
    struct span span;
    if (!find_span(&u, pieces, &span))
        return;
    float beta1 = (float)o.beta1, beta2 = (float)o.beta2, rest1 = (float)(1.0 - o.beta1),
          rest2 = (float)(1.0 - o.beta2), epsilon = (float)o.epsilon, decay = (float)o.weight_decay;
    struct correction correction = pieces.corrections[span.segment];
    struct squares own = {0, 0};
    float correct = 1.0f / correction.first, inverse = 1.0f / correction.second;
    float *const arrays[] = {u.values, u.gradients, u.first_moment, u.second_moment};
    update_values(arrays, span, NULL, [&](float *x) {
        float g = x[GRADIENT];
        float m = beta1 * x[FIRST] + rest1 * g;
        float v = beta2 * x[SECOND] + rest2 * g * g;
        float direction = correct * m / (sqrtf(v) * inverse + epsilon) + decay * x[VALUE];
        x[FIRST] = m;
        x[SECOND] = v;
        x[GRADIENT] = direction;
        own.values += (double)x[VALUE] * (double)x[VALUE];
        own.directions += (double)direction * (double)direction;
    });
    own.values = block_sum(own.values, warps);
    own.directions = block_sum(own.directions, warps);
    if (threadIdx.x == 0)
        squares[blockIdx.x] = own;
}

static __global__ void step_lamb(struct lamb o, struct pieces pieces, const struct squares *squares)
{
    struct update u = o.update;
    struct span span;
    if (is_skipped(u.guard) ||
        !find_span(&u, pieces, &span)) /* find_directions has cleared the gradients of a skipped step */
        return;
    struct squares total = {0, 0};
    for (size_t block = first_block(u.offsets, span.segment); block < first_block(u.offsets, span.segment + 1);
         block++) {
        total.values += squares[block].values;
        total.directions += squares[block].directions;
    }
    double ratio = total.values == 0 || total.directions == 0 ? 1 : sqrt(total.values) / sqrt(total.directions);
    float scale = (float)((double)u.state->learning_rate * ratio);
    float *const arrays[] = {u.values, u.gradients};
    update_values(arrays, span, pieces.copies[span.segment], [=](float *x) {
        x[VALUE] = x[VALUE] - scale * x[GRADIENT];
        x[GRADIENT] = 0;
    });
}

status cuda_lamb(struct cuda *cuda, const struct lamb *o, struct error *error)
{
    struct pieces pieces;
    void *squares;
    if (o->update.segments == 0)
        return OK;
    TRY(begin(cuda, &o->update, o->beta1, o->beta2, &pieces, error));
    TRY(cuda_scratch(cuda, pieces.blocks * sizeof(struct squares), &squares, error));
    unsigned int blocks = (unsigned int)pieces.blocks;
    CUDA_LAUNCH(cuda, find_directions, blocks, BLOCK, 0, *o, pieces, (struct squares *)squares);
    CUDA_LAUNCH(cuda, step_lamb, blocks, BLOCK, 0, *o, pieces, (const struct squares *)squares);
    return OK;
}

static __global__ void sum_weighted(struct weighted_sum o)
{
    size_t i = global_thread();
    if (i >= o.n)
        return;
    double total = 0;
    for (size_t k = 0; k < o.count; k++)
        total += (double)o.weights[k] * (double)((const float *)o.inputs[k])[i];
    ((float *)o.out)[i] = (float)(o.divisor != 0 ? total / o.divisor : total);
}

CUDA_OPERATION(weighted_sum, o->n, BLOCK, sum_weighted, *o)

static __global__ void average_values(struct average_experts o)
{
    size_t i = global_thread(), count = 0;
    double sum = 0;
    if (i >= o.n)
        return;
    for (size_t e = 0; e < o.experts; e++)
        if (o.frozen == NULL || !o.frozen[e]) {
            sum += (double)o.values[e * o.n + i];
            count++;
        }
    if (count < 2)
        return;
    double others = (double)o.share / (double)(count - 1), own = 1 - (double)o.share - others;
    for (size_t e = 0; e < o.experts; e++)
        if (o.frozen == NULL || !o.frozen[e])
            o.values[e * o.n + i] = (float)(own * (double)o.values[e * o.n + i] + others * sum);
}

CUDA_OPERATION(average_experts, o->n, BLOCK, average_values, *o)

static __global__ void multiply_values(struct multiply o)
{
    size_t i = global_thread();
    if (i < o.n && (o.guard == NULL || o.guard->skip == 0))
        o.out[i] = (o.accumulate ? o.out[i] : 0.0f) + o.a[i] * o.b[i];
}

CUDA_OPERATION(multiply, o->n, BLOCK, multiply_values, *o)

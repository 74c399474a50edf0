/* Optimizers over many tensors in one launch, steps that are skipped, and weighted sums. */
#include "models/cuda/kernel.cuh"

enum { PIECES = 16 }; /* blocks a segment */

/* Every thread that finds one writes the same value. */
static __global__ void find_values(size_t n, const float *values, int32_t *found)
{
    bool here = false;
    for (size_t i = global_thread(); i < n; i += (size_t)gridDim.x * blockDim.x)
        here = here || !is_finite(values[i]);
    if (here)
        *found = 1;
}

static __global__ void find_in_segments(struct find_not_finite o)
{
    size_t s = blockIdx.x / PIECES, piece = blockIdx.x % PIECES;
    bool here = false;
    if (!o.flags[o.flag[s]])
        return;
    for (size_t i = o.offsets[s] + piece * blockDim.x + threadIdx.x; i < o.offsets[s + 1]; i += PIECES * blockDim.x)
        here = here || !is_finite(o.values[i]);
    if (here)
        *o.found = 1;
}

status cuda_find_not_finite(struct backend *backend, const struct find_not_finite *o, struct error *error)
{
    enum { MOST_BLOCKS = 2048 };
    struct cuda *cuda = cuda_of(backend);
    unsigned int blocks = blocks_for(o->n, BLOCK);
    if (o->segments > 0)
        CUDA_LAUNCH(cuda, find_in_segments, (unsigned int)o->segments * PIECES, BLOCK, 0, *o);
    else if (o->n > 0)
        CUDA_LAUNCH(cuda, find_values, blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, BLOCK, 0, o->n, o->values,
                    o->found);
    return cuda_finish(cuda, "find_not_finite", error);
}

/* One block. */
static __global__ void hold(struct hold_step o)
{
    if (!o.guard->held)
        return;
    if (threadIdx.x == 0) {
        o.guard->skipped++;
        if (o.guard->first == 0)
            o.guard->first = (int32_t)o.state->step + 1;
    }
    for (size_t l = 0; l < HELD_COUNTS; l++)
        for (size_t i = threadIdx.x; i < o.lists[l].n; i += blockDim.x)
            o.lists[l].counts[i] = o.lists[l].before[i];
}

status cuda_hold_step(struct backend *backend, const struct hold_step *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    CUDA_LAUNCH(cuda, hold, 1, BLOCK, 0, *o);
    return cuda_finish(cuda, "hold_step", error);
}

static __device__ inline bool is_held(const struct step_guard *guard)
{
    return guard != NULL && guard->held;
}

static __global__ void count_steps(struct update u)
{
    size_t s = global_thread();
    if (s >= u.segments || is_held(u.guard))
        return;
    bool updated = u.flags[u.flag[s]] != 0;
    u.steps[s] += updated;
    if (u.changes != NULL)
        u.changes[s] += updated;
}

/* The values of a thread in its block's piece of a segment. */
struct span {
    size_t segment, first, last, stride;
};

/* The part of its segment that a thread updates; none where the step is skipped or the flag is not set, for all threads of
 * a block alike. Clears the gradients of a skipped step. */
static __device__ inline bool find_span(const struct update *u, struct span *span)
{
    size_t s = blockIdx.x / PIECES, piece = blockIdx.x % PIECES;
    bool held = is_held(u->guard);
    *span = {s, u->offsets[s] + piece * blockDim.x + threadIdx.x, u->offsets[s + 1], PIECES * blockDim.x};
    for (size_t i = span->first; held && u->clear_held && i < span->last; i += span->stride)
        u->gradients[i] = 0;
    return !held && u->flags[u->flag[s]] != 0;
}

static __global__ void step_adamw(struct adamw o)
{
    struct update u = o.update;
    struct span span;
    if (!find_span(&u, &span))
        return;
    float beta1 = (float)o.beta1, beta2 = (float)o.beta2, rest1 = (float)(1.0 - o.beta1),
          rest2 = (float)(1.0 - o.beta2), epsilon = (float)o.epsilon, l2 = (float)o.l2, rate = u.state->learning_rate;
    double steps = (double)u.steps[span.segment];
    float step = rate / (float)(1.0 - pow(o.beta1, steps)), inverse = 1.0f / (float)sqrt(1.0 - pow(o.beta2, steps)),
          decay = rate * (float)o.weight_decay;
    for (size_t i = span.first; i < span.last; i += span.stride) {
        float g = u.gradients[i] + l2 * u.values[i];
        float m = beta1 * u.first_moment[i] + rest1 * g;
        float v = beta2 * u.second_moment[i] + rest2 * g * g;
        u.first_moment[i] = m;
        u.second_moment[i] = v;
        u.values[i] = u.values[i] - decay * u.values[i] - step * m / (sqrtf(v) * inverse + epsilon);
        u.gradients[i] = 0;
    }
}

status cuda_adamw(struct backend *backend, const struct adamw *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->update.segments == 0)
        return OK;
    CUDA_LAUNCH(cuda, count_steps, blocks_for(o->update.segments, BLOCK), BLOCK, 0, o->update);
    CUDA_LAUNCH(cuda, step_adamw, (unsigned int)o->update.segments * PIECES, BLOCK, 0, *o);
    return cuda_finish(cuda, "adamw", error);
}

static __global__ void step_sgd(struct sgd o)
{
    struct update u = o.update;
    struct span span;
    if (!find_span(&u, &span))
        return;
    float momentum = (float)o.momentum, l2 = (float)o.l2, rate = u.state->learning_rate;
    for (size_t i = span.first; i < span.last; i += span.stride) {
        float m = momentum * u.first_moment[i] + (u.gradients[i] + l2 * u.values[i]);
        u.first_moment[i] = m;
        u.values[i] = u.values[i] - rate * m;
        u.gradients[i] = 0;
    }
}

status cuda_sgd(struct backend *backend, const struct sgd *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->update.segments == 0)
        return OK;
    CUDA_LAUNCH(cuda, count_steps, blocks_for(o->update.segments, BLOCK), BLOCK, 0, o->update);
    CUDA_LAUNCH(cuda, step_sgd, (unsigned int)o->update.segments * PIECES, BLOCK, 0, *o);
    return cuda_finish(cuda, "sgd", error);
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

/* Moments, u in place of the gradient, and of every block Σ p² and Σ u² in squares [segments · PIECES, 2]. */
static __global__ void find_directions(struct lamb o, double *squares)
{
    __shared__ double warps[BLOCK / WARP];
    struct update u = o.update;
    struct span span;
    if (!find_span(&u, &span))
        return;
    float beta1 = (float)o.beta1, beta2 = (float)o.beta2, rest1 = (float)(1.0 - o.beta1),
          rest2 = (float)(1.0 - o.beta2), epsilon = (float)o.epsilon, decay = (float)o.weight_decay;
    double steps = (double)u.steps[span.segment], of_values = 0, of_directions = 0;
    float correct = 1.0f / (float)(1.0 - pow(o.beta1, steps)), inverse = 1.0f / (float)sqrt(1.0 - pow(o.beta2, steps));
    for (size_t i = span.first; i < span.last; i += span.stride) {
        float g = u.gradients[i];
        float m = beta1 * u.first_moment[i] + rest1 * g;
        float v = beta2 * u.second_moment[i] + rest2 * g * g;
        float direction = correct * m / (sqrtf(v) * inverse + epsilon) + decay * u.values[i];
        u.first_moment[i] = m;
        u.second_moment[i] = v;
        u.gradients[i] = direction;
        of_values += (double)u.values[i] * (double)u.values[i];
        of_directions += (double)direction * (double)direction;
    }
    of_values = block_sum(of_values, warps);
    of_directions = block_sum(of_directions, warps);
    if (threadIdx.x == 0) {
        squares[2 * (size_t)blockIdx.x] = of_values;
        squares[2 * (size_t)blockIdx.x + 1] = of_directions;
    }
}

static __global__ void step_lamb(struct lamb o, const double *squares)
{
    struct update u = o.update;
    struct span span;
    if (is_held(u.guard) || !find_span(&u, &span)) /* find_directions has cleared the gradients of a skipped step */
        return;
    double of_values = 0, of_directions = 0;
    for (size_t piece = span.segment * PIECES; piece < (span.segment + 1) * PIECES; piece++) {
        of_values += squares[2 * piece];
        of_directions += squares[2 * piece + 1];
    }
    double ratio = of_values == 0 || of_directions == 0 ? 1 : sqrt(of_values) / sqrt(of_directions);
    float scale = (float)((double)u.state->learning_rate * ratio);
    for (size_t i = span.first; i < span.last; i += span.stride) {
        u.values[i] = u.values[i] - scale * u.gradients[i];
        u.gradients[i] = 0;
    }
}

status cuda_lamb(struct backend *backend, const struct lamb *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    unsigned int blocks = (unsigned int)o->update.segments * PIECES;
    struct arena_mark mark = arena_mark(&cuda->scratch);
    void *squares;
    if (o->update.segments == 0)
        return OK;
    TRY(cuda_scratch(cuda, 2 * blocks * sizeof(double), &squares, error));
    CUDA_LAUNCH(cuda, count_steps, blocks_for(o->update.segments, BLOCK), BLOCK, 0, o->update);
    CUDA_LAUNCH(cuda, find_directions, blocks, BLOCK, 0, *o, (double *)squares);
    CUDA_LAUNCH(cuda, step_lamb, blocks, BLOCK, 0, *o, (const double *)squares);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "lamb", error);
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

status cuda_weighted_sum(struct backend *backend, const struct weighted_sum *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->n > 0)
        CUDA_LAUNCH(cuda, sum_weighted, blocks_for(o->n, BLOCK), BLOCK, 0, *o);
    return cuda_finish(cuda, "weighted_sum", error);
}

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

status cuda_average_experts(struct backend *backend, const struct average_experts *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->n > 0)
        CUDA_LAUNCH(cuda, average_values, blocks_for(o->n, BLOCK), BLOCK, 0, *o);
    return cuda_finish(cuda, "average_experts", error);
}

static __global__ void multiply_values(struct multiply o)
{
    size_t i = global_thread();
    if (i < o.n && (o.guard == NULL || o.guard->held == 0))
        o.out[i] = (o.accumulate ? o.out[i] : 0.0f) + o.a[i] * o.b[i];
}

status cuda_multiply(struct backend *backend, const struct multiply *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->n > 0)
        CUDA_LAUNCH(cuda, multiply_values, blocks_for(o->n, BLOCK), BLOCK, 0, *o);
    return cuda_finish(cuda, "multiply", error);
}

/* AdamW over many tensors in one launch, which steps must not count, and weighted sums. */
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

static __global__ void count_steps(size_t segments, const struct step_guard *guard, const int32_t *flag,
                                   const int32_t *flags, int32_t *steps, int32_t *changes)
{
    size_t s = global_thread();
    if (s >= segments || is_held(guard))
        return;
    bool updated = flags[flag[s]] != 0;
    steps[s] += updated;
    if (changes != NULL)
        changes[s] += updated;
}

struct adamw_rule {
    double beta1, beta2;
    float epsilon, weight_decay, l2;
    const struct step_guard *guard;
    bool clear_held;
};

static __global__ void step_segments(struct adamw_rule rule, const uint64_t *offsets, const int32_t *flag,
                                     const int32_t *flags, const int32_t *steps, const struct step_state *state,
                                     float *values, float *gradients, float *first, float *second)
{
    size_t s = blockIdx.x / PIECES, piece = blockIdx.x % PIECES;
    bool held = is_held(rule.guard);
    if (held ? !rule.clear_held : !flags[flag[s]])
        return;
    float beta1 = (float)rule.beta1, beta2 = (float)rule.beta2, rest1 = (float)(1.0 - rule.beta1),
          rest2 = (float)(1.0 - rule.beta2), rate = state->learning_rate;
    float step = rate / (float)(1.0 - pow(rule.beta1, (double)steps[s])),
          inverse = 1.0f / (float)sqrt(1.0 - pow(rule.beta2, (double)steps[s])), decay = rate * rule.weight_decay;
    for (size_t i = offsets[s] + piece * blockDim.x + threadIdx.x; i < offsets[s + 1]; i += PIECES * blockDim.x) {
        if (held) {
            gradients[i] = 0;
            continue;
        }
        float g = gradients[i] + rule.l2 * values[i];
        float m = beta1 * first[i] + rest1 * g;
        float v = beta2 * second[i] + rest2 * g * g;
        first[i] = m;
        second[i] = v;
        values[i] = values[i] - decay * values[i] - step * m / (sqrtf(v) * inverse + rule.epsilon);
        gradients[i] = 0;
    }
}

status cuda_adamw(struct backend *backend, const struct adamw *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->segments == 0)
        return OK;
    struct adamw_rule rule = {o->beta1,     o->beta2, (float)o->epsilon, (float)o->weight_decay,
                              (float)o->l2, o->guard, o->clear_held};
    CUDA_LAUNCH(cuda, count_steps, blocks_for(o->segments, BLOCK), BLOCK, 0, o->segments, o->guard, o->flag, o->flags,
                o->steps, o->changes);
    CUDA_LAUNCH(cuda, step_segments, (unsigned int)o->segments * PIECES, BLOCK, 0, rule, o->offsets, o->flag, o->flags,
                (const int32_t *)o->steps, o->state, o->values, o->gradients, o->first_moment, o->second_moment);
    return cuda_finish(cuda, "adamw", error);
}

static __global__ void sum_weighted(struct weighted_sum o)
{
    size_t i = global_thread();
    if (i >= o.n)
        return;
    double total = 0;
    for (size_t k = 0; k < o.count; k++)
        total += (double)o.weights[k] * (double)((const float *)o.inputs[k])[i];
    ((float *)o.out)[i] = (float)total;
}

status cuda_weighted_sum(struct backend *backend, const struct weighted_sum *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->n > 0)
        CUDA_LAUNCH(cuda, sum_weighted, blocks_for(o->n, BLOCK), BLOCK, 0, *o);
    return cuda_finish(cuda, "weighted_sum", error);
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

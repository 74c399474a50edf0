/* Prefixes with a gate per token (struct gated_prefix). A warp has one head of one row, a lane every 32nd of its columns; every lane
 * computes the few gates for itself. */
#include "models/cuda/kernel.cuh"
#include "models/gated_prefix.h"

enum { GROUPS = BLOCK / WARP };

static __global__ void attend_with_gates(struct gated_prefix o)
{
    const struct gated_prefix_operands *p = &o.prefix;
    size_t row = global_warp() / p->heads, head = global_warp() % p->heads, per_sample = gate_rows(p);
    struct gate gate;
    if (row >= p->batch * per_sample)
        return;
    if (o.seen != NULL && row % per_sample == 0)
        for (size_t j = lane(); j < p->length; j += WARP) {
            size_t at = head * p->length + j;
            o.seen[row / per_sample * p->heads * p->length + at] = gate_score(p, row, at);
        }
    if (!gate_find(p, row, head, &gate))
        return;
    for (size_t u = lane(); u < gate.columns; u += WARP) {
        size_t at = row * p->width + gate.column + u;
        float sum = gate.norm > 1 ? p->scale * (gate.norm - 1) * p->residual[at] : 0.0f;
        for (size_t j = 0; j < p->length; j++)
            sum += gate.share[j] * p->values[j * p->width + gate.column + u];
        set_value(o.out, p->type, at, value_at(o.out, p->type, at) + gate.weight * sum);
    }
}

/* A head that a row does not have: its scores and, where the row has none at all, its part of the residual. */
static __device__ inline void clear_head(const struct gated_prefix_backward *o, size_t row, size_t head, float *shares)
{
    const struct gated_prefix_operands *p = &o->prefix;
    size_t at = (row * p->heads + head) * p->length, columns = p->width / p->heads;
    for (size_t j = lane(); j < p->length; j += WARP)
        o->dscores[at + j] = shares[at + j] = 0;
    for (size_t u = lane(); p->router[row / gate_rows(p)] < 0 && u < columns; u += WARP)
        o->dresidual[row * p->width + head * columns + u] = 0;
}

/* shares [B · R, heads · n] = weight · share */
static __global__ void gate_gradients(struct gated_prefix_backward o, float *shares)
{
    const struct gated_prefix_operands *p = &o.prefix;
    size_t row = global_warp() / p->heads, head = global_warp() % p->heads;
    struct gate gate;
    float products[PREFIX_LENGTH], dscores[PREFIX_LENGTH], residual = 0;
    if (row >= p->batch * gate_rows(p))
        return;
    if (!gate_find(p, row, head, &gate)) {
        clear_head(&o, row, head, shares);
        return;
    }
    size_t first = row * p->width + gate.column, scores = row * p->heads * p->length + gate.first;
    for (size_t j = 0; j < p->length; j++) {
        float sum = 0;
        for (size_t u = lane(); u < gate.columns; u += WARP)
            sum += value_at(o.dout, p->type, first + u) * p->values[j * p->width + gate.column + u];
        products[j] = warp_sum(sum);
    }
    for (size_t u = lane(); u < gate.columns; u += WARP) {
        float dout = value_at(o.dout, p->type, first + u);
        residual += dout * p->residual[first + u];
        o.dresidual[first + u] = gate.weight * p->scale * (gate.norm - 1) * dout;
    }
    gate_slopes(p, &gate, products, warp_sum(residual), dscores);
    for (size_t j = lane(); j < p->length; j += WARP) {
        o.dscores[scores + j] = dscores[j];
        shares[scores + j] = gate.weight * gate.share[j];
    }
}

/* A block has one value's columns u … u + 31; its groups share out the rows, always in the same order. */
static __global__ void gate_value_gradients(struct gated_prefix_backward o, const float *shares)
{
    __shared__ float sums[BLOCK];
    const struct gated_prefix_operands *p = &o.prefix;
    size_t j = blockIdx.x, u = blockIdx.y * WARP + threadIdx.x % WARP, rows = p->batch * gate_rows(p),
           heads = (size_t)p->used[0], head = u / (p->width / heads);
    float sum = 0;
    for (size_t row = threadIdx.x / WARP; u < p->width && row < rows; row += GROUPS)
        sum += shares[(row * p->heads + head) * p->length + j] * value_at(o.dout, p->type, row * p->width + u);
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= WARP || u >= p->width)
        return;
    for (size_t g = 1; g < GROUPS; g++)
        sum += sums[g * WARP + threadIdx.x];
    o.dvalues[j * p->width + u] += sum;
}

static __global__ void gate_bias_gradients(struct gated_prefix_backward o)
{
    const struct gated_prefix_operands *p = &o.prefix;
    size_t all = p->heads * p->length, position = global_thread() / all, k = global_thread() % all;
    float sum = 0;
    if (position >= p->positions)
        return;
    for (size_t row = 0; row < p->batch * gate_rows(p); row++)
        if (gate_position(p, row) == position)
            sum += o.dscores[row * all + k];
    o.dbias[position * all + k] += sum;
}

static unsigned int warps_of(const struct gated_prefix_operands *p)
{
    assert(p->length > 0 && p->length <= PREFIX_LENGTH && p->width % p->heads == 0);
    return blocks_for(p->batch * gate_rows(p) * p->heads, BLOCK / WARP);
}

status cuda_gated_prefix(struct cuda *cuda, const struct gated_prefix *o, struct error *error)
{
    if (warps_of(&o->prefix) > 0)
        CUDA_LAUNCH(cuda, attend_with_gates, warps_of(&o->prefix), BLOCK, 0, *o);
    return OK;
}

status cuda_gated_prefix_backward(struct cuda *cuda, const struct gated_prefix_backward *o, struct error *error)
{
    const struct gated_prefix_operands *p = &o->prefix;
    size_t all = p->heads * p->length, n = p->batch * gate_rows(p) * all;
    void *shares;
    TRY(cuda_scratch(cuda, n * sizeof(float), &shares, error));
    if (n > 0) {
        CUDA_LAUNCH(cuda, gate_gradients, warps_of(p), BLOCK, 0, *o, (float *)shares);
        CUDA_LAUNCH(cuda, gate_value_gradients,
                    dim3((unsigned int)p->length, (unsigned int)((p->width + WARP - 1) / WARP)), BLOCK, 0, *o,
                    (const float *)shares);
        CUDA_LAUNCH(cuda, gate_bias_gradients, blocks_for(p->positions * all, BLOCK), BLOCK, 0, *o);
    }
    return OK;
}

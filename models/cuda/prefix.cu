/* Attention over learned keys and values beside a sample's own (struct prefix_attention). A warp has one head of one query, a
 * lane every 32nd of its columns; the few scores are computed again where they are needed, so none is stored. */
#include "models/cuda/kernel.cuh"

enum { COLUMNS = 128, OWN = COLUMNS / WARP };

struct prefix {
    size_t batch, positions, queries, width, heads, columns, length;
    enum tensor_type type;
    const int32_t *rows, *router;
    const float *weights, *values;
    const void *qkv, *dout;
    void *out, *dqkv;
    float *dvalues, *value_weights, *score_slopes; /* the last two [B · queries, heads, n] */
};

/* One head of one query, its columns shared out over the warp. */
struct query {
    size_t index, head, row; /* row: where the head begins in qkv */
    size_t result;           /* and in out */
    const float *key, *value;
    float scale, weight;
    float own[OWN];
};

static __device__ inline bool find_query(const struct prefix *p, size_t number, struct query *q)
{
    q->index = number / p->heads;
    q->head = number % p->heads;
    size_t sample = q->index / p->queries;
    if (sample >= p->batch || p->router[sample] < 0)
        return false;
    size_t row = p->rows != NULL ? (size_t)p->rows[q->index] : q->index;
    q->row = row * 3 * p->width + q->head * p->columns;
    q->result = q->index * p->width + q->head * p->columns;
    q->key = p->values + (size_t)p->router[sample] * 2 * p->length * p->width + q->head * p->columns;
    q->value = q->key + p->length * p->width;
    q->scale = 1.0f / sqrtf((float)p->columns);
    q->weight = p->weights != NULL ? p->weights[sample] : 1.0f;
    for (size_t i = 0, u = lane(); i < OWN; i++, u += WARP)
        q->own[i] = u < p->columns ? value_at(p->qkv, p->type, q->row + u) : 0.0f;
    return true;
}

static __device__ inline float dot_of(const struct prefix *p, const float own[OWN], const float *row)
{
    float sum = 0;
    for (size_t i = 0, u = lane(); i < OWN; i++, u += WARP)
        if (u < p->columns)
            sum += own[i] * row[u];
    return warp_sum(sum);
}

static __global__ void attend_to_prefix(struct prefix p)
{
    struct query q;
    float most = -INFINITY, total = 0, sum[OWN] = {0};
    if (!find_query(&p, global_warp(), &q))
        return;
    for (size_t j = 0; j < p.length; j++) {
        float score = q.scale * dot_of(&p, q.own, q.key + j * p.width), next = fmaxf(most, score),
              before = expf(most - next), now = expf(score - next);
        total = total * before + now;
        for (size_t i = 0, u = lane(); i < OWN; i++, u += WARP)
            if (u < p.columns)
                sum[i] = sum[i] * before + now * q.value[j * p.width + u];
        most = next;
    }
    for (size_t i = 0, u = lane(); i < OWN; i++, u += WARP)
        if (u < p.columns)
            set_value(p.out, p.type, q.result + u, value_at(p.out, p.type, q.result + u) + q.weight * sum[i] / total);
}

/* ds = scale · p ⊙ (dp − Σ p dp), dp = weight · V dout; dq += Σ_j ds_j K_j */
static __global__ void prefix_slopes(struct prefix p)
{
    struct query q;
    float most = -INFINITY, total = 0, mean = 0, dout[OWN], sum[OWN] = {0};
    if (!find_query(&p, global_warp(), &q))
        return;
    for (size_t i = 0, u = lane(); i < OWN; i++, u += WARP)
        dout[i] = u < p.columns ? q.weight * value_at(p.dout, p.type, q.result + u) : 0.0f;
    for (size_t j = 0; j < p.length; j++) {
        float score = q.scale * dot_of(&p, q.own, q.key + j * p.width), next = fmaxf(most, score),
              before = expf(most - next), now = expf(score - next);
        total = total * before + now;
        mean = mean * before + now * dot_of(&p, dout, q.value + j * p.width);
        most = next;
    }
    for (size_t j = 0; j < p.length; j++) {
        size_t at = (q.index * p.heads + q.head) * p.length + j;
        float share = expf(q.scale * dot_of(&p, q.own, q.key + j * p.width) - most) / total,
              slope = q.scale * share * (dot_of(&p, dout, q.value + j * p.width) - mean / total);
        for (size_t i = 0, u = lane(); i < OWN; i++, u += WARP)
            if (u < p.columns)
                sum[i] += slope * q.key[j * p.width + u];
        if (lane() == 0) {
            p.value_weights[at] = q.weight * share;
            p.score_slopes[at] = slope;
        }
    }
    for (size_t i = 0, u = lane(); i < OWN; i++, u += WARP)
        if (u < p.columns)
            set_value(p.dqkv, p.type, q.row + u, value_at(p.dqkv, p.type, q.row + u) + sum[i]);
}

/* The key and the value of one number and head: threads in groups of `lanes`, one a column; a group has every groups-th query of
 * a sample, and the groups are added up in order. */
static __global__ void prefix_gradients(struct prefix p, unsigned int lanes)
{
    __shared__ float keys[BLOCK], values[BLOCK];
    size_t head = blockIdx.x / p.length, j = blockIdx.x % p.length, u = threadIdx.x % lanes,
           group = threadIdx.x / lanes, groups = BLOCK / lanes;
    float key = 0, value = 0;
    for (size_t sample = 0; u < p.columns && group < groups && sample < p.batch; sample++) {
        if (p.router[sample] != (int32_t)blockIdx.y)
            continue;
        for (size_t r = group; r < p.queries; r += groups) {
            size_t index = sample * p.queries + r, at = (index * p.heads + head) * p.length + j,
                   row = p.rows != NULL ? (size_t)p.rows[index] : index;
            key += p.score_slopes[at] * value_at(p.qkv, p.type, row * 3 * p.width + head * p.columns + u);
            value += p.value_weights[at] * value_at(p.dout, p.type, index * p.width + head * p.columns + u);
        }
    }
    keys[threadIdx.x] = key;
    values[threadIdx.x] = value;
    __syncthreads();
    if (group > 0 || u >= p.columns)
        return;
    for (size_t g = 1; g < groups; g++) {
        key += keys[g * lanes + u];
        value += values[g * lanes + u];
    }
    float *dkey = p.dvalues + (blockIdx.y * 2 * p.length + j) * p.width + head * p.columns + u;
    dkey[0] += key;
    dkey[p.length * p.width] += value;
}

static status prefix_of(const struct prefix_operands *o, struct prefix *p, struct error *error)
{
    *p = {o->batch,  o->positions, o->rows != NULL ? o->rows_per_sample : o->positions,
          o->width,  o->heads,     o->width / o->heads,
          o->length, o->type,      o->rows,
          o->router, o->weights,   o->values,
          o->qkv,    NULL,         NULL,
          NULL,      NULL,         NULL,
          NULL};
    assert(o->length > 0 && o->length <= PREFIX_LENGTH);
    if (p->columns * p->heads == p->width && p->columns <= COLUMNS)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "cuda: prefixes with %zu heads and a width of %zu are not supported; expected heads of at most %d "
                     "columns",
                     o->heads, o->width, COLUMNS);
}

static unsigned int warps_of(const struct prefix *p)
{
    return blocks_for(p->batch * p->queries * p->heads, BLOCK / WARP);
}

status cuda_prefix_attention(struct cuda *cuda, const struct prefix_attention *o, struct error *error)
{
    struct prefix p;
    TRY(prefix_of(&o->prefix, &p, error));
    p.out = o->out;
    if (warps_of(&p) > 0)
        CUDA_LAUNCH(cuda, attend_to_prefix, warps_of(&p), BLOCK, 0, p);
    return OK;
}

status cuda_prefix_attention_backward(struct cuda *cuda, const struct prefix_attention_backward *o, struct error *error)
{
    struct prefix p;
    void *memory;
    TRY(prefix_of(&o->prefix, &p, error));
    size_t n = p.batch * p.queries * p.heads * p.length;
    TRY(cuda_scratch(cuda, 2 * n * sizeof(float), &memory, error));
    p.dout = o->dout;
    p.dqkv = o->dqkv;
    p.dvalues = o->dvalues;
    p.value_weights = (float *)memory;
    p.score_slopes = p.value_weights + n;
    if (n > 0)
        CUDA_LAUNCH(cuda, prefix_slopes, warps_of(&p), BLOCK, 0, p);
    if (n > 0 && o->dvalues != NULL)
        CUDA_LAUNCH(cuda, prefix_gradients, dim3((unsigned int)(p.heads * p.length), (unsigned int)o->routers), BLOCK,
                    0, p, (unsigned int)((p.columns + WARP - 1) / WARP * WARP));
    return OK;
}

/* Attention over tiles of 32 queries and 32 keys in shared memory, with the softmax carried along (Dao et al.,
 * "FlashAttention", 2022, Algorithm 1): no [L, L] matrix is stored. A block has the tile of one head of one sample;
 * eight neighbouring lanes have a row of it. */
#include "models/cuda/attention.cuh"

enum { TILE = 32, LANES = 8, KEYS = TILE / LANES, VALUES = HEAD / LANES, PADDED = HEAD + 1 };

struct tile {
    float value[TILE][PADDED];
};

static __device__ inline const float *part_of(const struct heads *h, size_t head, size_t part)
{
    return (const float *)h->qkv + (head / h->count * h->positions * 3 + part) * h->width + head % h->count * HEAD;
}

/* Rows first … first + 31 of a [L, 64] slice with a stride; rows past the end are zero. */
static __device__ void load_tile(struct tile *tile, const float *from, size_t stride, size_t first, size_t positions)
{
    for (size_t i = threadIdx.x; i < TILE * HEAD; i += blockDim.x) {
        size_t row = i / HEAD, column = i % HEAD;
        tile->value[row][column] = first + row < positions ? from[(first + row) * stride + column] : 0.0f;
    }
}

static __device__ inline float dot_rows(const float *a, const float *b)
{
    float total = 0;
    for (int i = 0; i < HEAD; i++)
        total += a[i] * b[i];
    return total;
}

static __device__ inline size_t keys_of_tile(const struct heads *h, size_t first_query)
{
    size_t last = first_query + TILE;
    return h->causal && last < h->positions ? last : h->positions;
}

/* One tile of queries over all keys: out, and in training what the backward pass needs of each row. */
static __global__ void attend(struct heads h)
{
    __shared__ struct tile query, key, value;
    __shared__ float p[TILE][TILE + 1];
    size_t first = (size_t)blockIdx.y * TILE, head = blockIdx.x, row = threadIdx.x / LANES, at = threadIdx.x % LANES;
    float most = -INFINITY, total = 0, result[VALUES] = {};
    load_tile(&query, part_of(&h, head, 0), 3 * h.width, first, h.positions);
    for (size_t begin = 0; begin < keys_of_tile(&h, first); begin += TILE) {
        __syncthreads();
        load_tile(&key, part_of(&h, head, 1), 3 * h.width, begin, h.positions);
        load_tile(&value, part_of(&h, head, 2), 3 * h.width, begin, h.positions);
        __syncthreads();
        float score[KEYS], highest = most;
        for (int k = 0; k < KEYS; k++) {
            size_t j = at + (size_t)k * LANES;
            score[k] = sees(&h, first + row, begin + j) ? SCALE * dot_rows(query.value[row], key.value[j]) : -INFINITY;
            highest = fmaxf(highest, score[k]);
        }
        highest = warp_max(highest, LANES);
        float shrink = highest > -INFINITY ? expf(most - highest) : 1.0f, sum = 0;
        for (int k = 0; k < KEYS; k++) {
            float weight = score[k] == -INFINITY ? 0.0f : expf(score[k] - highest);
            p[row][at + (size_t)k * LANES] = weight;
            sum += weight;
        }
        total = total * shrink + warp_sum(sum, LANES);
        most = highest;
        __syncthreads();
        for (int v = 0; v < VALUES; v++) {
            float added = 0;
            for (int j = 0; j < TILE; j++)
                added += p[row][j] * value.value[j][at + (size_t)v * LANES];
            result[v] = result[v] * shrink + added;
        }
    }
    bool here = first + row < h.positions;
    float along = 0, inverse = total > 0 ? 1.0f / total : 0.0f;
    size_t to = (head / h.count * h.positions + first + row) * h.width + head % h.count * HEAD;
    for (int v = 0; v < VALUES; v++) {
        float output = result[v] * inverse;
        if (here && h.out != NULL)
            ((float *)h.out)[to + at + (size_t)v * LANES] = output;
        if (here && h.dout != NULL)
            along += output * ((const float *)h.dout)[to + at + (size_t)v * LANES];
    }
    along = warp_sum(along, LANES);
    if (here && h.log_sums != NULL && at == 0) {
        h.log_sums[head * h.positions + first + row] = most + logf(total);
        h.alongs[head * h.positions + first + row] = along;
    }
}

/* p_ij = exp(s_ij − log Σ) and ds_ij = p_ij (dp_ij − dout_i · out_i) / 8, of a query row and a key row */
static __device__ inline float slope_of_score(const struct heads *h, size_t head, size_t i, size_t j,
                                              const float *query, const float *key, const float *value,
                                              const float *dout, float *weight)
{
    *weight = 0;
    if (i >= h->positions || !sees(h, i, j))
        return 0;
    *weight = expf(SCALE * dot_rows(query, key) - h->log_sums[head * h->positions + i]);
    return *weight * (dot_rows(dout, value) - h->alongs[head * h->positions + i]) * SCALE;
}

/* dq_i = Σ_j ds_ij k_j, a tile of queries over all keys. Dynamic shared memory: query, key, value, dout */
static __global__ void query_gradients(struct heads h)
{
    DYNAMIC_SHARED(struct tile, tiles);
    struct tile *query = tiles, *key = tiles + 1, *value = tiles + 2, *dout = tiles + 3;
    __shared__ float ds[TILE][TILE + 1];
    size_t first = (size_t)blockIdx.y * TILE, head = blockIdx.x, row = threadIdx.x / LANES, at = threadIdx.x % LANES;
    size_t sample = head / h.count * h.positions * h.width, column = head % h.count * HEAD;
    float result[VALUES] = {}, weight;
    load_tile(query, part_of(&h, head, 0), 3 * h.width, first, h.positions);
    load_tile(dout, (const float *)h.dout + sample + column, h.width, first, h.positions);
    for (size_t begin = 0; begin < keys_of_tile(&h, first); begin += TILE) {
        __syncthreads();
        load_tile(key, part_of(&h, head, 1), 3 * h.width, begin, h.positions);
        load_tile(value, part_of(&h, head, 2), 3 * h.width, begin, h.positions);
        __syncthreads();
        for (int k = 0; k < KEYS; k++) {
            size_t j = at + (size_t)k * LANES;
            ds[row][j] = slope_of_score(&h, head, first + row, begin + j, query->value[row], key->value[j],
                                        value->value[j], dout->value[row], &weight);
        }
        __syncthreads();
        for (int v = 0; v < VALUES; v++)
            for (int j = 0; j < TILE; j++)
                result[v] += ds[row][j] * key->value[j][at + (size_t)v * LANES];
    }
    if (first + row < h.positions)
        for (int v = 0; v < VALUES; v++)
            ((float *)h.dqkv)[3 * sample + (first + row) * 3 * h.width + column + at + (size_t)v * LANES] = result[v];
}

/* dk_j = Σ_i ds_ij q_i and dv_j = Σ_i p_ij dout_i, a tile of keys over all queries. Shared memory as above. */
static __global__ void key_gradients(struct heads h)
{
    DYNAMIC_SHARED(struct tile, tiles);
    struct tile *query = tiles, *key = tiles + 1, *value = tiles + 2, *dout = tiles + 3;
    __shared__ float ds[TILE][TILE + 1], p[TILE][TILE + 1];
    size_t first = (size_t)blockIdx.y * TILE, head = blockIdx.x, row = threadIdx.x / LANES, at = threadIdx.x % LANES;
    size_t sample = head / h.count * h.positions * h.width, column = head % h.count * HEAD;
    float dkey[VALUES] = {}, dvalue[VALUES] = {}, weight;
    load_tile(key, part_of(&h, head, 1), 3 * h.width, first, h.positions);
    load_tile(value, part_of(&h, head, 2), 3 * h.width, first, h.positions);
    for (size_t begin = h.causal ? first : 0; begin < h.positions; begin += TILE) {
        __syncthreads();
        load_tile(query, part_of(&h, head, 0), 3 * h.width, begin, h.positions);
        load_tile(dout, (const float *)h.dout + sample + column, h.width, begin, h.positions);
        __syncthreads();
        for (int k = 0; k < KEYS; k++) {
            size_t i = at + (size_t)k * LANES;
            ds[row][i] = slope_of_score(&h, head, begin + i, first + row, query->value[i], key->value[row],
                                        value->value[row], dout->value[i], &weight);
            p[row][i] = weight;
        }
        __syncthreads();
        for (int v = 0; v < VALUES; v++)
            for (int i = 0; i < TILE; i++) {
                dkey[v] += ds[row][i] * query->value[i][at + (size_t)v * LANES];
                dvalue[v] += p[row][i] * dout->value[i][at + (size_t)v * LANES];
            }
    }
    if (first + row >= h.positions)
        return;
    float *to = (float *)h.dqkv + 3 * sample + (first + row) * 3 * h.width + column;
    for (int v = 0; v < VALUES; v++) {
        to[h.width + at + (size_t)v * LANES] = dkey[v];
        to[2 * h.width + at + (size_t)v * LANES] = dvalue[v];
    }
}

static dim3 tiles_of(const struct heads *h, size_t batch)
{
    return dim3((unsigned int)(batch * h->count), blocks_for(h->positions, TILE));
}

status cuda_attention(struct backend *backend, const struct attention *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct heads h = {};
    h.positions = o->positions;
    h.width = o->width;
    h.count = o->width / HEAD;
    h.causal = o->causal;
    h.qkv = o->qkv;
    h.out = o->out;
    if (o->batch * o->positions == 0)
        return OK;
    if (o->type == TENSOR_BF16)
        cuda_attend_bf16(cuda, &h, o->batch);
    else
        CUDA_LAUNCH(cuda, attend, tiles_of(&h, o->batch), TILE * LANES, 0, h);
    return cuda_finish(cuda, "attention", error);
}

status cuda_attention_backward(struct backend *backend, const struct attention_backward *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    struct heads h = {};
    h.positions = o->positions;
    h.width = o->width;
    h.count = o->width / HEAD;
    h.causal = o->causal;
    h.qkv = o->qkv;
    h.dout = o->dout;
    h.dqkv = o->dqkv;
    size_t rows = o->batch * h.count * o->positions;
    void *memory;
    if (rows == 0)
        return OK;
    TRY(cuda_scratch(cuda, 2 * rows * sizeof(float), &memory, error));
    h.log_sums = (float *)memory;
    h.alongs = h.log_sums + rows;
    if (o->type == TENSOR_BF16) {
        cuda_attend_bf16(cuda, &h, o->batch);
        cuda_attention_gradients_bf16(cuda, &h, o->batch);
    } else {
        CUDA_LAUNCH(cuda, attend, tiles_of(&h, o->batch), TILE * LANES, 0, h);
        CUDA_LAUNCH(cuda, query_gradients, tiles_of(&h, o->batch), TILE * LANES, 4 * sizeof(struct tile), h);
        CUDA_LAUNCH(cuda, key_gradients, tiles_of(&h, o->batch), TILE * LANES, 4 * sizeof(struct tile), h);
    }
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "attention_backward", error);
}

/* Attention over tiles of 32 queries and 32 keys in shared memory, with the softmax carried along (Dao et al.,
 * "FlashAttention", 2022, Algorithm 1): no [L, L] matrix is stored. A block has the tile of one head of one sample;
 * eight neighbouring lanes have a row of it. */
#include "models/cuda/attention.cuh"

enum { TILE = 32, LANES = 8, KEYS = TILE / LANES };

/* ROOM, here and below: capacity in columns. Padded against bank conflicts. */
template <int ROOM> struct tile {
    float value[TILE][ROOM + 1];
};

/* The tiles of a block, in the shared memory that its launch gave it. */
template <int ROOM> static __device__ inline struct tile<ROOM> *shared_tiles() {
    DYNAMIC_SHARED(float, memory);
    return (struct tile<ROOM> *)memory;
}

static __device__ inline const float *
part_of(const struct heads *h, size_t head, size_t part)
{
    return (const float *)h->qkv + (head / h->count * h->positions * 3 + part) * h->width +
           head % h->count * h->columns;
}

/* Rows first … first + 31 of a [L, columns] slice with a stride; rows past the end are zero. */
template <int ROOM>
static __device__ void load_tile(struct tile<ROOM> *tile, const struct heads *h, const float *from, size_t stride,
                                 size_t first)
{
    for (size_t i = threadIdx.x; i < TILE * ROOM; i += blockDim.x) {
        size_t row = i / ROOM, column = i % ROOM;
        bool there = first + row < h->positions && column < h->columns;
        tile->value[row][column] = there ? from[(first + row) * stride + column] : 0.0f;
    }
}

template <int ROOM> static __device__ inline float dot_rows(const float *a, const float *b)
{
    float total = 0;
    for (int i = 0; i < ROOM; i++)
        total += a[i] * b[i];
    return total;
}

/* Whether a lane's value number v is of a column that the head has. */
template <int ROOM> static __device__ inline bool is_column(const struct heads *h, int v)
{
    return ROOM == NARROW ? true : (size_t)v * LANES < h->columns;
}

static __device__ inline size_t keys_of_tile(const struct heads *h, size_t first_query)
{
    size_t last = first_query + TILE;
    return h->causal && last < h->positions ? last : h->positions;
}

/* One tile of queries over all keys: out, and in training what the backward pass needs of each row. */
template <int ROOM> static __global__ void attend(struct heads h)
{
    struct tile<ROOM> *query = shared_tiles<ROOM>(), *key = query + 1, *value = query + 2;
    __shared__ float p[TILE][TILE + 1];
    size_t first = (size_t)blockIdx.y * TILE, head = blockIdx.x, row = threadIdx.x / LANES, at = threadIdx.x % LANES;
    float m = -INFINITY, l = 0, result[ROOM / LANES] = {};
    load_tile<ROOM>(query, &h, part_of(&h, head, 0), 3 * h.width, first);
    for (size_t begin = 0; begin < keys_of_tile(&h, first); begin += TILE) {
        __syncthreads();
        load_tile<ROOM>(key, &h, part_of(&h, head, 1), 3 * h.width, begin);
        load_tile<ROOM>(value, &h, part_of(&h, head, 2), 3 * h.width, begin);
        __syncthreads();
        float score[KEYS], m_new = m;
        for (int k = 0; k < KEYS; k++) {
            size_t j = at + (size_t)k * LANES;
            score[k] = sees(&h, first + row, begin + j) ? h.scale * dot_rows<ROOM>(query->value[row], key->value[j])
                                                        : -INFINITY;
            m_new = fmaxf(m_new, score[k]);
        }
        m_new = warp_max(m_new, LANES);
        float rescale = m_new > -INFINITY ? expf(m - m_new) : 1.0f, sum = 0;
        for (int k = 0; k < KEYS; k++) {
            float weight = score[k] == -INFINITY ? 0.0f : expf(score[k] - m_new);
            p[row][at + (size_t)k * LANES] = weight;
            sum += weight;
        }
        l = l * rescale + warp_sum(sum, LANES);
        m = m_new;
        __syncthreads();
        for (int v = 0; v < ROOM / LANES; v++) {
            float added = 0;
            for (int j = 0; j < TILE; j++)
                added += p[row][j] * value->value[j][at + (size_t)v * LANES];
            result[v] = result[v] * rescale + added;
        }
    }
    bool here = first + row < h.positions;
    float delta = 0, inverse = l > 0 ? 1.0f / l : 0.0f;
    size_t to = (head / h.count * h.positions + first + row) * h.width + head % h.count * h.columns;
    for (int v = 0; v < ROOM / LANES; v++) {
        float output = result[v] * inverse;
        bool there = here && is_column<ROOM>(&h, v);
        if (there && h.out != NULL)
            ((float *)h.out)[to + at + (size_t)v * LANES] = output;
        if (there && h.dout != NULL)
            delta += output * ((const float *)h.dout)[to + at + (size_t)v * LANES];
    }
    delta = warp_sum(delta, LANES);
    if (here && h.lse != NULL && at == 0) {
        h.lse[head * h.positions + first + row] = m + logf(l);
        h.delta[head * h.positions + first + row] = delta;
    }
}

/* p_ij = exp(s_ij − lse_i) and ds_ij = p_ij (dp_ij − delta_i) / √columns, of a query row and a key row */
template <int ROOM>
static __device__ inline float slope_of_score(const struct heads *h, size_t head, size_t i, size_t j,
                                              const float *query, const float *key, const float *value,
                                              const float *dout, float *weight)
{
    *weight = 0;
    if (i >= h->positions || !sees(h, i, j))
        return 0;
    *weight = expf(h->scale * dot_rows<ROOM>(query, key) - h->lse[head * h->positions + i]);
    return *weight * (dot_rows<ROOM>(dout, value) - h->delta[head * h->positions + i]) * h->scale;
}

/* dq_i = Σ_j ds_ij k_j, a tile of queries over all keys. */
template <int ROOM> static __global__ void query_gradients(struct heads h)
{
    struct tile<ROOM> *query = shared_tiles<ROOM>(), *key = query + 1, *value = query + 2, *dout = query + 3;
    __shared__ float ds[TILE][TILE + 1];
    size_t first = (size_t)blockIdx.y * TILE, head = blockIdx.x, row = threadIdx.x / LANES, at = threadIdx.x % LANES;
    size_t sample = head / h.count * h.positions * h.width, column = head % h.count * h.columns;
    float result[ROOM / LANES] = {}, weight;
    load_tile<ROOM>(query, &h, part_of(&h, head, 0), 3 * h.width, first);
    load_tile<ROOM>(dout, &h, (const float *)h.dout + sample + column, h.width, first);
    for (size_t begin = 0; begin < keys_of_tile(&h, first); begin += TILE) {
        __syncthreads();
        load_tile<ROOM>(key, &h, part_of(&h, head, 1), 3 * h.width, begin);
        load_tile<ROOM>(value, &h, part_of(&h, head, 2), 3 * h.width, begin);
        __syncthreads();
        for (int k = 0; k < KEYS; k++) {
            size_t j = at + (size_t)k * LANES;
            ds[row][j] = slope_of_score<ROOM>(&h, head, first + row, begin + j, query->value[row], key->value[j],
                                              value->value[j], dout->value[row], &weight);
        }
        __syncthreads();
        for (int v = 0; v < ROOM / LANES; v++)
            for (int j = 0; j < TILE; j++)
                result[v] += ds[row][j] * key->value[j][at + (size_t)v * LANES];
    }
    float *to = (float *)h.dqkv + 3 * sample + (first + row) * 3 * h.width + column;
    if (first + row < h.positions)
        for (int v = 0; v < ROOM / LANES; v++)
            if (is_column<ROOM>(&h, v))
                to[at + (size_t)v * LANES] = result[v];
}

/* dk_j = Σ_i ds_ij q_i and dv_j = Σ_i p_ij dout_i, a tile of keys over all queries. */
template <int ROOM> static __global__ void key_gradients(struct heads h)
{
    struct tile<ROOM> *query = shared_tiles<ROOM>(), *key = query + 1, *value = query + 2, *dout = query + 3;
    __shared__ float ds[TILE][TILE + 1], p[TILE][TILE + 1];
    size_t first = (size_t)blockIdx.y * TILE, head = blockIdx.x, row = threadIdx.x / LANES, at = threadIdx.x % LANES;
    size_t sample = head / h.count * h.positions * h.width, column = head % h.count * h.columns;
    float dkey[ROOM / LANES] = {}, dvalue[ROOM / LANES] = {}, weight;
    load_tile<ROOM>(key, &h, part_of(&h, head, 1), 3 * h.width, first);
    load_tile<ROOM>(value, &h, part_of(&h, head, 2), 3 * h.width, first);
    for (size_t begin = h.causal ? first : 0; begin < h.positions; begin += TILE) {
        __syncthreads();
        load_tile<ROOM>(query, &h, part_of(&h, head, 0), 3 * h.width, begin);
        load_tile<ROOM>(dout, &h, (const float *)h.dout + sample + column, h.width, begin);
        __syncthreads();
        for (int k = 0; k < KEYS; k++) {
            size_t i = at + (size_t)k * LANES;
            ds[row][i] = slope_of_score<ROOM>(&h, head, begin + i, first + row, query->value[i], key->value[row],
                                              value->value[row], dout->value[i], &weight);
            p[row][i] = weight;
        }
        __syncthreads();
        for (int v = 0; v < ROOM / LANES; v++)
            for (int i = 0; i < TILE; i++) {
                dkey[v] += ds[row][i] * query->value[i][at + (size_t)v * LANES];
                dvalue[v] += p[row][i] * dout->value[i][at + (size_t)v * LANES];
            }
    }
    if (first + row >= h.positions)
        return;
    float *to = (float *)h.dqkv + 3 * sample + (first + row) * 3 * h.width + column;
    for (int v = 0; v < ROOM / LANES; v++)
        if (is_column<ROOM>(&h, v)) {
            to[h.width + at + (size_t)v * LANES] = dkey[v];
            to[2 * h.width + at + (size_t)v * LANES] = dvalue[v];
        }
}

template <int ROOM> static void attend_in(struct cuda *cuda, const struct heads *h, dim3 grid)
{
    CUDA_LAUNCH_LARGE(cuda, attend<ROOM>, grid, TILE * LANES, 3 * sizeof(struct tile<ROOM>), *h);
}

template <int ROOM> static void gradients_in(struct cuda *cuda, const struct heads *h, dim3 grid)
{
    CUDA_LAUNCH_LARGE(cuda, query_gradients<ROOM>, grid, TILE * LANES, 4 * sizeof(struct tile<ROOM>), *h);
    CUDA_LAUNCH_LARGE(cuda, key_gradients<ROOM>, grid, TILE * LANES, 4 * sizeof(struct tile<ROOM>), *h);
}

static dim3 tiles_of(const struct heads *h, size_t batch)
{
    return dim3((unsigned int)(batch * h->count), blocks_for(h->positions, TILE));
}

static void attend_f32(struct cuda *cuda, const struct heads *h, size_t batch)
{
    IN_ROOM(h->columns, attend_in, cuda, h, tiles_of(h, batch));
}

static void gradients_f32(struct cuda *cuda, const struct heads *h, size_t batch)
{
    IN_ROOM(h->columns, gradients_in, cuda, h, tiles_of(h, batch));
}

static status describe_heads(struct heads *h, size_t width, size_t count, struct error *error)
{
    size_t columns = width / count;
    if (columns * count != width || columns % 8 != 0 || columns < NARROW || columns > WIDE)
        return error_set(
            error, ERROR_ARGUMENT,
            "cuda: attention with %zu heads and a width of %zu is not supported; expected heads of %d to %d columns, a "
            "multiple of 8, or use the CPU (run.backend=cpu)",
            count, width, NARROW, WIDE);
    h->width = width;
    h->count = count;
    h->columns = columns;
    h->scale = 1.0f / sqrtf((float)columns);
    return OK;
}

status cuda_attention(struct backend *backend, const struct attention *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct heads h = {};
    TRY(describe_heads(&h, o->width, o->heads, error));
    h.positions = o->positions;
    h.causal = o->causal;
    h.qkv = o->qkv;
    h.out = o->out;
    if (o->batch * o->positions == 0)
        return OK;
    if (o->type == TENSOR_BF16)
        cuda_attend_bf16(cuda, &h, o->batch);
    else
        attend_f32(cuda, &h, o->batch);
    return cuda_finish(cuda, "attention", error);
}

status cuda_attention_backward(struct backend *backend, const struct attention_backward *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    struct heads h = {};
    TRY(describe_heads(&h, o->width, o->heads, error));
    h.positions = o->positions;
    h.causal = o->causal;
    h.qkv = o->qkv;
    h.dout = o->dout;
    h.dqkv = o->dqkv;
    size_t rows = o->batch * h.count * o->positions;
    void *memory;
    if (rows == 0)
        return OK;
    TRY(cuda_scratch(cuda, 2 * rows * sizeof(float), &memory, error));
    h.lse = (float *)memory;
    h.delta = h.lse + rows;
    if (o->type == TENSOR_BF16) {
        cuda_attend_bf16(cuda, &h, o->batch);
        cuda_attention_gradients_bf16(cuda, &h, o->batch);
    } else {
        attend_f32(cuda, &h, o->batch);
        gradients_f32(cuda, &h, o->batch);
    }
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "attention_backward", error);
}

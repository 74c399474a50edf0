/* Attention in f32 with the softmax carried along (Dao et al., "FlashAttention", 2022, Algorithm 1): no [L, L] matrix is
 * stored. Each thread computes a register block: 5 rows by 4 keys of the scores, 5 rows by ROOM / 16 columns of what is
 * added up over keys. 40 queries a block leave 1.5% of the rows of 197 tokens empty, 4% of those of 77.
 *
 * Four columns of a block of scores are 80 FMA per 9 vectors of 16 bytes: 0.56 FMA a byte. In a warp two lanes have each
 * vector in common, so 128 bytes and 128 FMA a clock need 0.5. With 64 columns `attend` takes 45,696 bytes and at most 128
 * registers: 4 blocks of 4 warps per multiprocessor with 228 KiB. `gradients` takes 67,936 bytes and at most 168
 * registers: 3 blocks. */
#include "models/cuda/attention.cuh"

#include <float.h>

/* Steps of a loop that are unrolled. All of them would cost registers and minutes of compilation. */
#ifdef __CUDACC__
#define PRAGMA(text) _Pragma(#text)
#define UNROLL(steps) PRAGMA(unroll steps)
#else
#define UNROLL(steps)
#endif

enum {
    THREADS = 128,
    LANES = 16, /* that share rows */
    GROUPS = THREADS / LANES,
    ROWS = 5, /* of a thread: its group's number + 0, 8, 16 … */
    QUERIES = GROUPS * ROWS,
    KEYS = 64, /* at most, of a tile */
    PAD = 4    /* vectors of 8 consecutive rows lie in different banks */
};

template <int N> struct alignas(N < 4 ? 4 * N : 16) floats {
    float value[N];
};

template <int N> static __device__ inline struct floats<N> &vector_at(float *at) {
    return *(struct floats<N> *)at;
}

template <int N>
static __device__ inline const struct floats<N> &vector_at(const float *at) {
    return *(const struct floats<N> *)at;
}

/* Where a thread's register blocks lie. Lanes that differ in bit 1 have the same keys and columns, those that differ in
 * bit 0 the same rows: a shared-memory access of 16 bytes is one of 8 only if one of these neighbours has the same place. */
static __device__ inline unsigned int
own_group()
{
    return threadIdx.x / WARP * 2 + lane() / 2 % 2;
}

static __device__ inline unsigned int own_lane()
{
    return lane() % 2 + lane() / 4 * 2;
}

static __device__ inline float group_sum(float x)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        if (step != 2)
            x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ inline float group_max(float x)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        if (step != 2)
            x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* Begins to copy `count` rows from the first one; rows past the end are zero. */
template <int ROOM>
static __device__ inline void load_tile(float *tile, unsigned int count, const struct heads *h,
                                        struct slice<float> from, unsigned int first)
{
    UNROLL(1) /* a copy holds no register, a second address would */
    for (unsigned int i = threadIdx.x; i < count * (ROOM / 4); i += THREADS) {
        unsigned int row = i / (ROOM / 4), column = i % (ROOM / 4) * 4;
        bool there = first + row < from.end && column < h->columns;
        cp_async<16>(tile + row * (ROOM + PAD) + column, there ? row_of(&from, first + row) + column : from.values,
                     there);
    }
}

/* Every fourth value of a tile that this thread has copied, before others read them; visit(place) */
template <int ROOM, typename Visit> static __device__ inline void visit_own(unsigned int count, Visit visit)
{
    UNROLL(1)
    for (unsigned int i = threadIdx.x; i < count * (ROOM / 4); i += THREADS)
        visit(i / (ROOM / 4) * (ROOM + PAD) + i % (ROOM / 4) * 4);
}

/* Values that are not finite become 0, and their keys NaN: a weight of 0 keeps them out of rows that do not see them, and
 * rows that do are NaN as a whole. */
template <int ROOM> static __device__ inline void move_infinite(float *key, float *value, unsigned int count)
{
    visit_own<ROOM>(count, [=](unsigned int at) {
        struct floats<4> own = vector_at<4>(value + at);
        for (int i = 0; i < 4; i++)
            if (!is_finite(own.value[i]))
                key[at] = NAN, value[at + i] = 0;
    });
}

/* Puts the largest number in place of infinity, so that 0 times it is 0. */
template <int ROOM> static __device__ inline void limit_tile(float *tile, unsigned int count)
{
    visit_own<ROOM>(count, [=](unsigned int at) {
        for (int i = 0; i < 4; i++)
            tile[at + i] = fminf(fmaxf(tile[at + i], -FLT_MAX), FLT_MAX);
    });
}

/* For what this thread has copied. */
static __device__ inline void wait_for_tiles()
{
    cp_async_commit();
    cp_async_wait<0>();
}

/* The thread's block of a bᵀ: its rows of a, and b's rows own_lane() + 0, 16, 32 … */
template <int ROOM, int C> static __device__ inline void dot_rows(float dots[ROWS][C], const float *a, const float *b)
{
    a += own_group() * (ROOM + PAD);
    b += own_lane() * (ROOM + PAD);
    UNROLL(1)
    for (int column = 0; column < ROOM; column += 4) {
        struct floats<4> x[ROWS], y[C];
        for (int r = 0; r < ROWS; r++)
            x[r] = vector_at<4>(a + r * GROUPS * (ROOM + PAD) + column);
        for (int c = 0; c < C; c++)
            y[c] = vector_at<4>(b + c * LANES * (ROOM + PAD) + column);
        for (int i = 0; i < 4; i++)
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < C; c++)
                    dots[r][c] += x[r].value[i] * y[c].value[i];
    }
}

/* Columns of a thread: own_lane() · 2 + 0, 1, 32, 33, 64 … */
template <int ROOM> static __device__ inline void load_columns(float own[ROOM / LANES], const float *row)
{
    for (int v = 0; v < ROOM / LANES; v += 2) {
        struct floats<2> pair = vector_at<2>(row + own_lane() * 2 + v * LANES);
        own[v] = pair.value[0];
        own[v + 1] = pair.value[1];
    }
}

/* Adds weights · x to the thread's block, its rows of the weights over the first N rows of x. */
template <int ROOM, int N, int LD>
static __device__ inline void add_rows(float to[ROWS][ROOM / LANES], const float *weights, const float *x)
{
    weights += own_group() * LD;
    UNROLL(1)
    for (int j = 0; j < N; j += 4) {
        struct floats<4> w[ROWS];
        for (int r = 0; r < ROWS; r++)
            w[r] = vector_at<4>(weights + r * GROUPS * LD + j);
        for (int i = 0; i < 4; i++) {
            float own[ROOM / LANES];
            load_columns<ROOM>(own, x + (j + i) * (ROOM + PAD));
            for (int r = 0; r < ROWS; r++)
                for (int v = 0; v < ROOM / LANES; v++)
                    to[r][v] += w[r].value[i] * own[v];
        }
    }
}

/* Adds weightsᵀ · x to the thread's block: K neighbouring columns of the weights, from own_group() · K, over all queries. */
template <int ROOM, int K>
static __device__ inline void add_columns(float to[K][ROOM / LANES], const float *weights, const float *x)
{
    UNROLL(2)
    for (int i = 0; i < QUERIES; i++) {
        struct floats<K> w = vector_at<K>(weights + i * (KEYS + PAD) + own_group() * K);
        float own[ROOM / LANES];
        load_columns<ROOM>(own, x + i * (ROOM + PAD));
        for (int k = 0; k < K; k++)
            for (int v = 0; v < ROOM / LANES; v++)
                to[k][v] += w.value[k] * own[v];
    }
}

/* What a thread knows of its queries after some of the keys. */
template <int ROOM> struct strip {
    float m[ROWS], l[ROWS], result[ROWS][ROOM / LANES];
};

/* The softmax of queries from `first` over 16 · C keys more, from `begin`. The weights take the keys' place. */
template <int ROOM, int C>
static __device__ inline void visit_keys(const struct heads *h, struct strip<ROOM> *s, const float *query, float *key,
                                         const float *value, unsigned int head, unsigned int first, unsigned int begin)
{
    float score[ROWS][C] = {};
    struct slice<float> queries = slice_of<float>(h, h->qkv, head, 0);
    dot_rows<ROOM, C>(score, query, key);
    __syncthreads();
    for (int r = 0; r < ROWS; r++) {
        unsigned int row = own_group() + (unsigned int)r * GROUPS, position = position_of(&queries, first + row);
        float m_new = s->m[r], sum = 0;
        for (int c = 0; c < C; c++) {
            bool seen = sees(h, position, begin + own_lane() + (unsigned int)c * LANES);
            score[r][c] = seen ? h->scale * score[r][c] : -INFINITY;
            m_new = fmaxf(m_new, score[r][c]);
        }
        m_new = group_max(m_new);
        float rescale = m_new > -INFINITY ? expf(s->m[r] - m_new) : 1.0f;
        for (int c = 0; c < C; c++) {
            float weight = score[r][c] == -INFINITY ? 0.0f : expf(score[r][c] - m_new);
            key[row * (ROOM + PAD) + own_lane() + (unsigned int)c * LANES] = weight;
            sum += weight;
        }
        s->l[r] = s->l[r] * rescale + group_sum(sum);
        s->m[r] = m_new;
        for (int v = 0; v < ROOM / LANES; v++)
            s->result[r][v] *= rescale;
    }
    __syncwarp(); /* a row's weights are its own warp's */
    add_rows<ROOM, C * LANES, ROOM + PAD>(s->result, key, value);
}

/* out, and in training lse, of the thread's query number r. */
template <int ROOM>
static __device__ inline void finish_query(const struct heads *h, const struct strip<ROOM> *s, int r, unsigned int head,
                                           unsigned int first)
{
    struct slice<float> out = result_of<float>(h, h->out, head);
    unsigned int row = first + own_group() + (unsigned int)r * GROUPS;
    float inverse = 1.0f / s->l[r]; /* ∞, and out NaN, where all scores are −∞ */
    if (row >= h->queries)
        return;
    for (int v = 0; v < ROOM / LANES; v += 2) {
        unsigned int column = own_lane() * 2 + (unsigned int)v * LANES;
        if (column < h->columns)
            vector_at<2>(row_of(&out, row) + column) = {s->result[r][v] * inverse, s->result[r][v + 1] * inverse};
    }
    if (h->lse != NULL && own_lane() == 0)
        h->lse[head * h->queries + row] = s->m[r] + logf(s->l[r]);
}

/* One tile of queries over all keys. A head's tiles are neighbours, so that its keys stay in the cache. */
template <int ROOM> static __global__ void __launch_bounds__(THREADS, ROOM == NARROW ? 4 : 2) attend(struct heads h)
{
    DYNAMIC_SHARED(float, query);
    float *key = query + QUERIES * (ROOM + PAD), *value = key + KEYS * (ROOM + PAD);
    unsigned int tiles = ((unsigned int)h.queries + QUERIES - 1) / QUERIES, head = blockIdx.x / tiles;
    unsigned int first = blockIdx.x % tiles * QUERIES, end = first + QUERIES;
    struct strip<ROOM> s = {
    };
    for (int r = 0; r < ROWS; r++)
        s.m[r] = -INFINITY;
    if (!h.causal || h.rows != NULL || end > h.positions)
        end = h.positions;
    load_tile<ROOM>(query, QUERIES, &h, slice_of<float>(&h, h.qkv, head, 0), first);
    for (unsigned int begin = 0; begin < end; begin += KEYS) {
        unsigned int rows = end - begin > LANES ? KEYS : LANES;
        __syncthreads();
        load_tile<ROOM>(key, rows, &h, slice_of<float>(&h, h.qkv, head, 1), begin);
        load_tile<ROOM>(value, rows, &h, slice_of<float>(&h, h.qkv, head, 2), begin);
        wait_for_tiles();
        if (h.causal)
            move_infinite<ROOM>(key, value, rows);
        __syncthreads();
        if (rows == KEYS)
            visit_keys<ROOM, KEYS / LANES>(&h, &s, query, key, value, head, first, begin);
        else
            visit_keys<ROOM, 1>(&h, &s, query, key, value, head, first, begin);
    }
    for (int r = 0; r < ROWS; r++)
        finish_query<ROOM>(&h, &s, r, head, first);
}

/* The tiles of `gradients`. Wide heads have half as many keys, since a GPU may have 99 KiB a block. */
template <int ROOM> struct tiles {
    static const int C = ROOM == WIDE ? 2 : 4;
    float key[C * LANES][ROOM + PAD], value[C * LANES][ROOM + PAD];
    float query[QUERIES][ROOM + PAD], dout[QUERIES][ROOM + PAD];
    float weights[QUERIES][KEYS + PAD]; /* p, then ds */
    float lse[QUERIES], delta[QUERIES];
    unsigned int limit[QUERIES]; /* how many keys a query sees */
};

/* delta of all queries of a head by the whole block. */
static __device__ inline void find_deltas(const struct heads *h, unsigned int head)
{
    struct slice<float> out = result_of<float>(h, h->out, head), dout = result_of<float>(h, h->dout, head);
    for (unsigned int row = threadIdx.x; row < h->queries; row += THREADS) {
        float delta = 0;
        for (unsigned int column = 0; column < h->columns; column += 4) {
            struct floats<4> a = vector_at<4>(row_of(&out, row) + column),
                             b = vector_at<4>(row_of(&dout, row) + column);
            for (int i = 0; i < 4; i++)
                delta += a.value[i] * b.value[i];
        }
        h->delta[head * h->queries + row] = delta;
    }
}

/* Queries that are not asked for get no gradient. */
static __device__ inline void clear_queries(const struct heads *h, unsigned int head)
{
    float *to = slice_of<float>(h, h->dqkv, head, 0).values;
    for (unsigned int i = threadIdx.x; i < h->positions * h->columns; i += THREADS)
        to[i / h->columns * 3 * h->width + i % h->columns] = 0;
}

template <int ROOM>
static __device__ inline void load_queries(struct tiles<ROOM> *t, const struct heads *h, unsigned int head,
                                           unsigned int first)
{
    struct slice<float> queries = slice_of<float>(h, h->qkv, head, 0);
    load_tile<ROOM>(t->query[0], QUERIES, h, queries, first);
    load_tile<ROOM>(t->dout[0], QUERIES, h, result_of<float>(h, h->dout, head), first);
    for (unsigned int i = threadIdx.x; i < QUERIES; i += THREADS) {
        bool there = first + i < h->queries;
        size_t from = head * h->queries + first + i;
        t->lse[i] = there ? h->lse[from] : 0;
        t->delta[i] = there ? h->delta[from] : 0;
        t->limit[i] = !there ? 0 : h->causal ? position_of(&queries, first + i) + 1 : h->positions;
    }
}

/* Queries that see infinity show it by lse, those whose dout has it by delta. */
template <int ROOM> static __device__ inline void limit_queries(struct tiles<ROOM> *t)
{
    limit_tile<ROOM>(t->query[0], QUERIES);
    limit_tile<ROOM>(t->dout[0], QUERIES);
    for (unsigned int i = threadIdx.x; i < QUERIES; i += THREADS)
        t->lse[i] = fmaf(0.0f, t->delta[i], t->lse[i]);
}

/* p_ij = exp(s_ij − lse_i) of the thread's scores */
template <int ROOM, int C>
static __device__ inline void store_probabilities(struct tiles<ROOM> *t, unsigned int begin, float scale,
                                                  const float score[ROWS][C])
{
    for (int r = 0; r < ROWS; r++) {
        unsigned int row = own_group() + (unsigned int)r * GROUPS;
        for (int c = 0; c < C; c++) {
            unsigned int at = own_lane() + (unsigned int)c * LANES;
            bool seen = begin + at < t->limit[row];
            t->weights[row][at] = seen ? expf(scale * score[r][c] - t->lse[row]) : 0.0f;
        }
    }
}

/* ds_ij = p_ij (dp_ij − delta_i) / √columns, in place of dp; p is read again, since registers are short. */
template <int ROOM, int C>
static __device__ inline void find_slopes(const struct tiles<ROOM> *t, unsigned int begin, float scale,
                                          float slope[ROWS][C])
{
    for (int r = 0; r < ROWS; r++) {
        unsigned int row = own_group() + (unsigned int)r * GROUPS;
        for (int c = 0; c < C; c++) {
            unsigned int at = own_lane() + (unsigned int)c * LANES;
            bool seen = begin + at < t->limit[row];
            slope[r][c] = seen ? t->weights[row][at] * (slope[r][c] - t->delta[row]) * scale : 0.0f;
        }
    }
}

template <int C> static __device__ inline void store_slopes(const float slope[ROWS][C], float *weights)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < C; c++)
            weights[(own_group() + (unsigned int)r * GROUPS) * (KEYS + PAD) + own_lane() + (unsigned int)c * LANES] =
                slope[r][c];
}

/* dq_i = Σ_j ds_ij k_j: the first keys set it, the others add to it, each value by one thread. */
template <int ROOM, int C>
static __device__ inline void add_query_gradients(const struct heads *h, const struct tiles<ROOM> *t, unsigned int head,
                                                  unsigned int first, bool set)
{
    float result[ROWS][ROOM / LANES] = {};
    struct slice<float> dquery = slice_of<float>(h, h->dqkv, head, 0);
    add_rows<ROOM, C * LANES, KEYS + PAD>(result, t->weights[0], t->key[0]);
    for (int r = 0; r < ROWS; r++) {
        unsigned int row = first + own_group() + (unsigned int)r * GROUPS;
        for (int v = 0; v < ROOM / LANES; v += 2) {
            unsigned int column = own_lane() * 2 + (unsigned int)v * LANES;
            if (row >= h->queries || column >= h->columns)
                continue;
            struct floats<2> &to = vector_at<2>(row_of(&dquery, row) + column);
            struct floats<2> before = set ? floats<2>{} : to;
            to = {before.value[0] + result[r][v], before.value[1] + result[r][v + 1]};
        }
    }
}

/* Gradients of parts 1 (keys) and 2 (values). */
template <int ROOM, int K>
static __device__ inline void store_key_gradients(const struct heads *h, unsigned int head, unsigned int begin,
                                                  unsigned int part, const float gradient[K][ROOM / LANES])
{
    struct slice<float> to = slice_of<float>(h, h->dqkv, head, part);
    for (int k = 0; k < K; k++) {
        unsigned int row = begin + own_group() * K + (unsigned int)k;
        for (int v = 0; v < ROOM / LANES; v += 2) {
            unsigned int column = own_lane() * 2 + (unsigned int)v * LANES;
            if (row < h->positions && column < h->columns)
                vector_at<2>(row_of(&to, row) + column) = {gradient[k][v], gradient[k][v + 1]};
        }
    }
}

/* 16 · C keys from `begin`, over all queries that see them: dk_j = Σ_i ds_ij q_i, dv_j = Σ_i p_ij dout_i, and their terms of
 * dq. Five products. */
template <int ROOM, int C>
static __device__ inline void gradients_of_keys(const struct heads *h, struct tiles<ROOM> *t, unsigned int head,
                                                unsigned int begin)
{
    float dkey[2 * C][ROOM / LANES] = {}, dvalue[2 * C][ROOM / LANES] = {};
    __syncthreads();
    load_tile<ROOM>(t->key[0], C * LANES, h, slice_of<float>(h, h->qkv, head, 1), begin);
    load_tile<ROOM>(t->value[0], C * LANES, h, slice_of<float>(h, h->qkv, head, 2), begin);
    unsigned int start = h->causal && h->rows == NULL ? begin / QUERIES * QUERIES : 0;
    for (unsigned int first = start; first < h->queries; first += QUERIES) {
        __syncthreads();
        load_queries<ROOM>(t, h, head, first);
        wait_for_tiles();
        if (h->causal) {
            limit_queries<ROOM>(t);
            limit_tile<ROOM>(t->key[0], first == start ? C * LANES : 0);
        }
        __syncthreads();
        float score[ROWS][C] = {}, slope[ROWS][C] = {};
        dot_rows<ROOM, C>(score, t->query[0], t->key[0]);
        store_probabilities<ROOM, C>(t, begin, h->scale, score);
        dot_rows<ROOM, C>(slope, t->dout[0], t->value[0]);
        find_slopes<ROOM, C>(t, begin, h->scale, slope);
        __syncthreads();
        add_columns<ROOM, 2 * C>(dvalue, t->weights[0], t->dout[0]);
        __syncthreads();
        store_slopes<C>(slope, t->weights[0]);
        __syncthreads();
        add_columns<ROOM, 2 * C>(dkey, t->weights[0], t->query[0]);
        add_query_gradients<ROOM, C>(h, t, head, first, begin == 0);
    }
    store_key_gradients<ROOM, 2 * C>(h, head, begin, 1, dkey);
    store_key_gradients<ROOM, 2 * C>(h, head, begin, 2, dvalue);
}

/* dqkv of one head: a block has all its keys, so nothing is added across blocks. */
template <int ROOM> static __global__ void __launch_bounds__(THREADS, ROOM == NARROW ? 3 : 2) gradients(struct heads h)
{
    DYNAMIC_SHARED(float, memory);
    struct tiles<ROOM> *t = (struct tiles<ROOM> *)memory;
    const int C = tiles<ROOM>::C;
    find_deltas(&h, blockIdx.x);
    if (h.rows != NULL)
        clear_queries(&h, blockIdx.x);
    for (unsigned int begin = 0; begin < h.positions; begin += C * LANES)
        if (h.positions - begin > LANES)
            gradients_of_keys<ROOM, C>(&h, t, blockIdx.x, begin);
        else
            gradients_of_keys<ROOM, 1>(&h, t, blockIdx.x, begin);
}

template <int ROOM> static void attend_in(struct cuda *cuda, const struct heads *h, size_t batch)
{
    size_t blocks = batch * h->count * blocks_for(h->queries, QUERIES);
    CUDA_LAUNCH_LARGE(cuda, attend<ROOM>, (unsigned int)blocks, THREADS,
                      (QUERIES + 2 * KEYS) * (ROOM + PAD) * sizeof(float), *h);
}

template <int ROOM> static void gradients_in(struct cuda *cuda, const struct heads *h, size_t batch)
{
    CUDA_LAUNCH_LARGE(cuda, gradients<ROOM>, (unsigned int)(batch * h->count), THREADS, sizeof(struct tiles<ROOM>), *h);
}

static status describe_heads(struct heads *h, const struct attention_operands *o, struct error *error)
{
    size_t columns = o->width / o->heads;
    if (columns * o->heads != o->width || columns % 8 != 0 || columns < NARROW || columns > WIDE)
        return error_set(
            error, ERROR_ARGUMENT,
            "cuda: attention with %zu heads and a width of %zu is not supported; expected heads of %d to %d columns, a "
            "multiple of 8, or use the CPU (run.backend=cpu)",
            o->heads, o->width, NARROW, WIDE);
    *h = {};
    h->positions = o->positions;
    h->width = o->width;
    h->count = o->heads;
    h->columns = columns;
    h->scale = 1.0f / sqrtf((float)columns);
    h->causal = o->causal;
    h->qkv = o->qkv;
    h->rows = o->rows;
    h->queries = o->rows != NULL ? o->rows_per_sample : o->positions;
    return OK;
}

status cuda_attention(struct cuda *cuda, const struct attention *o, struct error *error)
{
    struct heads h;
    size_t batch = o->operands.batch;
    TRY(describe_heads(&h, &o->operands, error));
    h.out = o->out;
    h.lse = o->lse;
    if (batch * h.queries == 0)
        return OK;
    if (o->operands.type == TENSOR_BF16)
        cuda_attend_bf16(cuda, &h, batch);
    else
        IN_ROOM(h.columns, attend_in, cuda, &h, batch);
    return OK;
}

static status gradients_of_f32(struct cuda *cuda, const struct heads *heads, size_t batch, struct error *error)
{
    struct heads h = *heads;
    TRY(cuda_scratch(cuda, batch * h.count * h.queries * sizeof(float), &h.delta, error));
    IN_ROOM(h.columns, gradients_in, cuda, &h, batch);
    return OK;
}

status cuda_attention_backward(struct cuda *cuda, const struct attention_backward *o, struct error *error)
{
    struct heads h;
    size_t batch = o->operands.batch;
    TRY(describe_heads(&h, &o->operands, error));
    h.out = (void *)o->out;
    h.lse = (float *)o->lse;
    h.dout = o->dout;
    h.dqkv = o->dqkv;
    if (batch * h.positions == 0)
        return OK;
    return (o->operands.type == TENSOR_BF16 ? cuda_attention_gradients_bf16 : gradients_of_f32)(cuda, &h, batch, error);
}

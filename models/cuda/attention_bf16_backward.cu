/* The gradients of attention of bf16 values, in one kernel and five products (Dao 2023, Algorithm 2). A warp has a strip of
 * 16 keys with their values and the gradients of both in registers. A block, with all strips of a head or as many as
 * fit, walks over the queries by 32: each warp computes its weights and slopes of them, adds to the gradients of its keys and
 * values, and leaves the slopes in shared memory, from which the block then computes the gradient of the queries over all
 * keys in their order. With more keys than fit, it keeps that sum in f32 from one piece of them to the next. */
#include "models/cuda/attention.cuh"

enum { CHUNK = 32, LD_SLOPES = CHUNK + 8 }; /* padded as head_row is */

/* Warps of a block at most, one a strip of keys: 13 (208 positions) have 128 registers a thread, 8 have 255. */
constexpr unsigned int most_warps(int columns)
{
    return columns == NARROW ? 13 : 8;
}

template <int ROOM> struct queries {
    struct head_row<ROOM> query[CHUNK], dout[CHUNK];
    float lse[CHUNK], delta[CHUNK];
    unsigned int limit[CHUNK]; /* how many keys a query sees */
};

struct alignas(16) slopes {
    __nv_bfloat16 value[LD_SLOPES];
};

/* How a launch divides heads: strips of keys a piece, each with a warp; partial: sums of dq between pieces (NULL: one piece). */
struct division {
    unsigned int heads, strips; /* heads a block */
    unsigned int all, bytes;    /* heads of all samples; shared memory of one */
    float *partial;
};

/* A head's shared memory: two chunks of queries, and by strips the keys of a piece and their slopes, ds without its scale. */
template <int ROOM> struct places {
    struct queries<ROOM> *chunk;
    struct head_row<ROOM> *keys;
    struct slopes *slopes;
};

template <int ROOM>
static __device__ inline struct places<ROOM> places_of(const struct division *d, unsigned int number) {
    DYNAMIC_SHARED(struct eight_halves, memory);
    struct queries<ROOM> *chunk = (struct queries<ROOM> *)((char *)memory + number * d->bytes);
    struct head_row<ROOM> *keys = (struct head_row<ROOM> *)(chunk + 2);
    return {chunk, keys, (struct slopes *)(keys + d->strips * STRIP)};
}

/* A warp's strip of keys. */
template <int ROOM>
struct strip {
    unsigned int first;
    uint32_t value[ROOM / STRIP][4];
    float dkey[ROOM / TILE][4], dvalue[ROOM / TILE][4];
};

/* delta of all queries of a head by the whole block, eight lanes each. */
static __device__ inline void find_deltas(const struct heads *h, unsigned int head)
{
    struct slice<__nv_bfloat16> out = result_of<__nv_bfloat16>(h, h->out, head),
                                dout = result_of<__nv_bfloat16>(h, h->dout, head);
    enum { LANES = 8, ROWS = WARP / LANES };
    for (unsigned int first = threadIdx.x / WARP * ROWS; first < h->queries; first += blockDim.x / LANES) {
        unsigned int row = first + lane() / LANES;
        float delta = 0;
        for (unsigned int column = lane() % LANES * EIGHT; row < h->queries && column < h->columns;
             column += LANES * EIGHT) {
            float a[EIGHT], b[EIGHT];
            load_eight(out.values, TENSOR_BF16, row * out.stride + column, a);
            load_eight(dout.values, TENSOR_BF16, row * dout.stride + column, b);
            for (int i = 0; i < EIGHT; i++)
                delta += a[i] * b[i];
        }
        delta = warp_sum(delta, LANES);
        if (row < h->queries && lane() % LANES == 0)
            h->delta[head * h->queries + row] = delta;
    }
}

/* Queries that are not asked for get no gradient. */
static __device__ inline void clear_queries(const struct heads *h, unsigned int head)
{
    struct slice<__nv_bfloat16> all = slice_of<__nv_bfloat16>(h, h->dqkv, head, 0);
    unsigned int eights = h->columns / EIGHT;
    for (unsigned int i = threadIdx.x; i < h->positions * eights; i += blockDim.x)
        *(struct eight_halves *)(all.values + i / eights * all.stride + i % eights * EIGHT) = {};
}

/* Begins to copy 32 queries, their dout, lse and delta. */
template <int ROOM>
static __device__ inline void copy_chunk(struct queries<ROOM> *to, const struct heads *h, unsigned int head,
                                         unsigned int first)
{
    struct slice<__nv_bfloat16> queries = slice_of<__nv_bfloat16>(h, h->qkv, head, 0);
    copy_rows<ROOM>(to->query, CHUNK, queries, first);
    copy_rows<ROOM>(to->dout, CHUNK, result_of<__nv_bfloat16>(h, h->dout, head), first);
    for (unsigned int i = threadIdx.x; i < CHUNK; i += blockDim.x) {
        bool there = first + i < h->queries;
        size_t from = head * h->queries + (there ? first + i : 0);
        cp_async<4>(&to->lse[i], &h->lse[from], there);
        cp_async<4>(&to->delta[i], &h->delta[from], there);
        to->limit[i] = !there ? 0 : h->causal ? position_of(&queries, first + i) + 1 : (unsigned int)h->positions;
    }
}

/* Puts the largest number in place of infinity in what this thread has copied, so that 0 times it is 0. */
template <int ROOM> static __device__ inline void limit_rows(struct head_row<ROOM> *rows, unsigned int count)
{
#pragma unroll 1
    for (unsigned int i = threadIdx.x; i < count * (ROOM / EIGHT); i += blockDim.x) {
        uint32_t *own = (uint32_t *)&rows[i / (ROOM / EIGHT)].value[i % (ROOM / EIGHT) * EIGHT];
        for (int j = 0; j < EIGHT / 2; j++) {
            uint32_t ones = infinite_halves(own[j]);
            own[j] = (own[j] & ~(ones * 0x7fffu)) | ones * 0x7f7fu;
        }
    }
}

/* Queries that see infinity show it by lse, those whose dout has it by delta. */
template <int ROOM> static __device__ inline void limit_chunk(struct queries<ROOM> *chunk)
{
    limit_rows<ROOM>(chunk->query, CHUNK);
    limit_rows<ROOM>(chunk->dout, CHUNK);
    for (unsigned int i = threadIdx.x; i < CHUNK; i += blockDim.x)
        chunk->lse[i] = fmaf(0.0f, chunk->delta[i], chunk->lse[i]);
}

/* Whether 16 queries from `query` on come before all keys from `key` on. */
static __device__ inline bool precede(const struct heads *h, unsigned int query, unsigned int key)
{
    return h->causal && h->rows == NULL && query + STRIP <= key;
}

/* From scores and dp, of 16 keys and 16 queries from `first` of a chunk on, to weights p and slopes p (dp − delta). */
template <int ROOM>
static __device__ inline void find_slopes(float p[2][4], float dp[2][4], const struct queries<ROOM> *chunk,
                                          unsigned int first, unsigned int key, float scale)
{
    unsigned int row = key + lane() / 4, column = first + lane() % 4 * 2;
    for (unsigned int i = 0; i < 8; i++) {
        unsigned int query = column + i / 4 * TILE + i % 2;
        bool seen = row + i % 4 / 2 * 8 < chunk->limit[query];
        float weight = exp2f(fmaf(p[i / 4][i % 4], scale, -chunk->lse[query]));
        p[i / 4][i % 4] = seen ? weight : 0.0f;
    }
    asm volatile("" ::: "memory"); /* delta takes no registers before */
    for (unsigned int i = 0; i < 8; i++) {
        float weight = p[i / 4][i % 4],
              slope = weight * (dp[i / 4][i % 4] - chunk->delta[column + i / 4 * TILE + i % 2]);
        dp[i / 4][i % 4] = weight != 0 ? slope : 0.0f;
    }
}

/* to += xᵀ · 16 rows, of x as left operand */
template <int ROOM>
static __device__ inline void add_product(float (*to)[4], const uint32_t x[4], const struct head_row<ROOM> *rows)
{
#pragma unroll
    for (unsigned int j = 0; j < ROOM / STRIP; j++) {
        uint32_t b[4];
        load_right(b, &rows->value[j * STRIP], ROOM + 8);
        mma_m16n8k16(to[2 * j], x, b);
        mma_m16n8k16(to[2 * j + 1], x, b + 2);
    }
}

/* to += 16 rows as left operand · 16 rows transposed, over 16 columns */
template <int ROOM>
static __device__ inline void multiply(float to[2][4], const uint32_t left[4], const __nv_bfloat16 *rows)
{
    uint32_t b[4];
    load_right_transposed(b, rows, ROOM + 8);
    mma_m16n8k16(to[0], left, b);
    mma_m16n8k16(to[1], left, b + 2);
}

/* dk and dv of a warp's strip over a chunk of queries; its slopes go to shared memory. */
template <int ROOM>
static __device__ inline void key_gradients(struct strip<ROOM> *s, const struct heads *h,
                                            const struct queries<ROOM> *chunk, unsigned int query,
                                            const struct head_row<ROOM> *keys, struct slopes *slopes)
{
    for (unsigned int half = 0; half < CHUNK; half += STRIP) {
        if (query + half >= h->queries || precede(h, query + half, s->first))
            continue;
        float p[2][4] = {}, dp[2][4] = {};
        uint32_t left[4];
#pragma unroll
        for (unsigned int k = 0; k < ROOM / STRIP; k++) {
            load_left(left, &keys->value[k * STRIP], ROOM + 8);
            multiply<ROOM>(p, left, &chunk->query[half].value[k * STRIP]);
        }
#pragma unroll
        for (unsigned int k = 0; k < ROOM / STRIP; k++)
            multiply<ROOM>(dp, s->value[k], &chunk->dout[half].value[k * STRIP]);
        find_slopes<ROOM>(p, dp, chunk, half, s->first, h->scale * LOG2_E);
        as_left(left, p);
        add_product<ROOM>(s->dvalue, left, &chunk->dout[half]);
        as_left(left, dp);
        add_product<ROOM>(s->dkey, left, &chunk->query[half]);
        for (unsigned int i = 0; i < 4; i++)
            *(uint32_t *)&slopes[lane() / 4 + i % 2 * 8].value[half + i / 2 * TILE + lane() % 4 * 2] = left[i];
    }
}

/* dq of a chunk over the keys of a piece: 16 queries and 16 columns a warp at a time. */
template <int ROOM>
static __device__ inline void query_gradients(const struct heads *h, const struct division *d, unsigned int head,
                                              const struct places<ROOM> *place, unsigned int query, unsigned int piece)
{
    enum { HALVES = CHUNK / STRIP, TASKS = HALVES * ROOM / STRIP };
    unsigned int keys = d->strips * STRIP, chunks = (h->queries + CHUNK - 1) / CHUNK;
    for (unsigned int task = threadIdx.x / WARP % d->strips; task < TASKS; task += d->strips) {
        asm volatile("" : "+r"(head)); /* as in `gradients` */
        unsigned int half = task % HALVES * STRIP, column = task / HALVES * STRIP;
        float sums[2][4] = {}, *partial = NULL;
        if (query + half >= h->queries)
            continue;
        if (d->partial != NULL)
            partial = d->partial + ((((size_t)head * chunks + query / CHUNK) * TASKS + task) * WARP + lane()) * EIGHT;
        if (piece > 0)
            load_eight(partial, TENSOR_F32, 0, sums[0]);
        for (unsigned int key = 0; key < keys && piece * keys + key < h->positions; key += STRIP) {
            uint32_t a[4], b[4];
            if (precede(h, query + half, piece * keys + key))
                break;
            load_left_transposed(a, &place->slopes[key].value[half], LD_SLOPES);
            load_right(b, &place->keys[key].value[column], ROOM + 8);
            mma_m16n8k16(sums[0], a, b);
            mma_m16n8k16(sums[1], a, b + 2);
        }
        if ((piece + 1) * keys < h->positions)
            store_eight(partial, TENSOR_F32, 0, sums[0]);
        else
            store_tiles(slice_of<__nv_bfloat16>(h, h->dqkv, head, 0), query + half, column, sums, h->scale, h->scale);
    }
}

/* Begins to copy the keys of a piece and the first queries, of all heads of a block. */
template <int ROOM>
static __device__ inline void begin_piece(const struct heads *h, const struct division *d, unsigned int first,
                                          unsigned int piece)
{
    unsigned int keys = d->strips * STRIP;
    for (unsigned int i = 0; i < d->heads && first + i < d->all; i++) {
        struct places<ROOM> place = places_of<ROOM>(d, i);
        copy_rows<ROOM>(place.keys, keys, slice_of<__nv_bfloat16>(h, h->qkv, first + i, 1), piece * keys);
        copy_chunk<ROOM>(&place.chunk[0], h, first + i, 0);
    }
    cp_async_commit();
}

/* What has come: the keys with the first queries. */
template <int ROOM>
static __device__ inline void limit(const struct division *d, unsigned int first, unsigned int query)
{
    for (unsigned int i = 0; i < d->heads && first + i < d->all; i++) {
        struct places<ROOM> place = places_of<ROOM>(d, i);
        limit_chunk<ROOM>(&place.chunk[query / CHUNK % 2]);
        limit_rows<ROOM>(place.keys, query == 0 ? d->strips * STRIP : 0);
    }
}

template <int ROOM>
static __device__ inline void begin_strip(struct strip<ROOM> *s, const struct heads *h, unsigned int head,
                                          unsigned int first)
{
    s->first = first;
    read_strip<ROOM>(s->value, slice_of<__nv_bfloat16>(h, h->qkv, head, 2), first);
#pragma unroll
    for (unsigned int i = 0; i < ROOM / TILE * 4; i++)
        s->dkey[i / 4][i % 4] = s->dvalue[i / 4][i % 4] = 0;
}

template <int ROOM>
static __device__ inline void end_strip(const struct strip<ROOM> *s, const struct heads *h, unsigned int head)
{
#pragma unroll
    for (unsigned int j = 0; j < ROOM / STRIP; j++) {
        store_tiles(slice_of<__nv_bfloat16>(h, h->dqkv, head, 1), s->first, j * STRIP, &s->dkey[2 * j], h->scale,
                    h->scale);
        store_tiles(slice_of<__nv_bfloat16>(h, h->dqkv, head, 2), s->first, j * STRIP, &s->dvalue[2 * j], 1, 1);
    }
}

/* One chunk of queries that has come, while the next one comes. */
template <int ROOM>
static __device__ inline void add_chunk(struct strip<ROOM> *s, const struct heads *h, const struct division *d,
                                        unsigned int warp, unsigned int query, unsigned int piece)
{
    unsigned int own = warp / d->strips, number = warp % d->strips, begin = blockIdx.x * d->heads,
                 turn = query / CHUNK % 2;
    struct places<ROOM> place = places_of<ROOM>(d, own);
    for (unsigned int i = 0; i < d->heads && begin + i < d->all && query + CHUNK < h->queries; i++)
        copy_chunk<ROOM>(&places_of<ROOM>(d, i).chunk[1 - turn], h, begin + i, query + CHUNK);
    cp_async_commit();
    if (begin + own < d->all)
        key_gradients<ROOM>(s, h, &place.chunk[turn], query, &place.keys[number * STRIP],
                            &place.slopes[number * STRIP]);
    __syncthreads();
    if (begin + own < d->all)
        query_gradients<ROOM>(h, d, begin + own, &place, query, piece);
}

template <int ROOM>
static __global__ void __launch_bounds__(most_warps(ROOM) * WARP, 1) gradients(struct heads h, struct division d)
{
    unsigned int warp = threadIdx.x / WARP, begin = blockIdx.x * d.heads, keys = d.strips * STRIP;
    for (unsigned int i = 0; i < d.heads && begin + i < d.all; i++) {
        find_deltas(&h, begin + i);
        if (h.rows != NULL)
            clear_queries(&h, begin + i);
    }
    for (unsigned int piece = 0; piece * keys < h.positions; piece++) {
        struct strip<ROOM> s;
        __syncthreads();
        begin_piece<ROOM>(&h, &d, begin, piece);
        if (begin + warp / d.strips < d.all)
            begin_strip<ROOM>(&s, &h, begin + warp / d.strips, piece * keys + warp % d.strips * STRIP);
        for (unsigned int query = 0; query < h.queries; query += CHUNK) {
            cp_async_wait<0>();
            if (h.causal)
                limit<ROOM>(&d, begin, query);
            __syncthreads();
            asm volatile("" : "+r"(warp)); /* what follows from it is found again, not held in registers */
            add_chunk<ROOM>(&s, &h, &d, warp, query, piece);
        }
        if (begin + warp / d.strips < d.all)
            end_strip<ROOM>(&s, &h, begin + warp / d.strips);
    }
}

template <int ROOM> static status gradients_in(struct cuda *cuda, struct heads h, size_t all, struct error *error)
{
    unsigned int strips = blocks_for(h.positions, STRIP), pieces = blocks_for(strips, most_warps(ROOM));
    struct division d = {1, blocks_for(strips, pieces), (unsigned int)all, 0, NULL};
    d.bytes = (unsigned int)(2 * sizeof(struct queries<ROOM>) +
                             d.strips * STRIP * (sizeof(struct head_row<ROOM>) + sizeof(struct slopes)));
    d.heads = heads_a_block(d.strips, d.bytes);
    TRY(cuda_scratch(cuda, all * h.queries * sizeof(float), &h.delta, error));
    if (pieces > 1) {
        TRY(cuda_scratch(cuda, all * blocks_for(h.queries, CHUNK) * CHUNK * ROOM * sizeof(float), &d.partial, error));
    }
    CUDA_LAUNCH_LARGE(cuda, gradients<ROOM>, blocks_for(all, d.heads), d.heads * d.strips * WARP, d.heads * d.bytes, h,
                      d);
    return OK;
}

status cuda_attention_gradients_bf16(struct cuda *cuda, const struct heads *h, size_t batch, struct error *error)
{
    assert(((uintptr_t)h->qkv | (uintptr_t)h->dqkv | (uintptr_t)h->out | (uintptr_t)h->dout) % 16 == 0 &&
           h->columns % EIGHT == 0);
    return IN_ROOM(h->columns, gradients_in, cuda, *h, batch * h->count, error);
}

/* The gradients of attention of bf16 values, in one kernel and five products (Dao 2023, Algorithm 2). A warp has one or two
 * strips of 16 keys with their values and the gradients of both in registers. A block, with a piece of a head's strips, walks
 * over the queries by 32: each warp computes its weights and slopes of them, adds to the gradients of its keys and values, and
 * leaves the slopes in shared memory, from which the block then computes the gradient of the queries over all keys in their
 * order. It keeps that sum in f32 from one piece to the next. */
#include "models/cuda/attention.cuh"

enum { CHUNK = 32, LD_SLOPES = CHUNK + 8 }; /* padded as head_row is */

enum { MOST_STRIPS = 8 };    /* of keys a piece: 197 positions are two pieces */
enum { RESERVED = 1 << 10 }; /* bytes of shared memory that a block takes in addition */

/* Strips of keys a warp, with which it multiplies what it reads of queries and dout. Two blocks of 4 warps with 255 registers a
 * thread are on a multiprocessor, so that one multiplies while the other waits; of wider heads it is one of 8 warps. */
constexpr int strips_a_warp(int columns)
{
    return columns == NARROW ? 2 : 1;
}

template <int ROOM> struct queries {
    struct head_row<ROOM> query[CHUNK], dout[CHUNK];
    float lse[CHUNK], delta[CHUNK];
    unsigned int limit[CHUNK]; /* how many keys a query sees */
};

struct alignas(16) slopes {
    __nv_bfloat16 value[LD_SLOPES];
};

/* How a launch divides heads: strips of keys a piece, in order by warps; partial: sums of dq between pieces, of all heads (NULL: in
 * shared memory, or of one piece). */
struct division {
    unsigned int heads, warps, strips; /* heads a block, warps a head */
    unsigned int all, bytes;           /* heads of all samples; shared memory of one */
    float *partial;
};

/* A head's shared memory: two chunks of queries, and by strips the keys of a piece and their slopes, ds without its scale; sums:
 * of dq from one piece to the next. */
template <int ROOM> struct places {
    struct queries<ROOM> *chunk;
    struct head_row<ROOM> *keys;
    struct slopes *slopes;
    float *sums;
};

template <int ROOM>
static __device__ inline struct places<ROOM> places_of(const struct division *d, unsigned int number) {
    DYNAMIC_SHARED(struct eight_halves, memory);
    struct queries<ROOM> *chunk = (struct queries<ROOM> *)((char *)memory + number * d->bytes);
    struct head_row<ROOM> *keys = (struct head_row<ROOM> *)(chunk + 2);
    struct slopes *slopes = (struct slopes *)(keys + d->strips * STRIP);
    return {chunk, keys, slopes, (float *)(slopes + d->strips * STRIP)};
}

/* A warp's strips of keys, from `first` on. */
template <int ROOM>
struct strips {
    enum { EACH = strips_a_warp(ROOM) };
    unsigned int first;
    uint32_t value[EACH][ROOM / STRIP][4];
    float dkey[EACH][ROOM / TILE][4], dvalue[EACH][ROOM / TILE][4];
};

/* delta of all queries of a head by the whole block, eight lanes each, of four at once so that eight loads are on their way. */
template <int ROOM> static __device__ inline void find_deltas(const struct heads *h, unsigned int head)
{
    struct slice<__nv_bfloat16> out = result_of<__nv_bfloat16>(h, h->out, head),
                                dout = result_of<__nv_bfloat16>(h, h->dout, head);
    enum { LANES = 8, ROWS = WARP / LANES, AT_ONCE = 4 };
    for (unsigned int first = threadIdx.x / LANES; first / ROWS * ROWS < h->queries;
         first += AT_ONCE * blockDim.x / LANES) {
        float delta[AT_ONCE] = {};
#pragma unroll
        for (unsigned int j = 0; j < AT_ONCE; j++)
#pragma unroll
            for (unsigned int k = 0; k < ROOM; k += LANES * EIGHT) {
                unsigned int row = first + j * blockDim.x / LANES, column = k + lane() % LANES * EIGHT;
                bool there = row < h->queries && column < h->columns;
                size_t at = there ? row * out.stride + column : 0;
                float a[EIGHT], b[EIGHT], sum = 0;
                load_eight(out.values, TENSOR_BF16, at, a);
                load_eight(dout.values, TENSOR_BF16, at, b);
                for (int i = 0; i < EIGHT; i++)
                    sum += a[i] * b[i];
                delta[j] += there ? sum : 0;
            }
#pragma unroll
        for (unsigned int j = 0; j < AT_ONCE; j++) {
            unsigned int row = first + j * blockDim.x / LANES;
            float sum = warp_sum(delta[j], LANES);
            if (row < h->queries && lane() % LANES == 0)
                h->delta[head * h->queries + row] = sum;
        }
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

/* Begins to copy 32 queries and their dout. */
template <int ROOM>
static __device__ inline void copy_chunk(struct queries<ROOM> *to, const struct heads *h, unsigned int head,
                                         unsigned int first)
{
    copy_rows<ROOM>(to->query, CHUNK, slice_of<__nv_bfloat16>(h, h->qkv, head, 0), first);
    copy_rows<ROOM>(to->dout, CHUNK, result_of<__nv_bfloat16>(h, h->dout, head), first);
}

/* The same of their lse and delta. */
template <int ROOM>
static __device__ inline void copy_numbers(struct queries<ROOM> *to, const struct heads *h, unsigned int head,
                                           unsigned int first)
{
    struct slice<__nv_bfloat16> queries = slice_of<__nv_bfloat16>(h, h->qkv, head, 0);
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

/* From scores and dp, of 16 keys and 16 queries from `first` of a chunk on, to weights p and slopes p (dp − delta); clear: all
 * keys are seen by all queries. */
template <int ROOM>
static __device__ inline void find_slopes(float p[2][4], float dp[2][4], const struct queries<ROOM> *chunk,
                                          unsigned int first, unsigned int key, float scale, bool clear)
{
    using two = struct neighbours<2>;
    unsigned int row = key + lane() / 4, column = first + lane() % 4 * 2;
    for (unsigned int t = 0; t < 2; t++) {
        two lse = *(const two *)&chunk->lse[column + t * TILE];
        for (unsigned int i = 0; i < 4; i++)
            p[t][i] = ex2_approx_ftz(fmaf(p[t][i], scale, -lse.value[i % 2]));
    }
    if (!clear)
        for (unsigned int i = 0; i < 8; i++)
            if (row + i % 4 / 2 * 8 >= chunk->limit[column + i / 4 * TILE + i % 2])
                p[i / 4][i % 4] = 0;
    for (unsigned int t = 0; t < 2; t++) {
        two delta = *(const two *)&chunk->delta[column + t * TILE];
        for (unsigned int i = 0; i < 4; i++) {
            float slope = p[t][i] * (dp[t][i] - delta.value[i % 2]);
            dp[t][i] = p[t][i] != 0 ? slope : 0.0f;
        }
    }
}

/* to += left · 16 × 16 values, as loaded */
static __device__ inline void multiply(float to[2][4], const uint32_t left[4], const uint32_t right[4])
{
    mma_m16n8k16(to[0], left, right);
    mma_m16n8k16(to[1], left, right + 2);
}

/* dk and dv of a warp's strips over 16 queries of a chunk from `half` on; left: their slopes. */
template <int ROOM>
static __device__ inline void add_queries(struct strips<ROOM> *s, const struct heads *h,
                                          const struct queries<ROOM> *chunk, unsigned int query, unsigned int half,
                                          const struct head_row<ROOM> *keys, uint32_t (*left)[4])
{
    enum { EACH = strips<ROOM>::EACH };
    float p[EACH][2][4] = {}, dp[EACH][2][4] = {};
    uint32_t key[4], queries[4], dout[4], weights[EACH][4];
#pragma unroll
    for (unsigned int k = 0; k < ROOM / STRIP; k++) {
        load_right_transposed(queries, &chunk->query[half].value[k * STRIP], ROOM + 8);
        load_right_transposed(dout, &chunk->dout[half].value[k * STRIP], ROOM + 8);
#pragma unroll
        for (unsigned int i = 0; i < EACH; i++) {
            load_left(key, &keys[i * STRIP].value[k * STRIP], ROOM + 8);
            multiply(p[i], key, queries);
            multiply(dp[i], s->value[i][k], dout);
        }
    }
#pragma unroll
    for (unsigned int i = 0; i < EACH; i++) {
        unsigned int first = s->first + i * STRIP;
        bool clear = !h->causal && query + half + STRIP <= h->queries && first + STRIP <= h->positions;
        find_slopes<ROOM>(p[i], dp[i], chunk, half, first, h->scale * LOG2_E, clear);
        as_left(weights[i], p[i]);
        as_left(left[i], dp[i]);
    }
#pragma unroll
    for (unsigned int j = 0; j < ROOM / STRIP; j++) {
        load_right(queries, &chunk->query[half].value[j * STRIP], ROOM + 8);
        load_right(dout, &chunk->dout[half].value[j * STRIP], ROOM + 8);
#pragma unroll
        for (unsigned int i = 0; i < EACH; i++) {
            multiply(&s->dkey[i][2 * j], left[i], queries);
            multiply(&s->dvalue[i][2 * j], weights[i], dout);
        }
    }
}

/* dk and dv over a chunk of queries; the slopes go to shared memory, zeros where no query sees a key. */
template <int ROOM>
static __device__ inline void key_gradients(struct strips<ROOM> *s, const struct heads *h,
                                            const struct queries<ROOM> *chunk, unsigned int query,
                                            const struct head_row<ROOM> *keys, struct slopes *slopes)
{
#pragma unroll 1
    for (unsigned int half = 0; half < CHUNK; half += STRIP) {
        uint32_t left[strips<ROOM>::EACH][4] = {};
        if (query + half < h->queries && s->first < h->positions && !precede(h, query + half, s->first))
            add_queries<ROOM>(s, h, chunk, query, half, keys, left);
#pragma unroll
        for (unsigned int i = 0; i < strips<ROOM>::EACH * 4; i++)
            *(uint32_t *)&slopes[i / 4 * STRIP + lane() / 4 + i % 2 * 8]
                 .value[half + i % 4 / 2 * TILE + lane() % 4 * 2] = left[i / 4][i % 4];
    }
}

/* Eight values a lane of dq from one piece to the next, of 16 queries and 16 columns. */
template <int ROOM>
static __device__ inline float *sums_of(const struct heads *h, const struct division *d, unsigned int head,
                                        const struct places<ROOM> *place, unsigned int query, unsigned int column)
{
    size_t strips = (h->queries + STRIP - 1) / STRIP;
    float *all = d->partial != NULL ? d->partial + head * strips * STRIP * ROOM : place->sums;
    return all + ((query / STRIP * ROOM + column) / STRIP * WARP + lane()) * EIGHT;
}

/* dq of a chunk over the keys of a piece: 16 columns a warp at a time, by warps in turn from chunk to chunk. */
template <int ROOM>
static __device__ inline void query_gradients(const struct heads *h, const struct division *d, unsigned int head,
                                              unsigned int number, const struct places<ROOM> *place, unsigned int query,
                                              unsigned int piece)
{
    enum { HALVES = CHUNK / STRIP, TASKS = ROOM / STRIP, EACH = strips<ROOM>::EACH };
    unsigned int keys = d->strips * STRIP, begin = piece * keys, end = (unsigned int)h->positions - begin;
    if (end > keys)
        end = keys;
    if (precede(h, query + CHUNK - STRIP, begin + end))
        end = query + CHUNK > begin ? query + CHUNK - begin : 0;
    for (unsigned int task = (number + query / CHUNK * TASKS) % d->warps; task < TASKS; task += d->warps) {
        unsigned int column = task * STRIP;
        float sums[HALVES][2][4] = {};
#pragma unroll
        for (unsigned int i = 0; i < HALVES; i++)
            if (piece > 0 && query + i * STRIP < h->queries)
                load_eight(sums_of(h, d, head, place, query + i * STRIP, column), TENSOR_F32, 0, sums[i][0]);
        for (unsigned int key = 0; key < end; key += EACH * STRIP) { /* past the end slopes are 0 */
            uint32_t a[EACH][HALVES][4], b[EACH][4];
#pragma unroll
            for (unsigned int j = 0; j < EACH; j++) {
                load_right(b[j], &place->keys[key + j * STRIP].value[column], ROOM + 8);
#pragma unroll
                for (unsigned int i = 0; i < HALVES; i++)
                    load_left_transposed(a[j][i], &place->slopes[key + j * STRIP].value[i * STRIP], LD_SLOPES);
            }
#pragma unroll
            for (unsigned int j = 0; j < EACH * HALVES; j++)
                multiply(sums[j % HALVES], a[j / HALVES][j % HALVES], b[j / HALVES]);
        }
#pragma unroll
        for (unsigned int i = 0; i < HALVES; i++)
            if (begin + keys >= h->positions)
                store_tiles(slice_of<__nv_bfloat16>(h, h->dqkv, head, 0), query + i * STRIP, column, sums[i], h->scale,
                            h->scale);
            else if (query + i * STRIP < h->queries)
                store_eight(sums_of(h, d, head, place, query + i * STRIP, column), TENSOR_F32, 0, sums[i][0]);
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
}

/* The copies that have arrived: the keys with the first queries. */
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
static __device__ inline void begin_strips(struct strips<ROOM> *s, const struct heads *h, unsigned int head,
                                           unsigned int first)
{
    s->first = first;
#pragma unroll
    for (unsigned int i = 0; i < strips<ROOM>::EACH; i++) {
        read_strip<ROOM>(s->value[i], slice_of<__nv_bfloat16>(h, h->qkv, head, 2), first + i * STRIP);
#pragma unroll
        for (unsigned int j = 0; j < ROOM / TILE * 4; j++)
            s->dkey[i][j / 4][j % 4] = s->dvalue[i][j / 4][j % 4] = 0;
    }
}

template <int ROOM>
static __device__ inline void end_strips(const struct strips<ROOM> *s, const struct heads *h, unsigned int head)
{
#pragma unroll
    for (unsigned int i = 0; i < strips<ROOM>::EACH; i++)
#pragma unroll
        for (unsigned int j = 0; j < ROOM / STRIP; j++) {
            unsigned int first = s->first + i * STRIP;
            store_tiles(slice_of<__nv_bfloat16>(h, h->dqkv, head, 1), first, j * STRIP, &s->dkey[i][2 * j], h->scale,
                        h->scale);
            store_tiles(slice_of<__nv_bfloat16>(h, h->dqkv, head, 2), first, j * STRIP, &s->dvalue[i][2 * j], 1, 1);
        }
}

/* One chunk of queries that has come, while the next one comes. */
template <int ROOM>
static __device__ inline void add_chunk(struct strips<ROOM> *s, const struct heads *h, const struct division *d,
                                        unsigned int query, unsigned int piece)
{
    unsigned int warp = threadIdx.x / WARP, own = warp / d->warps, number = warp % d->warps,
                 begin = blockIdx.x * d->heads, turn = query / CHUNK % 2, first = number * strips<ROOM>::EACH * STRIP;
    struct places<ROOM> place = places_of<ROOM>(d, own);
    for (unsigned int i = 0; i < d->heads && begin + i < d->all && query + CHUNK < h->queries; i++) {
        copy_chunk<ROOM>(&places_of<ROOM>(d, i).chunk[1 - turn], h, begin + i, query + CHUNK);
        copy_numbers<ROOM>(&places_of<ROOM>(d, i).chunk[1 - turn], h, begin + i, query + CHUNK);
    }
    cp_async_commit();
    if (begin + own < d->all)
        key_gradients<ROOM>(s, h, &place.chunk[turn], query, place.keys + first, place.slopes + first);
    __syncthreads();
    if (begin + own < d->all)
        query_gradients<ROOM>(h, d, begin + own, number, &place, query, piece);
}

/* What the first chunk waits for comes while the first piece finds delta. */
template <int ROOM>
static __global__ void __launch_bounds__(MOST_STRIPS / strips_a_warp(ROOM) * WARP, strips_a_warp(ROOM))
    gradients(struct heads h, struct division d)
{
    unsigned int warp = threadIdx.x / WARP, begin = blockIdx.x * d.heads, keys = d.strips * STRIP,
                 head = begin + warp / d.warps;
    for (unsigned int piece = 0; piece * keys < h.positions; piece++) {
        struct strips<ROOM> s;
        __syncthreads();
        begin_piece<ROOM>(&h, &d, begin, piece);
#pragma unroll 1
        for (unsigned int i = 0; piece == 0 && i < d.heads && begin + i < d.all; i++) {
            find_deltas<ROOM>(&h, begin + i);
            if (h.rows != NULL)
                clear_queries(&h, begin + i);
        }
        if (head < d.all)
            begin_strips<ROOM>(&s, &h, head, piece * keys + warp % d.warps * strips<ROOM>::EACH * STRIP);
        __syncthreads();
        for (unsigned int i = 0; i < d.heads && begin + i < d.all; i++)
            copy_numbers<ROOM>(&places_of<ROOM>(&d, i).chunk[0], &h, begin + i, 0);
        for (unsigned int query = 0; query < h.queries; query += CHUNK) {
            cp_async_commit();
            cp_async_wait<0>();
            if (h.causal)
                limit<ROOM>(&d, begin, query);
            __syncthreads();
            add_chunk<ROOM>(&s, &h, &d, query, piece);
        }
        if (head < d.all)
            end_strips<ROOM>(&s, &h, head);
    }
}

template <int ROOM> static status gradients_in(struct cuda *cuda, struct heads h, size_t all, struct error *error)
{
    unsigned int strips = blocks_for(h.positions, STRIP), pieces = blocks_for(strips, MOST_STRIPS),
                 warps = blocks_for(blocks_for(strips, pieces), strips_a_warp(ROOM));
    struct division d = {1, warps, warps * strips_a_warp(ROOM), (unsigned int)all, 0, NULL};
    size_t sums = pieces > 1 ? blocks_for(h.queries, STRIP) * STRIP * ROOM * sizeof(float) : 0;
    d.bytes = (unsigned int)(2 * sizeof(struct queries<ROOM>) +
                             d.strips * STRIP * (sizeof(struct head_row<ROOM>) + sizeof(struct slopes)));
    d.heads = heads_a_block(warps, d.bytes);
    TRY(cuda_scratch(cuda, all * h.queries * sizeof(float), &h.delta, error));
    if (sums > 0 && (d.bytes + sums > CUDA_SHARED_BYTES || 2 * (d.bytes + sums + RESERVED) > cuda->shared_bytes))
        TRY(cuda_scratch(cuda, all * sums, &d.partial, error));
    else
        d.bytes += (unsigned int)sums;
    CUDA_LAUNCH_LARGE(cuda, gradients<ROOM>, blocks_for(all, d.heads), d.heads * warps * WARP, d.heads * d.bytes, h, d);
    return OK;
}

status cuda_attention_gradients_bf16(struct cuda *cuda, const struct heads *h, size_t batch, struct error *error)
{
    assert(((uintptr_t)h->qkv | (uintptr_t)h->dqkv | (uintptr_t)h->out | (uintptr_t)h->dout) % 16 == 0 &&
           h->columns % EIGHT == 0);
    return IN_ROOM(h->columns, gradients_in, cuda, *h, batch * h->count, error);
}

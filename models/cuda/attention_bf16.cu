/* Attention of bf16 values on tensor cores; scores, sums and softmax in f32. A warp has a strip of 16 queries and all its
 * scores in registers, so the softmax is exact and of one pass. Keys and values come to shared memory once for all strips
 * of a head, up to 208 positions. Beyond them, or beyond shared memory, blocks walk over pieces of 64 keys twice: first for
 * the highest score of each query. Both ways give the same bits. */
#include "models/cuda/attention.cuh"

enum { SHORT_TILES = 10, LONG_TILES = 26 }; /* of scores a query: the 77 positions of texts, and 197 */
enum { PIECE_TILES = 8, PIECE = PIECE_TILES * TILE };

/* Warps of a block at most: 77 positions are five strips. With 3 blocks of 4 warps or 2 of 5 on a multiprocessor a thread
 * has 168 registers, with 3 of 5 it has 128, with 2 of 4 it has 255, which pieces of wide heads need on sm_120. */
constexpr int most_warps(int tiles)
{
    return tiles == SHORT_TILES ? 5 : 4;
}

constexpr int blocks_at_once(int columns, int tiles)
{
    return columns == NARROW || (tiles == PIECE_TILES && columns != WIDE) ? 3 : 2;
}

/* How a launch divides heads: `keys` rows of shared memory for keys and as many for values of each head. */
struct division {
    unsigned int heads, warps, keys; /* heads a block, warps a head */
    unsigned int all;                /* heads of all samples */
};

template <int ROOM> static __device__ inline struct head_row<ROOM> *shared_rows() {
    DYNAMIC_SHARED(struct eight_halves, memory);
    return (struct head_row<ROOM> *)memory;
}

/* Of the two rows of a strip that a lane has values of. */
struct two_rows {
    float upper, lower;
};

/* A strip's queries and what it sees. */
template <int ROOM> struct strip {
    uint32_t query[ROOM / STRIP][4];
    unsigned int first, limit[2]; /* how many keys a row of this lane's sees */
    unsigned int seen, clear;     /* that some row sees, and that all of them see */
};

template <int ROOM>
static __device__ inline void begin_strip(struct strip<ROOM> *s, const struct heads *h, unsigned int head,
                                          unsigned int first)
{
    struct slice<__nv_bfloat16> queries = slice_of<__nv_bfloat16>(h, h->qkv, head, 0);
    bool ordered = h->causal && h->rows == NULL;
    read_strip<ROOM>(s->query, queries, first);
    s->first = first;
    for (unsigned int i = 0; i < 2; i++) {
        unsigned int row = first + lane() / 4 + i * 8;
        s->limit[i] = h->causal && row < h->queries ? position_of(&queries, row) + 1 : h->positions;
    }
    s->seen = ordered && first + STRIP < h->positions ? first + STRIP : h->positions;
    s->clear = !h->causal ? h->positions : ordered ? first + 1 : 0;
}

/* scores[t] = the strip's queries · the keys of tile t of a piece that begins at key `begin`; −∞ where they are not seen */
template <int ROOM, int TILES>
static __device__ inline void score(float (*scores)[4], const struct strip<ROOM> *s, const struct head_row<ROOM> *keys,
                                    unsigned int begin)
{
#pragma unroll
    for (unsigned int t = 0; t < TILES; t += 2) {
        for (unsigned int i = 0; i < 8; i++)
            scores[t + i / 4][i % 4] = 0;
        if (begin + t * TILE < s->seen)
#pragma unroll
            for (unsigned int k = 0; k < ROOM / STRIP; k++) {
                uint32_t b[4];
                load_right_transposed(b, &keys[t * TILE].value[k * STRIP], ROOM + 8);
                mma_m16n8k16(scores[t], s->query[k], b);
                mma_m16n8k16(scores[t + 1], s->query[k], b + 2);
            }
        if (begin + (t + 2) * TILE > s->clear)
            for (unsigned int i = 0; i < 8; i++) {
                unsigned int key = begin + (t + i / 4) * TILE + lane() % 4 * 2 + i % 2;
                if (key >= s->limit[i % 4 / 2])
                    scores[t + i / 4][i % 4] = -INFINITY;
            }
    }
}

template <int TILES> static __device__ inline struct two_rows highest(const float (*scores)[4], struct two_rows m)
{
#pragma unroll
    for (unsigned int t = 0; t < TILES; t++)
        for (unsigned int i = 0; i < 2; i++) {
            m.upper = fmaxf(m.upper, scores[t][i]);
            m.lower = fmaxf(m.lower, scores[t][2 + i]);
        }
    return m;
}

/* Puts 0 in place of values that are not finite; 1 in the half of a pair that had one. */
static __device__ inline uint32_t take_infinite(uint32_t *pair)
{
    uint32_t ones = infinite_halves(*pair);
    *pair &= ~(ones * 0xffffu);
    return ones;
}

/* l = NaN of rows that see a key with such a value, of 16 keys from `begin`; `found`: by lanes as b of a product, keys 2t and
 * 2t + 1 in the lowest bits of its halves, those 8 further in the next ones; limit: as in a strip */
static __device__ inline void add_infinite(struct two_rows *l, uint32_t found, const unsigned int limit[2],
                                           unsigned int begin)
{
    for (unsigned int step = 4; step < WARP; step *= 2)
        found |= __shfl_xor_sync(0xffffffffu, found, (int)step);
#pragma unroll /* so that the rest of the strip stays in registers */
    for (unsigned int i = 0; i < 8; i++)
        if (found >> (i % 2 * 16 + i / 4) & 1 && begin + i / 4 * TILE + lane() % 4 * 2 + i % 2 < limit[i % 4 / 2])
            (i % 4 < 2 ? l->upper : l->lower) = NAN;
}

/* result += p v with p = exp(scale s − m), and l += the sums of p in this lane, over a piece that begins at key `begin`; where
 * some rows do not see some keys, values must not reach them as 0 times infinity: a row that sees such a value there is NaN as
 * a whole. */
template <int ROOM, int TILES>
static __device__ inline void weigh(float (*result)[4], struct two_rows *l, const float (*scores)[4], struct two_rows m,
                                    float scale, const struct strip<ROOM> *s, unsigned int begin,
                                    const struct head_row<ROOM> *values)
{
    unsigned int tiles = s->seen > begin ? (s->seen - begin + TILE - 1) / TILE : 0;
    unsigned int clear = s->clear > begin ? (s->clear - begin) / TILE : 0;
#pragma unroll
    for (unsigned int t = 0; t < TILES; t += 2)
        if (t < tiles) {
            float weights[2][4];
            uint32_t p[4], found = 0;
            for (unsigned int i = 0; i < 8; i++) {
                weights[i / 4][i % 4] =
                    ex2_approx_ftz(fmaf(scores[t + i / 4][i % 4], scale, i % 4 < 2 ? -m.upper : -m.lower));
                (i % 4 < 2 ? l->upper : l->lower) += weights[i / 4][i % 4];
            }
            as_left(p, weights);
#pragma unroll
            for (unsigned int j = 0; j < ROOM / STRIP; j++) {
                uint32_t b[4];
                load_right(b, &values[t * TILE].value[j * STRIP], ROOM + 8);
                for (unsigned int i = 0; t + 2 > clear && i < 4; i++)
                    found |= take_infinite(&b[i]) << i % 2;
                mma_m16n8k16(result[2 * j], p, b);
                mma_m16n8k16(result[2 * j + 1], p, b + 2);
            }
            if (t + 2 > clear)
                add_infinite(l, found, s->limit, begin + t * TILE);
        }
}

/* out = result / l, and lse = m + log l in base 2. */
template <int ROOM>
static __device__ inline void end_strip(const float (*result)[4], const struct heads *h, unsigned int head,
                                        unsigned int first, struct two_rows m, struct two_rows l)
{
    struct slice<__nv_bfloat16> out = result_of<__nv_bfloat16>(h, h->out, head);
    l = {warp_sum(l.upper, 4), warp_sum(l.lower, 4)};
#pragma unroll
    for (unsigned int j = 0; j < ROOM / STRIP; j++)
        store_tiles(out, first, j * STRIP, &result[2 * j], 1 / l.upper, 1 / l.lower);
    if (h->lse == NULL || lane() % 4 != 0)
        return;
    unsigned int row = first + lane() / 4;
    if (row < h->queries)
        h->lse[head * h->queries + row] = m.upper + log2f(l.upper);
    if (row + 8 < h->queries)
        h->lse[head * h->queries + row + 8] = m.lower + log2f(l.lower);
}

static __device__ inline struct two_rows scaled_by(struct two_rows m, float scale)
{
    return {scale * warp_max(m.upper, 4), scale * warp_max(m.lower, 4)};
}

/* All keys at once. */
template <int ROOM, int TILES>
static __global__ void __launch_bounds__(most_warps(TILES) * WARP, blocks_at_once(ROOM, TILES))
    attend_at_once(struct heads h, struct division d)
{
    struct head_row<ROOM> *keys = shared_rows<ROOM>(), *values = keys + d.heads * d.keys;
    unsigned int warp = threadIdx.x / WARP, own = warp / d.warps, begin = blockIdx.x * d.heads, head = begin + own;
    for (unsigned int i = 0; i < d.heads && begin + i < d.all; i++) {
        copy_rows<ROOM>(keys + i * d.keys, d.keys, slice_of<__nv_bfloat16>(&h, h.qkv, begin + i, 1), 0);
        copy_rows<ROOM>(values + i * d.keys, d.keys, slice_of<__nv_bfloat16>(&h, h.qkv, begin + i, 2), 0);
    }
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    if (own >= d.heads || head >= d.all)
        return;
    for (unsigned int first = warp % d.warps * STRIP; first < h.queries; first += d.warps * STRIP) {
        float scores[TILES][4], result[ROOM / TILE][4] = {}, scale = h.scale * LOG2_E;
        struct strip<ROOM> s;
        begin_strip(&s, &h, head, first);
        score<ROOM, TILES>(scores, &s, keys + own * d.keys, 0);
        struct two_rows m = scaled_by(highest<TILES>(scores, {-INFINITY, -INFINITY}), scale), l = {0, 0};
        weigh<ROOM, TILES>(result, &l, scores, m, scale, &s, 0, values + own * d.keys);
        end_strip<ROOM>(result, &h, head, first, m, l);
    }
}

/* A piece of the keys and, unless NULL, of the values. */
template <int ROOM>
static __device__ inline void load_piece(const struct heads *h, unsigned int head, unsigned int begin,
                                         struct head_row<ROOM> *keys, struct head_row<ROOM> *values)
{
    __syncthreads(); /* nobody reads the piece before any more */
    copy_rows<ROOM>(keys, PIECE, slice_of<__nv_bfloat16>(h, h->qkv, head, 1), begin);
    if (values != NULL)
        copy_rows<ROOM>(values, PIECE, slice_of<__nv_bfloat16>(h, h->qkv, head, 2), begin);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
}

/* One strip a warp, any number of keys. */
template <int ROOM>
static __global__ void __launch_bounds__(most_warps(PIECE_TILES) * WARP, blocks_at_once(ROOM, PIECE_TILES))
    attend_by_pieces(struct heads h)
{
    struct head_row<ROOM> *keys = shared_rows<ROOM>(), *values = keys + PIECE;
    unsigned int head = blockIdx.x, warps = blockDim.x / WARP, first = blockIdx.y * warps * STRIP,
                 last = first + warps * STRIP;
    unsigned int end = h.causal && h.rows == NULL && last < h.positions ? last : h.positions;
    float scores[PIECE_TILES][4], result[ROOM / TILE][4] = {}, scale = h.scale * LOG2_E;
    struct strip<ROOM> s;
    struct two_rows m = {-INFINITY, -INFINITY}, l = {0, 0};
    begin_strip(&s, &h, head, first + threadIdx.x / WARP * STRIP);
    for (unsigned int begin = 0; begin < end; begin += PIECE) {
        load_piece<ROOM>(&h, head, begin, keys, NULL);
        score<ROOM, PIECE_TILES>(scores, &s, keys, begin);
        m = highest<PIECE_TILES>(scores, m);
    }
    m = scaled_by(m, scale);
    for (unsigned int begin = 0; begin < end; begin += PIECE) {
        load_piece<ROOM>(&h, head, begin, keys, values);
        score<ROOM, PIECE_TILES>(scores, &s, keys, begin);
        weigh<ROOM, PIECE_TILES>(result, &l, scores, m, scale, &s, begin, values);
    }
    end_strip<ROOM>(result, &h, head, s.first, m, l);
}

/* For as few rounds as do, and as even as they can be. */
static unsigned int warps_of(size_t strips, int tiles)
{
    return blocks_for(strips, blocks_for(strips, (size_t)most_warps(tiles)));
}

template <int ROOM, int TILES> static void attend_whole(struct cuda *cuda, const struct heads *h, size_t all)
{
    unsigned int keys = blocks_for(h->positions, STRIP) * STRIP, warps = warps_of(blocks_for(h->queries, STRIP), TILES);
    size_t bytes = 2 * keys * sizeof(struct head_row<ROOM>);
    struct division d = {heads_a_block(warps, bytes), warps, keys, (unsigned int)all};
    unsigned int used = d.heads * warps, threads = (used < FEW_WARPS ? FEW_WARPS : used) * WARP;
    CUDA_LAUNCH_LARGE(cuda, (attend_at_once<ROOM, TILES>), blocks_for(all, d.heads), threads, d.heads * bytes, *h, d);
}

template <int ROOM> static void attend_in(struct cuda *cuda, const struct heads *h, size_t all)
{
    size_t strips = blocks_for(h->queries, STRIP), keys = blocks_for(h->positions, STRIP) * STRIP;
    if (keys <= SHORT_TILES * TILE)
        return attend_whole<ROOM, SHORT_TILES>(cuda, h, all);
    if (keys <= LONG_TILES * TILE && 2 * keys * sizeof(struct head_row<ROOM>) <= CUDA_SHARED_BYTES)
        return attend_whole<ROOM, LONG_TILES>(cuda, h, all);
    unsigned int warps = warps_of(strips, PIECE_TILES);
    CUDA_LAUNCH_LARGE(cuda, attend_by_pieces<ROOM>, dim3((unsigned int)all, blocks_for(strips, warps)), warps * WARP,
                      2 * PIECE * sizeof(struct head_row<ROOM>), *h);
}

void cuda_attend_bf16(struct cuda *cuda, const struct heads *h, size_t batch)
{
    assert(((uintptr_t)h->qkv | (uintptr_t)h->out) % 16 == 0 && h->columns % EIGHT == 0);
    IN_ROOM(h->columns, attend_in, cuda, h, batch * h->count);
}

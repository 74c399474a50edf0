/* Attention of bf16 values on tensor cores. A block has 64 rows of one head, 16 a warp, and walks over columns by 32:
 * rows are queries and columns keys in the forward pass and for the queries' gradient, the other way round for the keys'
 * and the values'. Scores are computed twice rather than kept: first for each row's lse, then for the weights,
 * which so need no correction afterwards. Scores, sums and results are f32. */
#include <mma.h>

#include "models/cuda/attention.cuh"

using namespace nvcuda;

enum { ROWS = 64, COLUMNS = 32, THREADS = 128, FRAGMENT = 16 };
enum { LANES_A_ROW = 2, OWN = COLUMNS / LANES_A_ROW }; /* columns of a row of scores that a lane handles */
/* Leading dimensions, padded against bank conflicts; fragments begin at multiples of 32 bytes. */
enum { LD_SCORES = COLUMNS + 4, LD_WEIGHTS = COLUMNS + 8 };

using left = wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, wmma::row_major>;
using right = wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, wmma::row_major>;
using right_transposed = wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, wmma::col_major>;
using sums = wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, float>;

/* Two matrices of the rows' side, two of the columns'. ROOM, here and below: capacity in columns of a head. */
template <int ROOM> struct places {
    alignas(32) __nv_bfloat16 row[2][ROWS][ROOM + 8];
    union {
        struct {
            alignas(32) __nv_bfloat16 column[2][COLUMNS][ROOM + 8];
            alignas(32) float scores[ROWS][LD_SCORES];
        };
        alignas(32) float result[ROWS][ROOM + 4];
    };
    alignas(32) __nv_bfloat16 weights[ROWS][LD_WEIGHTS];
};

struct alignas(32) piece {
    unsigned char byte[32];
};

/* The places of a block, in the shared memory that its launch gave it. */
template <int ROOM> static __device__ inline struct places<ROOM> *shared_places() {
    DYNAMIC_SHARED(struct piece, memory);
    return (struct places<ROOM> *)memory;
}

/* A [L, columns] slice of the values of one head of one sample. */
struct slice {
    const __nv_bfloat16 *values;
    size_t stride;
};

static __device__ inline struct slice slice_of(const struct heads *h, size_t head, size_t part)
{
    return {(const __nv_bfloat16 *)h->qkv + (head / h->count * h->positions * 3 + part) * h->width +
                head % h->count * h->columns,
            3 * h->width};
}

static __device__ inline struct slice dout_of(const struct heads *h, size_t head)
{
    return {(const __nv_bfloat16 *)h->dout + head / h->count * h->positions * h->width + head % h->count * h->columns,
            h->width};
}

/* Rows from `first` on; those past the end are zero. */
template <int ROOM>
static __device__ void load_rows(__nv_bfloat16 (*to)[ROOM + 8], unsigned int rows, const struct heads *h,
                                 struct slice from, size_t first)
{
    for (unsigned int i = threadIdx.x; i < rows * (ROOM / EIGHT); i += THREADS) {
        size_t row = i / (ROOM / EIGHT), column = i % (ROOM / EIGHT) * EIGHT;
        float values[EIGHT] = {};
        if (first + row < h->positions && column < h->columns)
            load_eight(from.values, TENSOR_BF16, (first + row) * from.stride + column, values);
        store_eight(to[row], TENSOR_BF16, column, values);
    }
}

static __device__ inline unsigned int own_first_row()
{
    return threadIdx.x / WARP * FRAGMENT;
}

/* The row of the scores that this lane handles, every second column of it. */
static __device__ inline unsigned int own_row()
{
    return own_first_row() + lane() / LANES_A_ROW;
}

static __device__ inline unsigned int own_column(unsigned int number)
{
    return lane() % LANES_A_ROW + number * LANES_A_ROW;
}

/* scores[own rows] = row[side] · column[side]ᵀ */
template <int ROOM> static __device__ void score(struct places<ROOM> *s, int side)
{
    sums total[COLUMNS / FRAGMENT];
    for (unsigned int j = 0; j < COLUMNS / FRAGMENT; j++)
        wmma::fill_fragment(total[j], 0.0f);
    for (unsigned int k = 0; k < ROOM; k += FRAGMENT) {
        left a;
        wmma::load_matrix_sync(a, &s->row[side][own_first_row()][k], ROOM + 8);
        for (unsigned int j = 0; j < COLUMNS / FRAGMENT; j++) {
            right_transposed b;
            wmma::load_matrix_sync(b, &s->column[side][j * FRAGMENT][k], ROOM + 8);
            wmma::mma_sync(total[j], a, b, total[j]);
        }
    }
    __syncwarp(); /* other lanes may still read the scores before */
    for (unsigned int j = 0; j < COLUMNS / FRAGMENT; j++)
        wmma::store_matrix_sync(&s->scores[own_first_row()][j * FRAGMENT], total[j], LD_SCORES, wmma::mem_row_major);
    __syncwarp();
}

/* result += weights[own rows] · column[side] */
template <int ROOM> static __device__ void weigh(struct places<ROOM> *s, int side, sums result[ROOM / FRAGMENT])
{
    __syncwarp();
    for (unsigned int k = 0; k < COLUMNS; k += FRAGMENT) {
        left a;
        wmma::load_matrix_sync(a, &s->weights[own_first_row()][k], LD_WEIGHTS);
        for (unsigned int j = 0; j < ROOM / FRAGMENT; j++) {
            right b;
            wmma::load_matrix_sync(b, &s->column[side][k][j * FRAGMENT], ROOM + 8);
            wmma::mma_sync(result[j], a, b, result[j]);
        }
    }
    __syncwarp(); /* the weights may change again */
}

/* Stores the own rows of a result where their lanes can read them; no warp reads the columns' places afterwards. */
template <int ROOM> static __device__ void share_result(struct places<ROOM> *s, sums result[ROOM / FRAGMENT])
{
    __syncthreads();
    for (unsigned int j = 0; j < ROOM / FRAGMENT; j++)
        wmma::store_matrix_sync(&s->result[own_first_row()][j * FRAGMENT], result[j], ROOM + 4, wmma::mem_row_major);
    __syncwarp();
}

template <int ROOM> static __device__ inline void clear(sums result[ROOM / FRAGMENT])
{
    for (unsigned int j = 0; j < ROOM / FRAGMENT; j++)
        wmma::fill_fragment(result[j], 0.0f);
}

/* Writes half of an own row of a result to memory; returns its product with the same half of `other` (NULL: 0). */
template <int ROOM>
static __device__ float put_result(const struct places<ROOM> *s, const struct heads *h, __nv_bfloat16 *to,
                                   const __nv_bfloat16 *other)
{
    float product = 0;
    for (unsigned int j = lane() % LANES_A_ROW * (ROOM / LANES_A_ROW), end = j + ROOM / LANES_A_ROW;
         j < end && j < h->columns; j += EIGHT) {
        const float *from = &s->result[own_row()][j];
        float factor[EIGHT];
        if (to != NULL)
            store_eight(to, TENSOR_BF16, j, from);
        if (other != NULL)
            load_eight(other, TENSOR_BF16, j, factor);
        for (int i = 0; other != NULL && i < EIGHT; i++)
            product += from[i] * factor[i];
    }
    return product;
}

static __device__ inline size_t columns_seen(const struct heads *h, size_t first_row)
{
    return h->causal && first_row + ROWS < h->positions ? first_row + ROWS : h->positions;
}

/* lse of the own row: of its scores over all keys; row[0] has the queries. Uses column[0]. */
template <int ROOM>
static __device__ float lse_of_row(const struct heads *h, struct places<ROOM> *s, size_t head, size_t first)
{
    float m = -INFINITY, l = 0;
    for (size_t begin = 0; begin < columns_seen(h, first); begin += COLUMNS) {
        __syncthreads();
        load_rows<ROOM>(s->column[0], COLUMNS, h, slice_of(h, head, 1), begin);
        __syncthreads();
        score<ROOM>(s, 0);
        const float *scores = s->scores[own_row()];
        float m_new = m, sum = 0;
        for (unsigned int j = own_column(0); j < COLUMNS; j += LANES_A_ROW)
            if (sees(h, first + own_row(), begin + j))
                m_new = fmaxf(m_new, h->scale * scores[j]);
        for (unsigned int j = own_column(0); j < COLUMNS; j += LANES_A_ROW)
            if (sees(h, first + own_row(), begin + j))
                sum += expf(h->scale * scores[j] - m_new);
        l = (m_new > -INFINITY ? l * expf(m - m_new) : 0.0f) + sum;
        m = m_new;
    }
    float m_row = warp_max(m, LANES_A_ROW);
    l = warp_sum(m > -INFINITY ? l * expf(m - m_row) : 0.0f, LANES_A_ROW);
    return m_row + logf(l);
}

/* 64 queries: out, and for the backward pass lse and delta of each. */
template <int ROOM> static __global__ void attend(struct heads h)
{
    struct places<ROOM> *s = shared_places<ROOM>();
    size_t first = (size_t)blockIdx.y * ROWS, head = blockIdx.x, row = first + own_row();
    sums result[ROOM / FRAGMENT];
    load_rows<ROOM>(s->row[0], ROWS, &h, slice_of(&h, head, 0), first);
    float lse = lse_of_row<ROOM>(&h, s, head, first);
    clear<ROOM>(result);
    for (size_t begin = 0; begin < columns_seen(&h, first); begin += COLUMNS) {
        __syncthreads();
        load_rows<ROOM>(s->column[0], COLUMNS, &h, slice_of(&h, head, 1), begin);
        load_rows<ROOM>(s->column[1], COLUMNS, &h, slice_of(&h, head, 2), begin);
        __syncthreads();
        score<ROOM>(s, 0);
        for (unsigned int j = own_column(0); j < COLUMNS; j += LANES_A_ROW)
            s->weights[own_row()][j] =
                __float2bfloat16(sees(&h, row, begin + j) ? expf(h.scale * s->scores[own_row()][j] - lse) : 0.0f);
        weigh<ROOM>(s, 1, result);
    }
    share_result<ROOM>(s, result);
    bool here = row < h.positions;
    size_t at = (head / h.count * h.positions + row) * h.width + head % h.count * h.columns;
    float delta = put_result<ROOM>(s, &h, here && h.out != NULL ? (__nv_bfloat16 *)h.out + at : NULL,
                                   here && h.dout != NULL ? (const __nv_bfloat16 *)h.dout + at : NULL);
    delta = warp_sum(delta, LANES_A_ROW);
    if (here && h.lse != NULL && lane() % LANES_A_ROW == 0) {
        h.lse[head * h.positions + row] = lse;
        h.delta[head * h.positions + row] = delta;
    }
}

/* The weight of a key for a query. */
static __device__ inline float weight_of(const struct heads *h, size_t head, size_t query, size_t key, float score)
{
    return query < h->positions && sees(h, query, key) ? expf(h->scale * score - h->lse[head * h->positions + query])
                                                       : 0.0f;
}

static __device__ inline float slope_of(const struct heads *h, size_t head, size_t query, float weight, float dweight)
{
    return query < h->positions ? h->scale * weight * (dweight - h->delta[head * h->positions + query]) : 0.0f;
}

/* dq_i = Σ_j ds_ij k_j for 64 queries; rows: queries and dout; columns: keys and values */
template <int ROOM> static __global__ void query_gradients(struct heads h)
{
    struct places<ROOM> *s = shared_places<ROOM>();
    size_t first = (size_t)blockIdx.y * ROWS, head = blockIdx.x, row = first + own_row();
    sums result[ROOM / FRAGMENT];
    clear<ROOM>(result);
    load_rows<ROOM>(s->row[0], ROWS, &h, slice_of(&h, head, 0), first);
    load_rows<ROOM>(s->row[1], ROWS, &h, dout_of(&h, head), first);
    for (size_t begin = 0; begin < columns_seen(&h, first); begin += COLUMNS) {
        float weight[OWN];
        __syncthreads();
        load_rows<ROOM>(s->column[0], COLUMNS, &h, slice_of(&h, head, 1), begin);
        load_rows<ROOM>(s->column[1], COLUMNS, &h, slice_of(&h, head, 2), begin);
        __syncthreads();
        score<ROOM>(s, 0);
        for (unsigned int j = 0; j < OWN; j++)
            weight[j] = weight_of(&h, head, row, begin + own_column(j), s->scores[own_row()][own_column(j)]);
        score<ROOM>(s, 1);
        for (unsigned int j = 0; j < OWN; j++)
            s->weights[own_row()][own_column(j)] =
                __float2bfloat16(slope_of(&h, head, row, weight[j], s->scores[own_row()][own_column(j)]));
        weigh<ROOM>(s, 0, result);
    }
    share_result<ROOM>(s, result);
    if (row < h.positions)
        put_result<ROOM>(s, &h,
                         (__nv_bfloat16 *)h.dqkv + (head / h.count * h.positions + row) * 3 * h.width +
                             head % h.count * h.columns,
                         NULL);
}

/* dk_j = Σ_i ds_ij q_i and dv_j = Σ_i p_ij dout_i for 64 keys; rows: keys and values; columns: queries and dout */
template <int ROOM> static __global__ void key_gradients(struct heads h)
{
    struct places<ROOM> *s = shared_places<ROOM>();
    size_t first = (size_t)blockIdx.y * ROWS, head = blockIdx.x, row = first + own_row();
    sums dkey[ROOM / FRAGMENT], dvalue[ROOM / FRAGMENT];
    clear<ROOM>(dkey);
    clear<ROOM>(dvalue);
    load_rows<ROOM>(s->row[0], ROWS, &h, slice_of(&h, head, 1), first);
    load_rows<ROOM>(s->row[1], ROWS, &h, slice_of(&h, head, 2), first);
    for (size_t begin = h.causal ? first : 0; begin < h.positions; begin += COLUMNS) {
        float weight[OWN];
        __syncthreads();
        load_rows<ROOM>(s->column[0], COLUMNS, &h, slice_of(&h, head, 0), begin);
        load_rows<ROOM>(s->column[1], COLUMNS, &h, dout_of(&h, head), begin);
        __syncthreads();
        score<ROOM>(s, 0);
        for (unsigned int j = 0; j < OWN; j++) {
            weight[j] = weight_of(&h, head, begin + own_column(j), row, s->scores[own_row()][own_column(j)]);
            s->weights[own_row()][own_column(j)] = __float2bfloat16(weight[j]);
        }
        weigh<ROOM>(s, 1, dvalue);
        score<ROOM>(s, 1);
        for (unsigned int j = 0; j < OWN; j++)
            s->weights[own_row()][own_column(j)] = __float2bfloat16(
                slope_of(&h, head, begin + own_column(j), weight[j], s->scores[own_row()][own_column(j)]));
        weigh<ROOM>(s, 0, dkey);
    }
    __nv_bfloat16 *to = row < h.positions
                            ? (__nv_bfloat16 *)h.dqkv + (head / h.count * h.positions + row) * 3 * h.width +
                                  head % h.count * h.columns + h.width
                            : NULL;
    share_result<ROOM>(s, dkey);
    put_result<ROOM>(s, &h, to, NULL);
    __syncwarp();
    share_result<ROOM>(s, dvalue);
    put_result<ROOM>(s, &h, to != NULL ? to + h.width : NULL, NULL);
}

template <int ROOM> static void attend_in(struct cuda *cuda, const struct heads *h, dim3 grid)
{
    CUDA_LAUNCH_LARGE(cuda, attend<ROOM>, grid, THREADS, sizeof(struct places<ROOM>), *h);
}

template <int ROOM> static void gradients_in(struct cuda *cuda, const struct heads *h, dim3 grid)
{
    CUDA_LAUNCH_LARGE(cuda, query_gradients<ROOM>, grid, THREADS, sizeof(struct places<ROOM>), *h);
    CUDA_LAUNCH_LARGE(cuda, key_gradients<ROOM>, grid, THREADS, sizeof(struct places<ROOM>), *h);
}

static dim3 grid_of(const struct heads *h, size_t batch)
{
    return dim3((unsigned int)(batch * h->count), blocks_for(h->positions, ROWS));
}

void cuda_attend_bf16(struct cuda *cuda, const struct heads *h, size_t batch)
{
    IN_ROOM(h->columns, attend_in, cuda, h, grid_of(h, batch));
}

void cuda_attention_gradients_bf16(struct cuda *cuda, const struct heads *h, size_t batch)
{
    IN_ROOM(h->columns, gradients_in, cuda, h, grid_of(h, batch));
}

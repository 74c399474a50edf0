/* Attention of bf16 values on tensor cores. A block has 64 rows of one head, 16 a warp, and walks over columns by 32:
 * rows are queries and columns keys in the forward pass and for the queries' gradient, the other way round for the keys'
 * and the values'. Scores are computed twice rather than kept: first for each row's log Σ exp, then for the weights,
 * which so need no correction afterwards. Scores, sums and results are f32. */
#include <mma.h>

#include "models/cuda/attention.cuh"

using namespace nvcuda;

enum { ROWS = 64, COLUMNS = 32, THREADS = 128, FRAGMENT = 16 };
enum { LANES_A_ROW = 2, OWN = COLUMNS / LANES_A_ROW }; /* columns of a row of scores that a lane looks after */
/* Padded against bank conflicts; fragments begin at multiples of 32 bytes. */
enum { ALONG_HEAD = HEAD + 8, ALONG_SCORES = COLUMNS + 4, ALONG_WEIGHTS = COLUMNS + 8, ALONG_RESULT = HEAD + 4 };

using left = wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, wmma::row_major>;
using right = wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, wmma::row_major>;
using right_transposed = wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, wmma::col_major>;
using sums = wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, float>;

/* Two matrices of the rows' side, two of the columns'. */
struct places {
    alignas(32) __nv_bfloat16 row[2][ROWS][ALONG_HEAD];
    union {
        struct {
            alignas(32) __nv_bfloat16 column[2][COLUMNS][ALONG_HEAD];
            alignas(32) float scores[ROWS][ALONG_SCORES];
        };
        alignas(32) float result[ROWS][ALONG_RESULT];
    };
    alignas(32) __nv_bfloat16 weights[ROWS][ALONG_WEIGHTS];
};

/* A [L, 64] slice of the values of one head of one sample. */
struct slice {
    const __nv_bfloat16 *values;
    size_t stride;
};

static __device__ inline struct slice slice_of(const struct heads *h, size_t head, size_t part)
{
    return {(const __nv_bfloat16 *)h->qkv + (head / h->count * h->positions * 3 + part) * h->width +
                head % h->count * HEAD,
            3 * h->width};
}

static __device__ inline struct slice dout_of(const struct heads *h, size_t head)
{
    return {(const __nv_bfloat16 *)h->dout + head / h->count * h->positions * h->width + head % h->count * HEAD,
            h->width};
}

/* Rows from `first` on; those past the end are zero. */
static __device__ void load_rows(__nv_bfloat16 (*to)[ALONG_HEAD], unsigned int rows, struct slice from, size_t first,
                                 size_t positions)
{
    for (unsigned int i = threadIdx.x; i < rows * (HEAD / EIGHT); i += THREADS) {
        size_t row = i / (HEAD / EIGHT), column = i % (HEAD / EIGHT) * EIGHT;
        float values[EIGHT] = {};
        if (first + row < positions)
            load_eight(from.values, TENSOR_BF16, (first + row) * from.stride + column, values);
        store_eight(to[row], TENSOR_BF16, column, values);
    }
}

static __device__ inline unsigned int own_first_row()
{
    return threadIdx.x / WARP * FRAGMENT;
}

/* The row of the scores that this lane looks after, and every second column of it. */
static __device__ inline unsigned int own_row()
{
    return own_first_row() + lane() / LANES_A_ROW;
}

static __device__ inline unsigned int own_column(unsigned int number)
{
    return lane() % LANES_A_ROW + number * LANES_A_ROW;
}

/* scores[own rows] = row[side] · column[side]ᵀ */
static __device__ void score(struct places *s, int side)
{
    sums total[COLUMNS / FRAGMENT];
    for (unsigned int j = 0; j < COLUMNS / FRAGMENT; j++)
        wmma::fill_fragment(total[j], 0.0f);
    for (unsigned int k = 0; k < HEAD; k += FRAGMENT) {
        left a;
        wmma::load_matrix_sync(a, &s->row[side][own_first_row()][k], ALONG_HEAD);
        for (unsigned int j = 0; j < COLUMNS / FRAGMENT; j++) {
            right_transposed b;
            wmma::load_matrix_sync(b, &s->column[side][j * FRAGMENT][k], ALONG_HEAD);
            wmma::mma_sync(total[j], a, b, total[j]);
        }
    }
    __syncwarp(); /* whoever still reads the scores before */
    for (unsigned int j = 0; j < COLUMNS / FRAGMENT; j++)
        wmma::store_matrix_sync(&s->scores[own_first_row()][j * FRAGMENT], total[j], ALONG_SCORES, wmma::mem_row_major);
    __syncwarp();
}

/* result += weights[own rows] · column[side] */
static __device__ void weigh(struct places *s, int side, sums result[HEAD / FRAGMENT])
{
    __syncwarp();
    for (unsigned int k = 0; k < COLUMNS; k += FRAGMENT) {
        left a;
        wmma::load_matrix_sync(a, &s->weights[own_first_row()][k], ALONG_WEIGHTS);
        for (unsigned int j = 0; j < HEAD / FRAGMENT; j++) {
            right b;
            wmma::load_matrix_sync(b, &s->column[side][k][j * FRAGMENT], ALONG_HEAD);
            wmma::mma_sync(result[j], a, b, result[j]);
        }
    }
    __syncwarp(); /* the weights may change again */
}

/* The own rows of a result where their lanes can read them; nobody may need the columns' places any more. */
static __device__ void share_result(struct places *s, sums result[HEAD / FRAGMENT])
{
    __syncthreads();
    for (unsigned int j = 0; j < HEAD / FRAGMENT; j++)
        wmma::store_matrix_sync(&s->result[own_first_row()][j * FRAGMENT], result[j], ALONG_RESULT,
                                wmma::mem_row_major);
    __syncwarp();
}

static __device__ inline void clear(sums result[HEAD / FRAGMENT])
{
    for (unsigned int j = 0; j < HEAD / FRAGMENT; j++)
        wmma::fill_fragment(result[j], 0.0f);
}

/* Half of an own row of a result, to memory; returns its product with the same half of `along` (NULL: 0). */
static __device__ float put_result(const struct places *s, __nv_bfloat16 *to, const __nv_bfloat16 *along)
{
    float product = 0;
    for (unsigned int j = lane() % LANES_A_ROW * (HEAD / LANES_A_ROW), end = j + HEAD / LANES_A_ROW; j < end;
         j += EIGHT) {
        const float *from = &s->result[own_row()][j];
        float other[EIGHT];
        if (to != NULL)
            store_eight(to, TENSOR_BF16, j, from);
        if (along != NULL)
            load_eight(along, TENSOR_BF16, j, other);
        for (int i = 0; along != NULL && i < EIGHT; i++)
            product += from[i] * other[i];
    }
    return product;
}

static __device__ inline size_t columns_seen(const struct heads *h, size_t first_row)
{
    return h->causal && first_row + ROWS < h->positions ? first_row + ROWS : h->positions;
}

/* log Σ exp of the own row's scores over all keys; row[0] has the queries. Uses column[0]. */
static __device__ float log_sum(const struct heads *h, struct places *s, size_t head, size_t first)
{
    float most = -INFINITY, total = 0;
    for (size_t begin = 0; begin < columns_seen(h, first); begin += COLUMNS) {
        __syncthreads();
        load_rows(s->column[0], COLUMNS, slice_of(h, head, 1), begin, h->positions);
        __syncthreads();
        score(s, 0);
        const float *scores = s->scores[own_row()];
        float highest = most, sum = 0;
        for (unsigned int j = own_column(0); j < COLUMNS; j += LANES_A_ROW)
            if (sees(h, first + own_row(), begin + j))
                highest = fmaxf(highest, SCALE * scores[j]);
        for (unsigned int j = own_column(0); j < COLUMNS; j += LANES_A_ROW)
            if (sees(h, first + own_row(), begin + j))
                sum += expf(SCALE * scores[j] - highest);
        total = (highest > -INFINITY ? total * expf(most - highest) : 0.0f) + sum;
        most = highest;
    }
    float highest = warp_max(most, LANES_A_ROW);
    total = warp_sum(most > -INFINITY ? total * expf(most - highest) : 0.0f, LANES_A_ROW);
    return highest + logf(total);
}

/* 64 queries: out, and for the backward pass log Σ exp and dout · out of each. */
static __global__ void attend(struct heads h)
{
    __shared__ struct places s;
    size_t first = (size_t)blockIdx.y * ROWS, head = blockIdx.x, row = first + own_row();
    sums result[HEAD / FRAGMENT];
    load_rows(s.row[0], ROWS, slice_of(&h, head, 0), first, h.positions);
    float log_total = log_sum(&h, &s, head, first);
    clear(result);
    for (size_t begin = 0; begin < columns_seen(&h, first); begin += COLUMNS) {
        __syncthreads();
        load_rows(s.column[0], COLUMNS, slice_of(&h, head, 1), begin, h.positions);
        load_rows(s.column[1], COLUMNS, slice_of(&h, head, 2), begin, h.positions);
        __syncthreads();
        score(&s, 0);
        for (unsigned int j = own_column(0); j < COLUMNS; j += LANES_A_ROW)
            s.weights[own_row()][j] =
                __float2bfloat16(sees(&h, row, begin + j) ? expf(SCALE * s.scores[own_row()][j] - log_total) : 0.0f);
        weigh(&s, 1, result);
    }
    share_result(&s, result);
    bool here = row < h.positions;
    size_t at = (head / h.count * h.positions + row) * h.width + head % h.count * HEAD;
    float along = put_result(&s, here && h.out != NULL ? (__nv_bfloat16 *)h.out + at : NULL,
                             here && h.dout != NULL ? (const __nv_bfloat16 *)h.dout + at : NULL);
    along = warp_sum(along, LANES_A_ROW);
    if (here && h.log_sums != NULL && lane() % LANES_A_ROW == 0) {
        h.log_sums[head * h.positions + row] = log_total;
        h.alongs[head * h.positions + row] = along;
    }
}

/* What a weight and its slope need of a query. */
static __device__ inline float weight_of(const struct heads *h, size_t head, size_t query, size_t key, float score)
{
    return query < h->positions && sees(h, query, key) ? expf(SCALE * score - h->log_sums[head * h->positions + query])
                                                       : 0.0f;
}

static __device__ inline float slope_of(const struct heads *h, size_t head, size_t query, float weight, float dweight)
{
    return query < h->positions ? SCALE * weight * (dweight - h->alongs[head * h->positions + query]) : 0.0f;
}

/* dq_i = Σ_j ds_ij k_j for 64 queries; rows: queries and dout; columns: keys and values */
static __global__ void query_gradients(struct heads h)
{
    __shared__ struct places s;
    size_t first = (size_t)blockIdx.y * ROWS, head = blockIdx.x, row = first + own_row();
    sums result[HEAD / FRAGMENT];
    clear(result);
    load_rows(s.row[0], ROWS, slice_of(&h, head, 0), first, h.positions);
    load_rows(s.row[1], ROWS, dout_of(&h, head), first, h.positions);
    for (size_t begin = 0; begin < columns_seen(&h, first); begin += COLUMNS) {
        float weight[OWN];
        __syncthreads();
        load_rows(s.column[0], COLUMNS, slice_of(&h, head, 1), begin, h.positions);
        load_rows(s.column[1], COLUMNS, slice_of(&h, head, 2), begin, h.positions);
        __syncthreads();
        score(&s, 0);
        for (unsigned int j = 0; j < OWN; j++)
            weight[j] = weight_of(&h, head, row, begin + own_column(j), s.scores[own_row()][own_column(j)]);
        score(&s, 1);
        for (unsigned int j = 0; j < OWN; j++)
            s.weights[own_row()][own_column(j)] =
                __float2bfloat16(slope_of(&h, head, row, weight[j], s.scores[own_row()][own_column(j)]));
        weigh(&s, 0, result);
    }
    share_result(&s, result);
    if (row < h.positions)
        put_result(&s,
                   (__nv_bfloat16 *)h.dqkv + (head / h.count * h.positions + row) * 3 * h.width + head % h.count * HEAD,
                   NULL);
}

/* dk_j = Σ_i ds_ij q_i and dv_j = Σ_i p_ij dout_i for 64 keys; rows: keys and values; columns: queries and dout */
static __global__ void key_gradients(struct heads h)
{
    __shared__ struct places s;
    size_t first = (size_t)blockIdx.y * ROWS, head = blockIdx.x, row = first + own_row();
    sums dkey[HEAD / FRAGMENT], dvalue[HEAD / FRAGMENT];
    clear(dkey);
    clear(dvalue);
    load_rows(s.row[0], ROWS, slice_of(&h, head, 1), first, h.positions);
    load_rows(s.row[1], ROWS, slice_of(&h, head, 2), first, h.positions);
    for (size_t begin = h.causal ? first : 0; begin < h.positions; begin += COLUMNS) {
        float weight[OWN];
        __syncthreads();
        load_rows(s.column[0], COLUMNS, slice_of(&h, head, 0), begin, h.positions);
        load_rows(s.column[1], COLUMNS, dout_of(&h, head), begin, h.positions);
        __syncthreads();
        score(&s, 0);
        for (unsigned int j = 0; j < OWN; j++) {
            weight[j] = weight_of(&h, head, begin + own_column(j), row, s.scores[own_row()][own_column(j)]);
            s.weights[own_row()][own_column(j)] = __float2bfloat16(weight[j]);
        }
        weigh(&s, 1, dvalue);
        score(&s, 1);
        for (unsigned int j = 0; j < OWN; j++)
            s.weights[own_row()][own_column(j)] = __float2bfloat16(
                slope_of(&h, head, begin + own_column(j), weight[j], s.scores[own_row()][own_column(j)]));
        weigh(&s, 0, dkey);
    }
    __nv_bfloat16 *to = row < h.positions
                            ? (__nv_bfloat16 *)h.dqkv + (head / h.count * h.positions + row) * 3 * h.width +
                                  head % h.count * HEAD + h.width
                            : NULL;
    share_result(&s, dkey);
    put_result(&s, to, NULL);
    __syncwarp();
    share_result(&s, dvalue);
    put_result(&s, to != NULL ? to + h.width : NULL, NULL);
}

static dim3 grid_of(const struct heads *h, size_t batch)
{
    return dim3((unsigned int)(batch * h->count), blocks_for(h->positions, ROWS));
}

void cuda_attend_bf16(struct cuda *cuda, const struct heads *h, size_t batch)
{
    CUDA_LAUNCH(cuda, attend, grid_of(h, batch), THREADS, 0, *h);
}

void cuda_attention_gradients_bf16(struct cuda *cuda, const struct heads *h, size_t batch)
{
    CUDA_LAUNCH(cuda, query_gradients, grid_of(h, batch), THREADS, 0, *h);
    CUDA_LAUNCH(cuda, key_gradients, grid_of(h, batch), THREADS, 0, *h);
}

/* Products grouped by expert on tensor cores, through the warp-wide matrix operations of CUDA's mma.h. Four warps of a
 * block have a quarter of its tile each, 32 × 32; operands come through shared memory, rounded on the way. */
#include <mma.h>

#include "models/cuda/group.cuh"

using namespace nvcuda;

enum { THREADS = 128, DEPTH = 32, QUARTER = 32, FRAGMENT = 16, PARTS = QUARTER / FRAGMENT };
/* Padded against bank conflicts; fragments begin at multiples of 32 bytes. */
enum { LD_DEPTH = DEPTH + 8, LD_TILE = GROUP_TILE + 8, LD_RESULT = GROUP_TILE + 4 };

/* Operands as their rows lie, [64, 32], or across them, [32, 64]. */
union tiles {
    struct {
        alignas(32) __nv_bfloat16 a[GROUP_TILE * LD_DEPTH], b[GROUP_TILE * LD_DEPTH];
    } operands;
    alignas(32) float result[GROUP_TILE][LD_RESULT];
};

/* Rows [first, first + rows) below `last` and columns [column, column + columns) of a matrix, zero where it has none;
 * transposed: to[column][row]. */
struct part {
    size_t first, last, column;
    unsigned int rows, columns;
    bool transposed;
};

static __device__ void load_part(__nv_bfloat16 *to, size_t stride, struct typed_rows from, bool by_eight,
                                 struct part part)
{
    unsigned int across = part.columns / EIGHT;
    for (unsigned int i = threadIdx.x; i < part.rows * across; i += THREADS) {
        size_t r = i / across, c = i % across * EIGHT, row = part.first + r, column = part.column + c;
        float values[EIGHT] = {};
        if (row < part.last && by_eight && column < from.columns)
            load_eight(from.data, from.type, row * from.stride + column, values);
        else if (row < part.last)
            for (size_t n = 0; n < EIGHT && column + n < from.columns; n++)
                values[n] = row_value(from, row, column + n);
        if (!part.transposed)
            store_eight(to, TENSOR_BF16, r * stride + c, values);
        else
            for (size_t n = 0; n < EIGHT; n++)
                to[(c + n) * stride + r] = __float2bfloat16(values[n]);
    }
}

using sums = wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, float>;
using by_row = wmma::row_major;
using by_column = wmma::col_major;

/* The warp's quarter of the tile: rows from quarter_row() on, columns from quarter_column() on. */
static __device__ inline unsigned int quarter_row()
{
    return threadIdx.x / WARP / 2 * QUARTER;
}

static __device__ inline unsigned int quarter_column()
{
    return threadIdx.x / WARP % 2 * QUARTER;
}

/* An operand in shared memory: the distances of neighbours along the tile and along the depth; one of them is 1. */
struct operand {
    const __nv_bfloat16 *values;
    unsigned int along, deep;
};

/* total += a b over DEPTH */
template <typename LayoutA, typename LayoutB>
static __device__ inline void multiply(struct operand a, struct operand b, sums total[PARTS][PARTS])
{
    unsigned int lda = a.along > a.deep ? a.along : a.deep, ldb = b.along > b.deep ? b.along : b.deep;
    for (unsigned int k = 0; k < DEPTH; k += FRAGMENT) {
        wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, LayoutA> rows[PARTS];
        wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, __nv_bfloat16, LayoutB> columns[PARTS];
        for (unsigned int p = 0; p < PARTS; p++) {
            unsigned int i = quarter_row() + p * FRAGMENT, j = quarter_column() + p * FRAGMENT;
            wmma::load_matrix_sync(rows[p], a.values + i * a.along + k * a.deep, lda);
            wmma::load_matrix_sync(columns[p], b.values + j * b.along + k * b.deep, ldb);
        }
        for (unsigned int i = 0; i < PARTS; i++)
            for (unsigned int j = 0; j < PARTS; j++)
                wmma::mma_sync(total[i][j], rows[i], columns[j], total[i][j]);
    }
}

static __device__ inline void clear(sums total[PARTS][PARTS])
{
    for (unsigned int i = 0; i < PARTS; i++)
        for (unsigned int j = 0; j < PARTS; j++)
            wmma::fill_fragment(total[i][j], 0.0f);
}

/* The tile's sums where every thread of the block can read them. */
static __device__ inline void share(union tiles *shared, sums total[PARTS][PARTS])
{
    for (unsigned int i = 0; i < PARTS; i++)
        for (unsigned int j = 0; j < PARTS; j++)
            wmma::store_matrix_sync(&shared->result[quarter_row() + i * FRAGMENT][quarter_column() + j * FRAGMENT],
                                    total[i][j], LD_RESULT, wmma::mem_row_major);
    __syncthreads();
}

/* out[rows of e] = act(a[rows of e] · op(b[e]) + bias[e]) */
static __global__ void group_rows(struct group g, bool a_by_eight, bool b_by_eight)
{
    __shared__ union tiles shared;
    size_t e, within;
    if (!find_tile(&g, blockIdx.x, &e, &within))
        return;
    size_t row = (size_t)g.offsets[e] * g.rows_per_slot + within * GROUP_TILE,
           end = (size_t)g.offsets[e + 1] * g.rows_per_slot, column = (size_t)blockIdx.y * GROUP_TILE;
    struct typed_rows b = g.b;
    b.columns = b.stride = g.transpose_b ? g.k : g.n;
    size_t skipped = e * (g.transpose_b ? g.n : g.k); /* rows of the experts before */
    sums total[PARTS][PARTS];
    clear(total);
    for (size_t k = 0; k < g.k; k += DEPTH) {
        load_part(shared.operands.a, LD_DEPTH, g.a, a_by_eight, {row, end, k, GROUP_TILE, DEPTH, false});
        if (g.transpose_b)
            load_part(shared.operands.b, LD_DEPTH, b, b_by_eight,
                      {skipped + column, skipped + g.n, k, GROUP_TILE, DEPTH, false});
        else
            load_part(shared.operands.b, LD_DEPTH, b, b_by_eight,
                      {skipped + k, skipped + g.k, column, DEPTH, GROUP_TILE, true});
        __syncthreads();
        multiply<by_row, by_column>({shared.operands.a, LD_DEPTH, 1}, {shared.operands.b, LD_DEPTH, 1}, total);
        __syncthreads();
    }
    share(&shared, total);
    for (unsigned int i = threadIdx.x; i < GROUP_TILE * GROUP_TILE; i += THREADS) {
        size_t r = row + i / GROUP_TILE, c = column + i % GROUP_TILE;
        if (r < end && c < g.n)
            set_row_value(g.out, r, c,
                          activated(g.activation, shared.result[i / GROUP_TILE][i % GROUP_TILE] +
                                                      (g.bias != NULL ? g.bias[e * g.n + c] : 0.0f)));
    }
}

/* out[e] += aᵀ[rows of e] · b[rows of e]; a block has a tile of one expert's gradient and walks over its rows. */
static __global__ void group_weights(struct group g, bool a_by_eight, bool b_by_eight)
{
    __shared__ union tiles shared;
    size_t e = blockIdx.z, begin = (size_t)g.offsets[e] * g.rows_per_slot,
           end = (size_t)g.offsets[e + 1] * g.rows_per_slot, row = (size_t)blockIdx.y * GROUP_TILE,
           column = (size_t)blockIdx.x * GROUP_TILE;
    if (begin == end || is_frozen(&g, e))
        return;
    sums total[PARTS][PARTS];
    clear(total);
    for (size_t first = begin; first < end; first += DEPTH) {
        load_part(shared.operands.a, LD_TILE, g.a, a_by_eight, {first, end, row, DEPTH, GROUP_TILE, false});
        load_part(shared.operands.b, LD_TILE, g.b, b_by_eight, {first, end, column, DEPTH, GROUP_TILE, false});
        __syncthreads();
        multiply<by_column, by_row>({shared.operands.a, 1, LD_TILE}, {shared.operands.b, 1, LD_TILE}, total);
        __syncthreads();
    }
    share(&shared, total);
    float *out = (float *)g.out.data;
    for (unsigned int i = threadIdx.x; i < GROUP_TILE * GROUP_TILE; i += THREADS) {
        size_t r = row + i / GROUP_TILE, c = column + i % GROUP_TILE;
        if (r < g.k && c < g.n)
            out[(e * g.k + r) * g.n + c] += shared.result[i / GROUP_TILE][i % GROUP_TILE];
    }
}

void cuda_group_rows_bf16(struct cuda *cuda, const struct group *g, dim3 grid)
{
    struct typed_rows b = g->b;
    b.columns = b.stride = g->transpose_b ? g->k : g->n;
    CUDA_LAUNCH(cuda, group_rows, grid, THREADS, 0, *g, goes_by_eight(g->a), goes_by_eight(b));
}

void cuda_group_weights_bf16(struct cuda *cuda, const struct group *g, dim3 grid)
{
    CUDA_LAUNCH(cuda, group_weights, grid, THREADS, 0, *g, goes_by_eight(g->a), goes_by_eight(g->b));
}

/* Products grouped by expert on tensor cores; operands come through shared memory, rounded on the way. */
#include "models/cuda/group.cuh"
#include "models/cuda/tile.cuh"

enum { LD = padded<__nv_bfloat16, GROUP_TILE>, LD_RESULT = GROUP_TILE + EIGHT };

union tiles {
    struct {
        alignas(16) __nv_bfloat16 a[GROUP_TILE * LD], b[GROUP_TILE * LD];
    } operands;
    float result[GROUP_TILE * LD_RESULT];
};

/* 64 rows from `first` on, below `last`, and 64 columns of a matrix; zero where it has none */
static __device__ void load_part(__nv_bfloat16 *to, struct typed_rows from, bool by_eight, size_t first, size_t last,
                                 size_t column)
{
    enum { ACROSS = GROUP_TILE / EIGHT };
    for (unsigned int i = threadIdx.x; i < GROUP_TILE * ACROSS; i += TILE_THREADS) {
        size_t row = first + i / ACROSS, own = column + i % ACROSS * EIGHT;
        float values[EIGHT] = {};
        if (row < last && by_eight && own < from.columns)
            load_eight(from.data, from.type, row * from.stride + own, values);
        else if (row < last)
            for (size_t n = 0; n < EIGHT && own + n < from.columns; n++)
                values[n] = row_value(from, row, own + n);
        store_eight(to, TENSOR_BF16, i / ACROSS * LD + i % ACROSS * EIGHT, values);
    }
}

/* total += a b of the operands in shared memory, before others take their place */
template <bool A_DEEP, bool B_DEEP>
static __device__ inline void multiply(struct tile<__nv_bfloat16, GROUP_TILE, A_DEEP, B_DEEP> *total,
                                       const union tiles *shared)
{
    __syncthreads();
    total->multiply(shared->operands.a, LD, shared->operands.b, LD, GROUP_TILE, GROUP_TILE);
    __syncthreads();
}

/* out[rows of e] = act(a[rows of e] · op(b[e]) + bias[e]); b: the rows of all experts */
template <bool TRANSPOSE_B>
static __global__ void group_rows(struct group g, struct typed_rows b, bool a_by_eight, bool b_by_eight)
{
    __shared__ union tiles shared;
    size_t e, within;
    if (!find_tile(&g, blockIdx.x, &e, &within))
        return;
    size_t row = (size_t)g.offsets[e] * g.rows_per_slot + within * GROUP_TILE,
           end = (size_t)g.offsets[e + 1] * g.rows_per_slot, column = (size_t)blockIdx.y * GROUP_TILE;
    size_t begin = e * (TRANSPOSE_B ? g.n : g.k), last = begin + (TRANSPOSE_B ? g.n : g.k);
    struct tile<__nv_bfloat16, GROUP_TILE, true, TRANSPOSE_B> total;
    total.clear();
    for (size_t k = 0; k < g.k; k += GROUP_TILE) {
        load_part(shared.operands.a, g.a, a_by_eight, row, end, k);
        load_part(shared.operands.b, b, b_by_eight, begin + (TRANSPOSE_B ? column : k), last, TRANSPOSE_B ? k : column);
        multiply(&total, &shared);
    }
    total.store(shared.result, LD_RESULT, GROUP_TILE);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < GROUP_TILE * GROUP_TILE; i += TILE_THREADS) {
        size_t r = row + i / GROUP_TILE, c = column + i % GROUP_TILE;
        float sum = shared.result[i / GROUP_TILE * LD_RESULT + i % GROUP_TILE];
        if (r < end && c < g.n)
            set_row_value(g.out, r, c, activated(g.activation, g.bias != NULL ? sum + g.bias[e * g.n + c] : sum));
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
    struct tile<__nv_bfloat16, GROUP_TILE, false, false> total;
    total.clear();
    for (size_t first = begin; first < end; first += GROUP_TILE) {
        load_part(shared.operands.a, g.a, a_by_eight, first, end, row);
        load_part(shared.operands.b, g.b, b_by_eight, first, end, column);
        multiply(&total, &shared);
    }
    total.store(shared.result, LD_RESULT, GROUP_TILE);
    __syncthreads();
    float *out = (float *)g.out.data;
    for (unsigned int i = threadIdx.x; i < GROUP_TILE * GROUP_TILE; i += TILE_THREADS) {
        size_t r = row + i / GROUP_TILE, c = column + i % GROUP_TILE;
        if (r < g.k && c < g.n)
            out[(e * g.k + r) * g.n + c] += shared.result[i / GROUP_TILE * LD_RESULT + i % GROUP_TILE];
    }
}

void cuda_group_rows_bf16(struct cuda *cuda, const struct group *g, dim3 grid)
{
    struct typed_rows b = g->b;
    b.columns = b.stride = g->transpose_b ? g->k : g->n;
    if (g->transpose_b)
        CUDA_LAUNCH(cuda, group_rows<true>, grid, TILE_THREADS, 0, *g, b, goes_by_eight(g->a), goes_by_eight(b));
    else
        CUDA_LAUNCH(cuda, group_rows<false>, grid, TILE_THREADS, 0, *g, b, goes_by_eight(g->a), goes_by_eight(b));
}

void cuda_group_weights_bf16(struct cuda *cuda, const struct group *g, dim3 grid)
{
    CUDA_LAUNCH(cuda, group_weights, grid, TILE_THREADS, 0, *g, goes_by_eight(g->a), goes_by_eight(g->b));
}

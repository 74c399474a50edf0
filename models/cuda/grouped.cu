/* Products grouped by expert, in one launch for all experts. Operands come through shared memory, in bf16 precision rounded on
 * the way. */
#include "models/cuda/tile.cuh"

enum { GROUP_TILE = 64 }; /* a block has 64 × 64 values of the result */

struct group {
    size_t groups, rows_per_slot;
    const int32_t *offsets, *frozen;
    struct typed_rows a, b, out; /* b of GROUPED_ROWS: the first expert's */
    const float *bias;
    size_t n, k; /* of GROUPED_ROWS: columns of out and of a; of GROUPED_WEIGHTS: columns of b and of a */
    bool transpose_b;
    enum activation activation;
};

/* The number of group e's first row tile, computed without counting the tiles before; some numbers have no tile. */
static __device__ inline size_t first_tile(const struct group *g, size_t e)
{
    return (size_t)g->offsets[e] * g->rows_per_slot / GROUP_TILE + e;
}

/* Row tiles are numbered through all groups; tile `number` is tile `within` of group e, or of none. */
static __device__ inline bool find_tile(const struct group *g, size_t number, size_t *e, size_t *within)
{
    size_t end = g->groups;
    for (*e = 0; end - *e > 1;) {
        size_t middle = (*e + end) / 2;
        if (first_tile(g, middle) <= number)
            *e = middle;
        else
            end = middle;
    }
    *within = number - first_tile(g, *e);
    return *within * GROUP_TILE < (size_t)(g->offsets[*e + 1] - g->offsets[*e]) * g->rows_per_slot;
}

static __device__ inline bool is_frozen(const struct group *g, size_t e)
{
    return g->frozen != NULL && g->frozen[e] != 0;
}

template <typename T> struct tiles {
    enum { LD = padded<T, GROUP_TILE>, LD_RESULT = GROUP_TILE + EIGHT };
    union {
        struct {
            alignas(16) T a[GROUP_TILE * LD], b[GROUP_TILE * LD];
        } operands;
        float result[GROUP_TILE * LD_RESULT];
    };
    __device__ inline float sum(unsigned int i) const
    {
        return result[i / GROUP_TILE * LD_RESULT + i % GROUP_TILE];
    }
};

/* 64 rows from `first` on, below `last`, and 64 columns of a matrix; zero where it has none */
template <typename T>
static __device__ void load_part(T *to, struct typed_rows from, bool by_eight, size_t first, size_t last, size_t column)
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
        store_eight(to, operand_type<T>::type, i / ACROSS * tiles<T>::LD + i % ACROSS * EIGHT, values);
    }
}

/* total += a b of the operands in shared memory, before others take their place */
template <typename T, bool A_DEEP, bool B_DEEP>
static __device__ inline void multiply(struct tile<T, GROUP_TILE, A_DEEP, B_DEEP> *total, const struct tiles<T> *shared)
{
    __syncthreads();
    total->multiply(shared->operands.a, tiles<T>::LD, shared->operands.b, tiles<T>::LD, GROUP_TILE, GROUP_TILE);
    __syncthreads();
}

/* out[rows of e] = act(a[rows of e] · op(b[e]) + bias[e]); b: the rows of all experts */
template <typename T, bool TRANSPOSE_B>
static __global__ void group_rows(struct group g, struct typed_rows b, bool a_by_eight, bool b_by_eight)
{
    __shared__ struct tiles<T> shared;
    size_t e, within;
    if (!find_tile(&g, blockIdx.x, &e, &within))
        return;
    size_t row = (size_t)g.offsets[e] * g.rows_per_slot + within * GROUP_TILE,
           end = (size_t)g.offsets[e + 1] * g.rows_per_slot, column = (size_t)blockIdx.y * GROUP_TILE;
    size_t begin = e * (TRANSPOSE_B ? g.n : g.k), last = begin + (TRANSPOSE_B ? g.n : g.k);
    struct tile<T, GROUP_TILE, true, TRANSPOSE_B> total;
    total.clear();
    for (size_t k = 0; k < g.k; k += GROUP_TILE) {
        load_part(shared.operands.a, g.a, a_by_eight, row, end, k);
        load_part(shared.operands.b, b, b_by_eight, begin + (TRANSPOSE_B ? column : k), last, TRANSPOSE_B ? k : column);
        multiply(&total, &shared);
    }
    total.store(shared.result, tiles<T>::LD_RESULT, GROUP_TILE);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < GROUP_TILE * GROUP_TILE; i += TILE_THREADS) {
        size_t r = row + i / GROUP_TILE, c = column + i % GROUP_TILE;
        float sum = shared.sum(i);
        if (r < end && c < g.n)
            set_row_value(g.out, r, c, activated(g.activation, g.bias != NULL ? sum + g.bias[e * g.n + c] : sum));
    }
}

/* out[e] += aᵀ[rows of e] · b[rows of e]; a block has a tile of one expert's gradient and walks over its rows. */
template <typename T> static __global__ void group_weights(struct group g, bool a_by_eight, bool b_by_eight)
{
    __shared__ struct tiles<T> shared;
    size_t e = blockIdx.z, begin = (size_t)g.offsets[e] * g.rows_per_slot,
           end = (size_t)g.offsets[e + 1] * g.rows_per_slot, row = (size_t)blockIdx.y * GROUP_TILE,
           column = (size_t)blockIdx.x * GROUP_TILE;
    if (begin == end || is_frozen(&g, e))
        return;
    struct tile<T, GROUP_TILE, false, false> total;
    total.clear();
    for (size_t first = begin; first < end; first += GROUP_TILE) {
        load_part(shared.operands.a, g.a, a_by_eight, first, end, row);
        load_part(shared.operands.b, g.b, b_by_eight, first, end, column);
        multiply(&total, &shared);
    }
    total.store(shared.result, tiles<T>::LD_RESULT, GROUP_TILE);
    __syncthreads();
    float *out = (float *)g.out.data;
    for (unsigned int i = threadIdx.x; i < GROUP_TILE * GROUP_TILE; i += TILE_THREADS) {
        size_t r = row + i / GROUP_TILE, c = column + i % GROUP_TILE;
        if (r < g.k && c < g.n)
            out[(e * g.k + r) * g.n + c] += shared.sum(i);
    }
}

/* column_sums[e] += sums over a's rows of e: a warp has 32 columns of one expert, its lanes one each */
static __global__ void group_column_sums(struct group g, float *column_sums)
{
    size_t column = (size_t)blockIdx.x * WARP + threadIdx.x, e = blockIdx.y;
    size_t begin = (size_t)g.offsets[e] * g.rows_per_slot, end = (size_t)g.offsets[e + 1] * g.rows_per_slot;
    if (column >= g.k || is_frozen(&g, e))
        return;
    float total = 0;
    for (size_t i = begin; i < end; i++)
        total += row_value(g.a, i, column);
    column_sums[e * g.k + column] += total;
}

template <typename T> static void launch_rows(struct cuda *cuda, const struct group *g)
{
    unsigned int tiles = blocks_for(g->a.count, GROUP_TILE) + (unsigned int)g->groups; /* the most there can be */
    dim3 grid(tiles, blocks_for(g->n, GROUP_TILE)); /* the second axis allows 65,535 alone */
    struct typed_rows b = g->b;
    b.columns = b.stride = g->transpose_b ? g->k : g->n;
    if (g->transpose_b)
        CUDA_LAUNCH(cuda, (group_rows<T, true>), grid, TILE_THREADS, 0, *g, b, goes_by_eight(g->a), goes_by_eight(b));
    else
        CUDA_LAUNCH(cuda, (group_rows<T, false>), grid, TILE_THREADS, 0, *g, b, goes_by_eight(g->a), goes_by_eight(b));
}

template <typename T> static void launch_weights(struct cuda *cuda, const struct group *g, float *column_sums)
{
    unsigned int groups = (unsigned int)g->groups;
    CUDA_LAUNCH(cuda, group_weights<T>, dim3(blocks_for(g->n, GROUP_TILE), blocks_for(g->k, GROUP_TILE), groups),
                TILE_THREADS, 0, *g, goes_by_eight(g->a), goes_by_eight(g->b));
    if (column_sums != NULL)
        CUDA_LAUNCH(cuda, group_column_sums, dim3(blocks_for(g->k, WARP), groups), WARP, 0, *g, column_sums);
}

status cuda_grouped_gemm(struct backend *backend, const struct grouped_gemm *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    bool bf16 = backend->precision == PRECISION_BF16;
    struct group g = {};
    g.groups = o->groups;
    g.rows_per_slot = o->rows_per_slot;
    g.offsets = o->offsets;
    g.frozen = o->frozen;
    g.a = typed_rows_of(o->a);
    g.b = typed_rows_of(o->b);
    g.out = typed_rows_of(o->out);
    g.bias = (const float *)o->bias;
    g.transpose_b = o->transpose_b;
    g.activation = o->activation;
    g.k = o->a.columns;
    g.n = o->kind == GROUPED_ROWS ? o->out.columns : o->b.columns;
    if (g.groups == 0 || g.k == 0 || g.n == 0 || g.a.count == 0)
        return OK;
    float *sums = (float *)o->column_sums;
    if (o->kind == GROUPED_ROWS)
        bf16 ? launch_rows<__nv_bfloat16>(cuda, &g) : launch_rows<float>(cuda, &g);
    else
        bf16 ? launch_weights<__nv_bfloat16>(cuda, &g, sums) : launch_weights<float>(cuda, &g, sums);
    return cuda_finish(cuda, "grouped_gemm", error);
}

/* Products grouped by expert, in one launch for all experts. */
#include "models/cuda/group.cuh"

enum { DEPTH = 16, SIDE = 16, EACH = GROUP_TILE / SIDE }; /* a block of 16 × 16 threads */

struct operands {
    float a[DEPTH][GROUP_TILE + 4], b[DEPTH][GROUP_TILE + 4];
};

/* sum[i][j] += Σ_k a[k][row] b[k][column] over what is in shared memory */
static __device__ inline void multiply(const struct operands *shared, float sum[EACH][EACH])
{
    for (int k = 0; k < DEPTH; k++) {
        float a[EACH], b[EACH];
        for (int i = 0; i < EACH; i++) {
            a[i] = shared->a[k][threadIdx.y + i * SIDE];
            b[i] = shared->b[k][threadIdx.x + i * SIDE];
        }
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++)
                sum[i][j] += a[i] * b[j];
    }
}

/* out[rows of e] = act(a[rows of e] · op(b[e]) + bias[e]) */
static __global__ void group_rows(struct group g)
{
    __shared__ struct operands shared;
    size_t e, within, thread = threadIdx.y * SIDE + threadIdx.x;
    if (!find_tile(&g, blockIdx.x, &e, &within))
        return;
    size_t row = (size_t)g.offsets[e] * g.rows_per_slot + within * GROUP_TILE,
           end = (size_t)g.offsets[e + 1] * g.rows_per_slot, column = (size_t)blockIdx.y * GROUP_TILE;
    const float *a = (const float *)g.a.data, *b = (const float *)g.b.data + e * g.n * g.k;
    float *out = (float *)g.out.data;
    float sum[EACH][EACH] = {};
    for (size_t first = 0; first < g.k; first += DEPTH) {
        for (size_t i = thread; i < GROUP_TILE * DEPTH; i += SIDE * SIDE) {
            size_t k = i % DEPTH, r = i / DEPTH;
            shared.a[k][r] = row + r < end && first + k < g.k ? a[(row + r) * g.a.stride + first + k] : 0.0f;
        }
        for (size_t i = thread; i < GROUP_TILE * DEPTH; i += SIDE * SIDE) {
            size_t k = g.transpose_b ? i % DEPTH : i / GROUP_TILE, c = g.transpose_b ? i / DEPTH : i % GROUP_TILE;
            bool inside = column + c < g.n && first + k < g.k;
            shared.b[k][c] = !inside         ? 0.0f
                             : g.transpose_b ? b[(column + c) * g.k + first + k]
                                             : b[(first + k) * g.n + column + c];
        }
        __syncthreads();
        multiply(&shared, sum);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            size_t r = row + threadIdx.y + (size_t)i * SIDE, c = column + threadIdx.x + (size_t)j * SIDE;
            if (r < end && c < g.n)
                out[r * g.out.stride + c] =
                    activated(g.activation, sum[i][j] + (g.bias != NULL ? g.bias[e * g.n + c] : 0.0f));
        }
}

/* out[e] += aᵀ[rows of e] · b[rows of e]; a block has a tile of one expert's gradient and walks over its rows. */
static __global__ void group_weights(struct group g)
{
    __shared__ struct operands shared;
    size_t e = blockIdx.z, thread = threadIdx.y * SIDE + threadIdx.x;
    size_t begin = (size_t)g.offsets[e] * g.rows_per_slot, end = (size_t)g.offsets[e + 1] * g.rows_per_slot,
           row = (size_t)blockIdx.y * GROUP_TILE, column = (size_t)blockIdx.x * GROUP_TILE;
    const float *a = (const float *)g.a.data, *b = (const float *)g.b.data;
    float *out = (float *)g.out.data;
    if (begin == end || is_frozen(&g, e))
        return;
    float sum[EACH][EACH] = {};
    for (size_t first = begin; first < end; first += DEPTH) {
        for (size_t i = thread; i < GROUP_TILE * DEPTH; i += SIDE * SIDE) {
            size_t k = i / GROUP_TILE, c = i % GROUP_TILE;
            bool inside = first + k < end;
            shared.a[k][c] = inside && row + c < g.k ? a[(first + k) * g.a.stride + row + c] : 0.0f;
            shared.b[k][c] = inside && column + c < g.n ? b[(first + k) * g.b.stride + column + c] : 0.0f;
        }
        __syncthreads();
        multiply(&shared, sum);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            size_t r = row + threadIdx.y + (size_t)i * SIDE, c = column + threadIdx.x + (size_t)j * SIDE;
            if (r < g.k && c < g.n)
                out[(e * g.k + r) * g.n + c] += sum[i][j];
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

static void launch_rows(struct cuda *cuda, const struct group *g, bool bf16)
{
    unsigned int tiles = blocks_for(g->a.count, GROUP_TILE) + (unsigned int)g->groups; /* the most there can be */
    dim3 grid(tiles, blocks_for(g->n, GROUP_TILE)); /* the second axis allows 65,535 alone */
    if (bf16)
        cuda_group_rows_bf16(cuda, g, grid);
    else
        CUDA_LAUNCH(cuda, group_rows, grid, dim3(SIDE, SIDE), 0, *g);
}

static void launch_weights(struct cuda *cuda, const struct group *g, bool bf16, float *column_sums)
{
    unsigned int groups = (unsigned int)g->groups;
    dim3 grid(blocks_for(g->n, GROUP_TILE), blocks_for(g->k, GROUP_TILE), groups);
    if (bf16)
        cuda_group_weights_bf16(cuda, g, grid);
    else
        CUDA_LAUNCH(cuda, group_weights, grid, dim3(SIDE, SIDE), 0, *g);
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
    if (o->kind == GROUPED_ROWS)
        launch_rows(cuda, &g, bf16);
    else
        launch_weights(cuda, &g, bf16, (float *)o->column_sums);
    return cuda_finish(cuda, "grouped_gemm", error);
}

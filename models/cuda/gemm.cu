/* Matrix products: whole ones through the library, those of the experts in one launch for all of them. */
#include "models/cuda/kernel.cuh"

/* out = act(before), or out = out ⊙ act'(before) */
static __global__ void finish_product(enum activation activation, bool backward, struct rows before, struct rows out)
{
    size_t at = global_thread(), i = at / out.columns, j = at % out.columns;
    if (i >= out.count)
        return;
    float *to = out.data + i * out.stride + j, x = before.data[i * before.stride + j];
    *to = backward ? activated_backward(activation, x, *to) : activated(activation, x);
}

status cuda_gemm(struct backend *backend, const struct gemm *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->out.rows * o->out.columns == 0)
        return OK;
    bool forward_before = o->before.data != NULL && !o->backward;
    struct cuda_product product = {};
    product.a = o->a;
    product.b = o->b;
    product.out = forward_before ? o->before : o->out;
    product.transpose_a = o->transpose_a;
    product.transpose_b = o->transpose_b;
    product.scale = o->scale != 0 ? o->scale : 1.0f;
    product.bias = o->bias;
    product.addend = o->accumulate ? o->out : o->addend;
    product.beta = product.addend.data != NULL ? 1.0f : 0.0f;
    TRY(cuda_product_run(cuda, &product, error));
    if (o->backward || forward_before || o->activation != ACTIVATION_NONE) {
        struct matrix before = o->before.data != NULL ? o->before : o->out;
        CUDA_LAUNCH(cuda, finish_product, blocks_for(o->out.rows * o->out.columns, BLOCK), BLOCK, 0, o->activation,
                    o->backward, rows_of(before), rows_of(o->out));
    }
    return cuda_finish(cuda, "gemm", error);
}

/* --- Products grouped by expert --- */

enum { TILE = 64, DEPTH = 16, SIDE = 16, EACH = TILE / SIDE }; /* a block of 16 × 16 threads has a tile of 64 × 64 */

struct group {
    size_t groups, rows_per_slot;
    const int32_t *offsets, *frozen;
    struct rows a, out;
    const float *b, *bias;
    size_t n, k; /* of GROUPED_ROWS: columns of out and of a; of GROUPED_WEIGHTS: columns of b and of a */
    size_t b_stride;
    bool transpose_b;
    enum activation activation;
};

struct operands {
    float a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
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

/* Row tiles are numbered through all groups; tile `number` is tile `within` of group e, or of none. */
static __device__ inline bool find_tile(const struct group *g, size_t number, size_t *e, size_t *within)
{
    for (*e = 0; *e < g->groups; ++*e) {
        size_t rows = (size_t)(g->offsets[*e + 1] - g->offsets[*e]) * g->rows_per_slot,
               tiles = (rows + TILE - 1) / TILE;
        if (number < tiles) {
            *within = number;
            return true;
        }
        number -= tiles;
    }
    return false;
}

/* out[rows of e] = act(a[rows of e] · op(b[e]) + bias[e]) */
static __global__ void group_rows(struct group g)
{
    __shared__ struct operands shared;
    size_t e, within, thread = threadIdx.y * SIDE + threadIdx.x;
    if (!find_tile(&g, blockIdx.y, &e, &within))
        return;
    size_t row = (size_t)g.offsets[e] * g.rows_per_slot + within * TILE,
           end = (size_t)g.offsets[e + 1] * g.rows_per_slot, column = (size_t)blockIdx.x * TILE;
    const float *b = g.b + e * g.n * g.k;
    float sum[EACH][EACH] = {};
    for (size_t first = 0; first < g.k; first += DEPTH) {
        for (size_t i = thread; i < TILE * DEPTH; i += SIDE * SIDE) {
            size_t k = i % DEPTH, r = i / DEPTH;
            shared.a[k][r] = row + r < end && first + k < g.k ? g.a.data[(row + r) * g.a.stride + first + k] : 0.0f;
        }
        for (size_t i = thread; i < TILE * DEPTH; i += SIDE * SIDE) {
            size_t k = g.transpose_b ? i % DEPTH : i / TILE, c = g.transpose_b ? i / DEPTH : i % TILE;
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
                g.out.data[r * g.out.stride + c] =
                    activated(g.activation, sum[i][j] + (g.bias != NULL ? g.bias[e * g.n + c] : 0.0f));
        }
}

/* out[e] += aᵀ[rows of e] · b[rows of e]; a block has a tile of one expert's gradient and walks over its rows. */
static __global__ void group_weights(struct group g)
{
    __shared__ struct operands shared;
    size_t e = blockIdx.z, thread = threadIdx.y * SIDE + threadIdx.x;
    size_t begin = (size_t)g.offsets[e] * g.rows_per_slot, end = (size_t)g.offsets[e + 1] * g.rows_per_slot,
           row = (size_t)blockIdx.y * TILE, column = (size_t)blockIdx.x * TILE;
    if (begin == end || (g.frozen != NULL && g.frozen[e]))
        return;
    float sum[EACH][EACH] = {};
    for (size_t first = begin; first < end; first += DEPTH) {
        for (size_t i = thread; i < TILE * DEPTH; i += SIDE * SIDE) {
            size_t k = i / TILE, c = i % TILE;
            bool inside = first + k < end;
            shared.a[k][c] = inside && row + c < g.k ? g.a.data[(first + k) * g.a.stride + row + c] : 0.0f;
            shared.b[k][c] = inside && column + c < g.n ? g.b[(first + k) * g.b_stride + column + c] : 0.0f;
        }
        __syncthreads();
        multiply(&shared, sum);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            size_t r = row + threadIdx.y + (size_t)i * SIDE, c = column + threadIdx.x + (size_t)j * SIDE;
            if (r < g.k && c < g.n)
                g.out.data[(e * g.k + r) * g.n + c] += sum[i][j];
        }
}

/* column_sums[e] += sums over a's rows of e: a warp has 32 columns of one expert, its lanes one each */
static __global__ void group_column_sums(struct group g, float *column_sums)
{
    size_t column = (size_t)blockIdx.x * WARP + threadIdx.x, e = blockIdx.y;
    size_t begin = (size_t)g.offsets[e] * g.rows_per_slot, end = (size_t)g.offsets[e + 1] * g.rows_per_slot;
    if (column >= g.k || (g.frozen != NULL && g.frozen[e]))
        return;
    float total = 0;
    for (size_t i = begin; i < end; i++)
        total += g.a.data[i * g.a.stride + column];
    column_sums[e * g.k + column] += total;
}

status cuda_grouped_gemm(struct backend *backend, const struct grouped_gemm *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct group g = {};
    g.groups = o->groups;
    g.rows_per_slot = o->rows_per_slot;
    g.offsets = o->offsets;
    g.frozen = o->frozen;
    g.a = rows_of(o->a);
    g.out = rows_of(o->out);
    g.b = (const float *)o->b.data;
    g.b_stride = o->b.stride;
    g.bias = (const float *)o->bias;
    g.transpose_b = o->transpose_b;
    g.activation = o->activation;
    g.k = o->a.columns;
    g.n = o->kind == GROUPED_ROWS ? o->out.columns : o->b.columns;
    if (g.groups == 0 || g.k == 0 || g.n == 0 || g.a.count == 0)
        return OK;
    dim3 threads(SIDE, SIDE);
    if (o->kind == GROUPED_ROWS) {
        unsigned int tiles = blocks_for(g.a.count, TILE) + (unsigned int)g.groups; /* the most there can be */
        CUDA_LAUNCH(cuda, group_rows, dim3(blocks_for(g.n, TILE), tiles), threads, 0, g);
        return cuda_finish(cuda, "grouped_gemm", error);
    }
    CUDA_LAUNCH(cuda, group_weights, dim3(blocks_for(g.n, TILE), blocks_for(g.k, TILE), (unsigned int)g.groups),
                threads, 0, g);
    if (o->column_sums != NULL)
        CUDA_LAUNCH(cuda, group_column_sums, dim3(blocks_for(g.k, WARP), (unsigned int)g.groups), WARP, 0, g,
                    (float *)o->column_sums);
    return cuda_finish(cuda, "grouped_gemm", error);
}

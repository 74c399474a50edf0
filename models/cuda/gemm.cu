/* Matrix products by the library, and the operations before and after them; products grouped by expert. */
#include <stdlib.h>

#include "models/cuda/tensor.cuh"

/* ---- operands for products: rounded from f32 to bf16, and aligned ---- */

/* A thread has eight neighbours; by_eight: they are in one row and go together. */
static __global__ void round_values(struct typed_rows from, bool by_eight, __nv_bfloat16 *to)
{
    size_t first = global_thread() * EIGHT, count = from.count * from.columns;
    if (by_eight && first < count) {
        float values[EIGHT];
        load_eight(from.data, from.type, first / from.columns * from.stride + first % from.columns, values);
        store_eight(to, TENSOR_BF16, first, values);
        return;
    }
    for (size_t i = first; i < first + EIGHT && i < count; i++)
        to[i] = __float2bfloat16(row_value(from, i / from.columns, i % from.columns));
}

void cuda_round(struct cuda *cuda, struct matrix matrix, void *bf16)
{
    struct typed_rows from = typed_rows_of(matrix);
    CUDA_LAUNCH(cuda, round_values, blocks_for(from.count * from.columns, BLOCK * EIGHT), BLOCK, 0, from,
                goes_by_eight(from), (__nv_bfloat16 *)bf16);
}

/* ---- Copies of weights and biases in bf16, for products: of frozen ones, and of experts, which the optimizer writes in both
 * types. A copy is rounded once, and again in the same place after its parameters have changed otherwise, so that a recorded
 * step finds it where it was. ---- */

/* UNUSED: the parameters were released; the memory waits for a copy of the same size, because returning it would wait for
 * the device. */
enum copy_state { UNUSED, OUTDATED, CURRENT };

struct bf16_copy {
    struct matrix matrix; /* in f32 */
    void *memory;         /* contiguous */
    enum copy_state state;
};

static size_t values_of(struct matrix m)
{
    return m.rows * m.columns;
}

static bool same(const struct bf16_copy *copy, struct matrix m)
{
    return copy->state != UNUSED && copy->matrix.data == m.data && copy->matrix.rows == m.rows &&
           copy->matrix.columns == m.columns && copy->matrix.stride == m.stride;
}

static struct bf16_copy *find(struct cuda_copies *copies, struct matrix m)
{
    for (size_t i = 0; i < copies->count; i++)
        if (same(&copies->list[i], m))
            return &copies->list[i];
    return NULL;
}

static struct bf16_copy *find_unused(struct cuda_copies *copies, size_t values)
{
    for (size_t i = 0; i < copies->count; i++)
        if (copies->list[i].state == UNUSED && values_of(copies->list[i].matrix) == values)
            return &copies->list[i];
    return NULL;
}

/* A further copy; NULL: no memory is left for it. */
static struct bf16_copy *grow(struct cuda *cuda, struct matrix m)
{
    struct cuda_copies *copies = &cuda->bf16_copies;
    size_t bytes = values_of(m) * tensor_type_size(TENSOR_BF16);
    GROW(copies->list, copies->count);
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError(); /* products round the weight each time, to the same values in scratch memory */
        return NULL;
    }
    cuda_take(cuda, bytes);
    struct bf16_copy *copy = &copies->list[copies->count++];
    *copy = {m, memory, UNUSED};
    return copy;
}

static void update(struct cuda *cuda, struct bf16_copy *copy)
{
    cuda_round(cuda, copy->matrix, copy->memory);
    copy->state = CURRENT;
}

/* What is recorded is not carried out now, and memory cannot be allocated meanwhile. */
bool cuda_copies_find(struct cuda *cuda, struct matrix *matrix)
{
    struct bf16_copy *copy = find(&cuda->bf16_copies, *matrix);
    if (cuda->recording && (copy == NULL || copy->state == OUTDATED))
        return false;
    if (copy == NULL) {
        copy = find_unused(&cuda->bf16_copies, values_of(*matrix));
        if (copy == NULL)
            copy = grow(cuda, *matrix);
        if (copy == NULL)
            return false;
        copy->matrix = *matrix;
        copy->state = OUTDATED;
    }
    if (copy->state == OUTDATED)
        update(cuda, copy);
    *matrix = {copy->memory, TENSOR_BF16, matrix->rows, matrix->columns, matrix->columns};
    return true;
}

static void mark_copies(struct cuda_copies *copies, const float *values, size_t n, enum copy_state state)
{
    for (size_t i = 0; i < copies->count; i++) {
        struct bf16_copy *copy = &copies->list[i];
        const float *first = (const float *)copy->matrix.data, *last = first + copy->matrix.rows * copy->matrix.stride;
        if (copy->state != UNUSED && first < values + n && values < last)
            copy->state = state;
    }
}

void cuda_copies_list(struct cuda *cuda, const float *values, size_t n, size_t *next,
                      struct cuda_trained_copies *trained)
{
    trained->count = 0;
    for (; *next < cuda->bf16_copies.count && trained->count < TRAINED_COPIES; ++*next) {
        struct bf16_copy *copy = &cuda->bf16_copies.list[*next];
        const float *first = (const float *)copy->matrix.data;
        if (copy->state != CURRENT || first < values || first >= values + n)
            continue;
        assert(copy->matrix.stride == copy->matrix.columns && (uintptr_t)first % 16 == 0); /* as experts.cu has them */
        trained->list[trained->count++] = {(size_t)(first - values), values_of(copy->matrix), copy->memory};
    }
}

void cuda_renew(struct backend *backend, const float *values, size_t n)
{
    mark_copies(&cuda_of(backend)->bf16_copies, values, n, OUTDATED);
}

void cuda_forget(struct backend *backend, const float *values, size_t n)
{
    mark_copies(&cuda_of(backend)->bf16_copies, values, n, UNUSED);
}

void cuda_copies_update(struct cuda *cuda)
{
    for (size_t i = 0; i < cuda->bf16_copies.count; i++)
        if (cuda->bf16_copies.list[i].state == OUTDATED)
            update(cuda, &cuda->bf16_copies.list[i]);
}

void cuda_copies_destroy(struct cuda *cuda)
{
    for (size_t i = 0; i < cuda->bf16_copies.count; i++)
        cudaFree(cuda->bf16_copies.list[i].memory);
    free(cuda->bf16_copies.list);
    cuda->bf16_copies = {};
}

status cuda_as_bf16(struct cuda *cuda, struct matrix *matrix, bool kept, struct error *error)
{
    if (matrix->type == TENSOR_BF16 || (kept && cuda_copies_find(cuda, matrix)))
        return OK;
    void *rounded;
    TRY(cuda_scratch(cuda, matrix->rows * matrix->columns * sizeof(__nv_bfloat16), &rounded, error));
    cuda_round(cuda, *matrix, rounded);
    *matrix = {rounded, TENSOR_BF16, matrix->rows, matrix->columns, matrix->columns};
    return OK;
}

/* n values of an f32 bias in the type and alignment that products need. */
static status bias_as(struct cuda *cuda, enum tensor_type type, bool frozen, const void **bias, size_t n,
                      struct error *error)
{
    struct matrix vector = matrix_rows((void *)*bias, 1, n);
    if (type == TENSOR_BF16)
        TRY(cuda_as_bf16(cuda, &vector, frozen, error));
    if ((uintptr_t)vector.data % CUDA_BIAS_ALIGNMENT != 0) {
        TRY(cuda_scratch(cuda, n * sizeof(float), &vector.data, error));
        TRY(cuda->backend.ops->copy(&cuda->backend, vector.data, *bias, n * sizeof(float), error));
    }
    *bias = vector.data;
    return OK;
}

/* ---- products ---- */

struct finish {
    enum activation activation;
    bool backward;
    struct typed_rows before, out;
};

static __device__ inline float finished(const struct finish *f, float before, float out)
{
    return f->backward ? activated_backward(f->activation, before, out) : activated(f->activation, before);
}

/* out = act(before), or out = out ⊙ act'(before) */
static __global__ void finish_product(struct finish f)
{
    size_t at = global_thread(), i = at / f.out.columns, j = at % f.out.columns;
    if (i < f.out.count)
        set_row_value(f.out, i, j, finished(&f, row_value(f.before, i, j), row_value(f.out, i, j)));
}

/* The same by eight neighbours, whose slow operations overlap where no branch is between them. */
template <enum activation ACTIVATION, bool BACKWARD> static __global__ void finish_product_by_eight(struct finish f)
{
    unsigned int at = blockIdx.x * BLOCK + threadIdx.x, across = (unsigned int)f.out.columns / EIGHT;
    size_t i = at / across, j = at % across * EIGHT;
    float before[EIGHT], out[EIGHT];
    if (i >= f.out.count)
        return;
    load_eight(f.before.data, f.before.type, i * f.before.stride + j, before);
    if (BACKWARD)
        load_eight(f.out.data, f.out.type, i * f.out.stride + j, out);
    for (int n = 0; n < EIGHT; n++)
        out[n] = BACKWARD ? activated_backward(ACTIVATION, before[n], out[n]) : activated(ACTIVATION, before[n]);
    store_eight(f.out.data, f.out.type, i * f.out.stride + j, out);
}

#define FINISH(activation)                                                                                             \
    case activation:                                                                                                   \
        if (f->backward)                                                                                               \
            CUDA_LAUNCH(cuda, (finish_product_by_eight<activation, true>), blocks, BLOCK, 0, *f);                      \
        else                                                                                                           \
            CUDA_LAUNCH(cuda, (finish_product_by_eight<activation, false>), blocks, BLOCK, 0, *f);                     \
        break

static void finish_by_eight(struct cuda *cuda, const struct finish *f)
{
    size_t eights = f->out.count * f->out.columns / EIGHT;
    unsigned int blocks = blocks_for(eights, BLOCK);
    assert(eights <= UINT32_MAX - BLOCK);
    switch (f->activation) {
        FINISH(ACTIVATION_NONE);
        FINISH(ACTIVATION_QUICK_GELU);
        FINISH(ACTIVATION_GELU);
        FINISH(ACTIVATION_RELU);
        FINISH(ACTIVATION_SIGMOID);
        FINISH(ACTIVATION_GELU_TANH);
    }
}

static void finish(struct cuda *cuda, const struct gemm *o)
{
    struct finish f = {o->activation, o->backward, typed_rows_of(o->before.data != NULL ? o->before : o->out),
                       typed_rows_of(o->out)};
    if (goes_by_eight(f.before) && goes_by_eight(f.out))
        finish_by_eight(cuda, &f);
    else
        CUDA_LAUNCH(cuda, finish_product, blocks_for(f.out.count * f.out.columns, BLOCK), BLOCK, 0, f);
}

status cuda_gemm(struct cuda *cuda, const struct gemm *o, struct error *error)
{
    if (o->out.rows * o->out.columns == 0)
        return OK;
    if (o->terms_count > 0)
        return backend_gemm_with_terms(&cuda->backend, o, error);
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
    if (cuda->backend.precision == PRECISION_BF16 && !o->exact) {
        TRY(cuda_as_bf16(cuda, &product.a, false, error));
        TRY(cuda_as_bf16(cuda, &product.b, o->frozen_b, error));
    }
    if (product.bias != NULL)
        TRY(bias_as(cuda, product.out.type, o->frozen_bias, &product.bias, product.out.columns, error));
    TRY(cuda_product_run(cuda, &product, error));
    if (o->backward || forward_before || o->activation != ACTIVATION_NONE)
        finish(cuda, o);
    return OK;
}

/* ---- Products grouped by expert, in one launch for all experts. Operands come through shared memory, in bf16 precision rounded on
 * the way. ---- */

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

status cuda_grouped_gemm(struct cuda *cuda, const struct grouped_gemm *o, struct error *error)
{
    bool bf16 = cuda->backend.precision == PRECISION_BF16;
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
    return OK;
}

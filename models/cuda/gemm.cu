/* Matrix products by the library, and the operations before and after them. */
#include "models/cuda/kernel.cuh"

/* --- Operands for products: rounded from f32 to bf16, and aligned --- */

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

/* --- Products --- */

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

/* The same by eight neighbours. */
static __global__ void finish_product_by_eight(struct finish f)
{
    size_t at = global_thread() * EIGHT, i = at / f.out.columns, j = at % f.out.columns;
    float before[EIGHT], out[EIGHT] = {};
    if (i >= f.out.count)
        return;
    load_eight(f.before.data, f.before.type, i * f.before.stride + j, before);
    if (f.backward)
        load_eight(f.out.data, f.out.type, i * f.out.stride + j, out);
    for (int n = 0; n < EIGHT; n++)
        out[n] = finished(&f, before[n], out[n]);
    store_eight(f.out.data, f.out.type, i * f.out.stride + j, out);
}

static void finish(struct cuda *cuda, const struct gemm *o)
{
    struct finish f = {o->activation, o->backward, typed_rows_of(o->before.data != NULL ? o->before : o->out),
                       typed_rows_of(o->out)};
    size_t n = f.out.count * f.out.columns;
    if (goes_by_eight(f.before) && goes_by_eight(f.out))
        CUDA_LAUNCH(cuda, finish_product_by_eight, blocks_for(n, BLOCK * EIGHT), BLOCK, 0, f);
    else
        CUDA_LAUNCH(cuda, finish_product, blocks_for(n, BLOCK), BLOCK, 0, f);
}

status cuda_gemm(struct backend *backend, const struct gemm *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->out.rows * o->out.columns == 0)
        return OK;
    if (o->terms_count > 0)
        return backend_gemm_with_terms(backend, o, error);
    struct arena_mark mark = arena_mark(&cuda->scratch);
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
    if (backend->precision == PRECISION_BF16 && !o->exact) {
        TRY(cuda_as_bf16(cuda, &product.a, false, error));
        TRY(cuda_as_bf16(cuda, &product.b, o->frozen_b, error));
    }
    if (product.bias != NULL)
        TRY(bias_as(cuda, product.out.type, o->frozen_bias, &product.bias, product.out.columns, error));
    TRY(cuda_product_run(cuda, &product, error));
    if (o->backward || forward_before || o->activation != ACTIVATION_NONE)
        finish(cuda, o);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "gemm", error);
}

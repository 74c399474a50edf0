/* Matrix products: the library's, and what has to follow them. */
#include "models/cuda/kernel.cuh"

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
        TRY(cuda_as_bf16(cuda, &product.a, error));
        TRY(cuda_as_bf16(cuda, &product.b, error));
    }
    if (product.bias != NULL)
        TRY(cuda_bias_as(cuda, product.out.type, &product.bias, product.out.columns, error));
    TRY(cuda_product_run(cuda, &product, error));
    if (o->backward || forward_before || o->activation != ACTIVATION_NONE)
        finish(cuda, o);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "gemm", error);
}

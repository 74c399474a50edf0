/* In place of models/cuda/product.cu: the product in plain loops. */
#include <cuda_bf16.h>

#include <vector>

#include "models/cuda/cuda.h"

status cuda_products_create(struct cuda *cuda, struct error *error)
{
    (void)cuda;
    (void)error;
    return OK;
}

void cuda_products_destroy(struct cuda *cuda)
{
    (void)cuda;
}

size_t cuda_products_version(const struct cuda *)
{
    return 0;
}

static float at(struct matrix m, bool transpose, size_t row, size_t column)
{
    size_t place = (transpose ? column : row) * m.stride + (transpose ? row : column);
    return m.type == TENSOR_BF16 ? __bfloat162float(((const __nv_bfloat16 *)m.data)[place])
                                 : ((const float *)m.data)[place];
}

static void set(struct matrix m, size_t row, size_t column, float value)
{
    size_t place = row * m.stride + column;
    if (m.type == TENSOR_BF16)
        ((__nv_bfloat16 *)m.data)[place] = __float2bfloat16(value);
    else
        ((float *)m.data)[place] = value;
}

/* Every total in the order of depth; the columns side by side, as the compiler can add them at once. */
static void multiply(const struct cuda_product *p)
{
    struct matrix bias = {(void *)p->bias, p->out.type, 1, p->out.columns, p->out.columns};
    size_t depth = p->transpose_a ? p->a.rows : p->a.columns, columns = p->out.columns;
    emulation_open();
    std::vector<float> b(depth * columns), totals(columns);
    for (size_t k = 0; k < depth; k++)
        for (size_t j = 0; j < columns; j++)
            b[k * columns + j] = at(p->b, p->transpose_b, k, j);
    for (size_t i = 0; i < p->out.rows; i++) {
        totals.assign(columns, 0);
        for (size_t k = 0; k < depth; k++) {
            float factor = at(p->a, p->transpose_a, i, k);
            const float *row = &b[k * columns];
            for (size_t j = 0; j < columns; j++)
                totals[j] += factor * row[j];
        }
        for (size_t j = 0; j < columns; j++) {
            float total = totals[j] * p->scale;
            if (p->bias != nullptr)
                total += at(bias, false, 0, j);
            if (p->addend.data != nullptr)
                total += p->beta * at(p->addend, false, i, j);
            set(p->out, i, j, total);
        }
    }
    emulation_shut();
}

/* What the library asks for and does not always tell. */
static const char *fault_of(const struct cuda_product *p)
{
    size_t depth = p->transpose_a ? p->a.rows : p->a.columns, other = p->transpose_b ? p->b.columns : p->b.rows;
    size_t rows = p->transpose_a ? p->a.columns : p->a.rows, columns = p->transpose_b ? p->b.rows : p->b.columns;
    if (p->a.type != p->b.type || (p->addend.data != nullptr && p->addend.type != p->out.type))
        return "types";
    if (depth == 0 || depth != other || rows != p->out.rows || columns != p->out.columns)
        return "sizes";
    if (p->a.stride < p->a.columns || p->b.stride < p->b.columns || p->out.stride < p->out.columns)
        return "strides";
    if (p->addend.data == p->out.data && p->addend.stride != p->out.stride)
        return "an addend in place";
    return (uintptr_t)p->bias % CUDA_BIAS_ALIGNMENT != 0 ? "a bias" : nullptr;
}

status cuda_product_run(struct cuda *cuda, const struct cuda_product *p, struct error *error)
{
    const char *fault = fault_of(p);
    if (fault != nullptr)
        return error_set(error, ERROR_ARGUMENT, "a product with %s that the library refuses", fault);
    emulation_submit(
        cuda->stream, [product = *p] { multiply(&product); }, "cublasLtMatmul");
    return OK;
}

/* In place of models/cuda/product.cu: the product in plain loops. */
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

static float at(struct matrix m, bool transpose, size_t row, size_t column)
{
    size_t i = transpose ? column : row, j = transpose ? row : column;
    return ((const float *)m.data)[i * m.stride + j];
}

static void multiply(const struct cuda_product *p)
{
    size_t depth = p->transpose_a ? p->a.rows : p->a.columns;
    emulation_open();
    for (size_t i = 0; i < p->out.rows; i++)
        for (size_t j = 0; j < p->out.columns; j++) {
            float total = 0;
            for (size_t k = 0; k < depth; k++)
                total += at(p->a, p->transpose_a, i, k) * at(p->b, p->transpose_b, k, j);
            total *= p->scale;
            if (p->bias != NULL)
                total += ((const float *)p->bias)[j];
            if (p->addend.data != NULL)
                total += p->beta * at(p->addend, false, i, j);
            ((float *)p->out.data)[i * p->out.stride + j] = total;
        }
    emulation_shut();
}

status cuda_product_run(struct cuda *cuda, const struct cuda_product *p, struct error *error)
{
    (void)error;
    emulation_submit(cuda->stream, [product = *p] { multiply(&product); });
    return OK;
}

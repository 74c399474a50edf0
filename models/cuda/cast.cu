/* Operands as products want them: from f32 to bf16, and aligned. */
#include "models/cuda/kernel.cuh"

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

status cuda_as_bf16(struct cuda *cuda, struct matrix *matrix, struct error *error)
{
    if (matrix->type == TENSOR_BF16)
        return OK;
    struct typed_rows from = typed_rows_of(*matrix);
    size_t n = from.count * from.columns;
    void *rounded;
    TRY(cuda_scratch(cuda, n * sizeof(__nv_bfloat16), &rounded, error));
    CUDA_LAUNCH(cuda, round_values, blocks_for(n, BLOCK * EIGHT), BLOCK, 0, from, goes_by_eight(from),
                (__nv_bfloat16 *)rounded);
    *matrix = {rounded, TENSOR_BF16, from.count, from.columns, from.columns};
    return OK;
}

status cuda_bias_as(struct cuda *cuda, enum tensor_type type, const void **bias, size_t n, struct error *error)
{
    struct matrix vector = matrix_rows((void *)*bias, 1, n);
    if (type == TENSOR_BF16)
        TRY(cuda_as_bf16(cuda, &vector, error));
    if ((uintptr_t)vector.data % CUDA_BIAS_ALIGNMENT != 0) {
        TRY(cuda_scratch(cuda, n * sizeof(float), &vector.data, error));
        TRY(cuda->backend.ops->copy(&cuda->backend, vector.data, *bias, n * sizeof(float), error));
    }
    *bias = vector.data;
    return OK;
}

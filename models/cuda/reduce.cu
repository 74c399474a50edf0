/* Sums over many rows, in two stages of fixed order. */
#include "models/cuda/kernel.cuh"

/* partial [chunks, columns]: sums over SUMMED_ROWS rows each */
static __global__ void sum_chunks(struct typed_rows x, float *partial)
{
    size_t column = global_thread(), first = (size_t)blockIdx.y * SUMMED_ROWS, last = first + SUMMED_ROWS;
    if (column >= x.columns)
        return;
    float total = 0;
    for (size_t i = first; i < last && i < x.count; i++)
        total += row_value(x, i, column);
    partial[blockIdx.y * x.columns + column] = total;
}

static __global__ void add_chunks(size_t chunks, size_t columns, const float *partial, float *out)
{
    size_t column = global_thread();
    if (column >= columns)
        return;
    float total = 0;
    for (size_t c = 0; c < chunks; c++)
        total += partial[c * columns + column];
    out[column] += total;
}

void cuda_add_chunks(struct cuda *cuda, size_t chunks, size_t columns, const float *partial, float *out)
{
    CUDA_LAUNCH(cuda, add_chunks, blocks_for(columns, WARP), WARP, 0, chunks, columns, partial, out);
}

status cuda_column_sum(struct backend *backend, const struct column_sum *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct typed_rows x = typed_rows_of(o->x);
    if (x.count == 0 || x.columns == 0)
        return OK;
    struct arena_mark mark = arena_mark(&cuda->scratch);
    unsigned int chunks = blocks_for(x.count, SUMMED_ROWS), across = blocks_for(x.columns, WARP);
    void *partial;
    TRY(cuda_scratch(cuda, chunks * x.columns * sizeof(float), &partial, error));
    CUDA_LAUNCH(cuda, sum_chunks, dim3(across, chunks), WARP, 0, x, (float *)partial);
    cuda_add_chunks(cuda, chunks, x.columns, (const float *)partial, (float *)o->out);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "column_sum", error);
}

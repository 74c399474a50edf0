/* LayerNorm and its gradient. A warp has a row.
 *
 * A row of up to 1024 columns is kept in registers: a piece is 128 columns, four a lane, and every value is read once, 16
 * bytes a lane (8 in bf16). The gradient of 768 columns takes 96 registers: 16 warps a multiprocessor, which have 120 KiB
 * of x, dy and addend in flight, where about 18 KiB keep the memory of an H100 busy. Wider rows, and those whose address
 * or stride is no multiple of four values, are read once per pass over them. */
#include "models/cuda/kernel.cuh"

enum { ROWS_PER_BLOCK = BLOCK / WARP, PIECE = WARP * FOUR, MOST_COLUMNS = 8 * PIECE };

#define IN_PIECES(columns, function, ...)                                                                              \
    ((columns) <= 1 * PIECE   ? function<1>(__VA_ARGS__)                                                               \
     : (columns) <= 2 * PIECE ? function<2>(__VA_ARGS__)                                                               \
     : (columns) <= 4 * PIECE ? function<4>(__VA_ARGS__)                                                               \
     : (columns) <= 6 * PIECE ? function<6>(__VA_ARGS__)                                                               \
                              : function<8>(__VA_ARGS__))

static bool fits(struct typed_rows x)
{
    return x.data == NULL || (x.columns <= MOST_COLUMNS && goes_by_four(x));
}

static bool is_aligned(const void *vector)
{
    return (uintptr_t)vector % sizeof(struct four_floats) == 0;
}

static __device__ inline size_t column_of(int piece)
{
    return (size_t)piece * PIECE + lane() * FOUR;
}

/* Columns past the row are zeros. */
template <enum tensor_type TYPE, int PIECES>
static __device__ inline void load_pieces(const void *data, size_t at, size_t columns, float (&row)[PIECES][FOUR])
{
    for (int p = 0; p < PIECES; p++) {
        for (int i = 0; i < FOUR; i++)
            row[p][i] = 0;
        if (column_of(p) < columns)
            load_four(data, TYPE, at + column_of(p), row[p]);
    }
}

template <int PIECES> static __device__ inline void load_row(struct typed_rows x, size_t i, float (&row)[PIECES][FOUR])
{
    if (x.type == TENSOR_BF16)
        load_pieces<TENSOR_BF16>(x.data, i * x.stride, x.columns, row);
    else
        load_pieces<TENSOR_F32>(x.data, i * x.stride, x.columns, row);
}

template <enum tensor_type TYPE, int PIECES>
static __device__ inline void store_pieces(void *data, size_t at, size_t columns, const float (&row)[PIECES][FOUR])
{
    for (int p = 0; p < PIECES; p++)
        if (column_of(p) < columns)
            store_four(data, TYPE, at + column_of(p), row[p]);
}

template <int PIECES>
static __device__ inline void store_row(struct typed_rows y, size_t i, const float (&row)[PIECES][FOUR])
{
    if (y.type == TENSOR_BF16)
        store_pieces<TENSOR_BF16>(y.data, i * y.stride, y.columns, row);
    else
        store_pieces<TENSOR_F32>(y.data, i * y.stride, y.columns, row);
}

static __device__ inline float rstd_of(float variance, float epsilon)
{
    return is_finite(variance) ? 1.0f / sqrtf(variance + epsilon) : NAN; /* 1/∞ would make a row of zeros of it */
}

static __device__ inline void keep_statistics(float *statistics, size_t row, float mean, float rstd)
{
    if (statistics != NULL && lane() == 0) {
        statistics[2 * row] = mean;
        statistics[2 * row + 1] = rstd;
    }
}

/* --- Forward --- */

template <int PIECES>
static __global__ void normalise_pieces(struct typed_rows x, const float *__restrict__ gain,
                                        const float *__restrict__ bias, float epsilon, struct typed_rows y,
                                        float *statistics)
{
    size_t i = global_warp();
    if (i >= x.count)
        return;
    float row[PIECES][FOUR], scale[PIECES][FOUR], shift[PIECES][FOUR], total = 0, squares = 0;
    load_pieces<TENSOR_F32>(x.data, i * x.stride, x.columns, row);
    load_pieces<TENSOR_F32>(gain, 0, x.columns, scale);
    load_pieces<TENSOR_F32>(bias, 0, x.columns, shift);
    for (int p = 0; p < PIECES; p++)
        for (int j = 0; j < FOUR; j++)
            total += row[p][j];
    float mean = warp_sum(total) / (float)x.columns;
    for (int p = 0; p < PIECES; p++)
        for (int j = 0; j < FOUR && column_of(p) < x.columns; j++)
            squares += (row[p][j] - mean) * (row[p][j] - mean);
    float rstd = rstd_of(warp_sum(squares) / (float)x.columns, epsilon);
    for (int p = 0; p < PIECES; p++)
        for (int j = 0; j < FOUR; j++)
            row[p][j] = (row[p][j] - mean) * rstd * scale[p][j] + shift[p][j];
    store_row(y, i, row);
    keep_statistics(statistics, i, mean, rstd);
}

static __global__ void normalise_any(struct typed_rows x, const float *gain, const float *bias, float epsilon,
                                     struct typed_rows y, float *statistics)
{
    size_t i = global_warp();
    if (i >= x.count)
        return;
    const float *from = (const float *)x.data + i * x.stride;
    float total = 0, squares = 0;
    for (size_t j = lane(); j < x.columns; j += WARP)
        total += from[j];
    float mean = warp_sum(total) / (float)x.columns;
    for (size_t j = lane(); j < x.columns; j += WARP)
        squares += (from[j] - mean) * (from[j] - mean);
    float rstd = rstd_of(warp_sum(squares) / (float)x.columns, epsilon);
    for (size_t j = lane(); j < x.columns; j += WARP)
        set_row_value(y, i, j, (from[j] - mean) * rstd * gain[j] + bias[j]);
    keep_statistics(statistics, i, mean, rstd);
}

template <int PIECES> static void launch_pieces(struct cuda *cuda, const struct layer_norm *o)
{
    CUDA_LAUNCH(cuda, normalise_pieces<PIECES>, blocks_for(o->x.rows, ROWS_PER_BLOCK), BLOCK, 0, typed_rows_of(o->x),
                (const float *)o->gain, (const float *)o->bias, o->epsilon, typed_rows_of(o->y),
                (float *)o->statistics);
}

status cuda_layer_norm(struct cuda *cuda, const struct layer_norm *o, struct error *error)
{
    struct typed_rows x = typed_rows_of(o->x), y = typed_rows_of(o->y);
    assert(x.type == TENSOR_F32);
    if (x.count == 0)
        return OK;
    if (fits(x) && fits(y) && is_aligned(o->gain) && is_aligned(o->bias))
        IN_PIECES(x.columns, launch_pieces, cuda, o);
    else
        CUDA_LAUNCH(cuda, normalise_any, blocks_for(x.count, ROWS_PER_BLOCK), BLOCK, 0, x, (const float *)o->gain,
                    (const float *)o->bias, o->epsilon, y, (float *)o->statistics);
    return OK;
}

/* --- Gradient: with x̂ the normalised x and g = dy ⊙ gain, dx = addend + rstd (g − mean(g) − x̂ mean(g ⊙ x̂)) --- */

struct norm_gradient {
    struct typed_rows x, dy, addend, dx, rounded; /* data NULL: no addend; rounded is not wanted */
};

template <int PIECES>
static __global__ void gradient_pieces(struct norm_gradient o, const float *__restrict__ gain,
                                       const float *__restrict__ statistics)
{
    size_t i = global_warp();
    if (i >= o.x.count)
        return;
    float unit[PIECES][FOUR], slope[PIECES][FOUR], dx[PIECES][FOUR], total = 0, product = 0;
    float mean = statistics[2 * i], rstd = statistics[2 * i + 1];
    load_pieces<TENSOR_F32>(o.x.data, i * o.x.stride, o.x.columns, unit);
    load_row(o.dy, i, slope);
    load_pieces<TENSOR_F32>(gain, 0, o.x.columns, dx);
    for (int p = 0; p < PIECES; p++)
        for (int j = 0; j < FOUR; j++) {
            unit[p][j] = (unit[p][j] - mean) * rstd;
            slope[p][j] *= dx[p][j];
            total += slope[p][j];
            product += slope[p][j] * unit[p][j];
        }
    load_pieces<TENSOR_F32>(o.addend.data, i * o.addend.stride, o.addend.data != NULL ? o.x.columns : 0, dx);
    total = warp_sum(total) / (float)o.x.columns;
    product = warp_sum(product) / (float)o.x.columns;
    for (int p = 0; p < PIECES; p++)
        for (int j = 0; j < FOUR; j++)
            dx[p][j] += rstd * (slope[p][j] - total - unit[p][j] * product);
    store_pieces<TENSOR_F32>(o.dx.data, i * o.dx.stride, o.dx.columns, dx);
    if (o.rounded.data != NULL)
        store_row(o.rounded, i, dx);
}

static __global__ void gradient_any(struct norm_gradient o, const float *gain, const float *statistics)
{
    size_t i = global_warp();
    if (i >= o.x.count)
        return;
    float mean = statistics[2 * i], rstd = statistics[2 * i + 1], total = 0, product = 0;
    for (size_t j = lane(); j < o.x.columns; j += WARP) {
        float slope = row_value(o.dy, i, j) * gain[j];
        total += slope;
        product += slope * ((row_value(o.x, i, j) - mean) * rstd);
    }
    total = warp_sum(total) / (float)o.x.columns;
    product = warp_sum(product) / (float)o.x.columns;
    for (size_t j = lane(); j < o.x.columns; j += WARP) {
        float unit = (row_value(o.x, i, j) - mean) * rstd, dx = o.addend.data != NULL ? row_value(o.addend, i, j) : 0;
        dx += rstd * (row_value(o.dy, i, j) * gain[j] - total - unit * product);
        set_row_value(o.dx, i, j, dx);
        if (o.rounded.data != NULL)
            set_row_value(o.rounded, i, j, dx);
    }
}

template <int PIECES>
static void launch_gradient(struct cuda *cuda, const struct norm_gradient &o, const float *gain,
                            const float *statistics)
{
    CUDA_LAUNCH(cuda, gradient_pieces<PIECES>, blocks_for(o.x.count, ROWS_PER_BLOCK), BLOCK, 0, o, gain, statistics);
}

/* partial [2, chunks, columns]: sums of dy ⊙ x̂ and of dy over SUMMED_ROWS rows each */
static __global__ void sum_gradients(struct typed_rows x, struct typed_rows dy, const float *statistics, float *partial)
{
    size_t column = global_thread(), first = (size_t)blockIdx.y * SUMMED_ROWS, last = first + SUMMED_ROWS;
    if (column >= x.columns)
        return;
    float gain = 0, bias = 0;
    for (size_t i = first; i < last && i < x.count; i++) {
        float slope = row_value(dy, i, column);
        gain += slope * ((row_value(x, i, column) - statistics[2 * i]) * statistics[2 * i + 1]);
        bias += slope;
    }
    partial[blockIdx.y * x.columns + column] = gain;
    partial[(gridDim.y + blockIdx.y) * x.columns + column] = bias;
}

static status add_to_weights(struct cuda *cuda, const struct layer_norm_backward *o, struct error *error)
{
    size_t chunks = blocks_for(o->x.rows, SUMMED_ROWS), columns = o->x.columns;
    void *partial;
    TRY(cuda_scratch(cuda, 2 * chunks * columns * sizeof(float), &partial, error));
    CUDA_LAUNCH(cuda, sum_gradients, dim3(blocks_for(columns, WARP), (unsigned int)chunks), WARP, 0,
                typed_rows_of(o->x), typed_rows_of(o->dy), (const float *)o->statistics, (float *)partial);
    cuda_add_chunks(cuda, chunks, columns, (const float *)partial, (float *)o->dgain);
    cuda_add_chunks(cuda, chunks, columns, (const float *)partial + chunks * columns, (float *)o->dbias);
    return OK;
}

status cuda_layer_norm_backward(struct cuda *cuda, const struct layer_norm_backward *o, struct error *error)
{
    const struct norm_gradient rows = {typed_rows_of(o->x), typed_rows_of(o->dy), typed_rows_of(o->addend),
                                       typed_rows_of(o->dx), typed_rows_of(o->rounded)};
    const float *gain = (const float *)o->gain, *statistics = (const float *)o->statistics;
    assert(rows.x.type == TENSOR_F32 && rows.dx.type == TENSOR_F32 && rows.addend.type == TENSOR_F32);
    if (rows.x.count == 0)
        return OK;
    bool by_pieces = fits(rows.x) && fits(rows.dy) && fits(rows.addend) && fits(rows.dx) && fits(rows.rounded);
    if (by_pieces && is_aligned(gain))
        IN_PIECES(rows.x.columns, launch_gradient, cuda, rows, gain, statistics);
    else
        CUDA_LAUNCH(cuda, gradient_any, blocks_for(rows.x.count, ROWS_PER_BLOCK), BLOCK, 0, rows, gain, statistics);
    if (o->dgain != NULL)
        TRY(add_to_weights(cuda, o, error));
    return OK;
}

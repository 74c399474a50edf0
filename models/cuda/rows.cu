/* Operations row by row: dropout, activations, gathers, unit vectors, means, sums, and from pixels and tokens to rows. */
#include "core/rng.h"
#include "models/cuda/kernel.cuh"
#include "models/routing.h"

enum { ROWS_PER_BLOCK = BLOCK / WARP };

static __global__ void drop_values(struct typed_rows x, struct typed_rows addend, struct typed_rows out,
                                   const struct step_state *state, uint64_t base, uint32_t threshold, float scale)
{
    size_t four = global_thread(), row = 4 * four / x.columns, column = 4 * four % x.columns;
    uint32_t words[4];
    if (row >= x.count)
        return;
    philox_of_step(state, RNG_TOWER_DROPOUT, base / 4 + four, words);
    for (size_t w = 0; w < 4; w++) {
        float kept = words[w] < threshold ? 0.0f : row_value(x, row, column + w) * scale;
        set_row_value(out, row, column + w, addend.data != NULL ? row_value(addend, row, column + w) + kept : kept);
    }
}

status cuda_dropout(struct cuda *cuda, const struct dropout *o, struct error *error)
{
    if (o->x.columns % 4 != 0 || o->base % 4 != 0)
        return error_set(error, ERROR_ARGUMENT, "dropout: expected a multiple of 4 values in a row, found %zu",
                         o->x.columns);
    if (o->x.rows > 0)
        CUDA_LAUNCH(cuda, drop_values, blocks_for(o->x.rows * o->x.columns / 4, BLOCK), BLOCK, 0, typed_rows_of(o->x),
                    typed_rows_of(o->addend), typed_rows_of(o->out), o->state, o->base,
                    (uint32_t)((double)o->probability * 4294967296.0), 1.0f / (1.0f - o->probability));
    return OK;
}

static __global__ void activate_values(enum activation activation, struct typed_rows x, struct typed_rows out)
{
    size_t at = global_thread(), i = at / x.columns, j = at % x.columns;
    if (i < x.count)
        set_row_value(out, i, j, activated(activation, row_value(x, i, j)));
}

CUDA_OPERATION(activate, o->x.rows * o->x.columns, BLOCK, activate_values, o->activation, typed_rows_of(o->x),
               typed_rows_of(o->out))

static __global__ void activate_backward_values(enum activation activation, struct typed_rows x, struct typed_rows dy,
                                                struct typed_rows dx)
{
    size_t at = global_thread(), i = at / x.columns, j = at % x.columns;
    if (i < x.count)
        set_row_value(dx, i, j, activated_backward(activation, row_value(x, i, j), row_value(dy, i, j)));
}

CUDA_OPERATION(activate_backward, o->x.rows * o->x.columns, BLOCK, activate_backward_values, o->activation,
               typed_rows_of(o->x), typed_rows_of(o->dy), typed_rows_of(o->dx))

static __device__ inline size_t end_of(size_t positions, const int32_t *lengths, size_t b)
{
    return lengths != NULL ? (size_t)lengths[b] : positions;
}

static __global__ void count_up(struct arange o)
{
    size_t i = global_thread();
    if (i >= o.count)
        return;
    int32_t row = o.first + (int32_t)i * o.step;
    o.out[i] = o.lengths == NULL ? row : routing_own_row(row, (int32_t)o.positions, o.lengths);
}

CUDA_OPERATION(arange, o->count, BLOCK, count_up, *o)

static __global__ void spread_values(struct spread_positions o)
{
    size_t at = global_thread(), b = at / o.positions, l = at % o.positions;
    if (b < o.batch)
        o.out[at] = l < end_of(o.positions, o.lengths, b) ? o.value[b] : -1;
}

CUDA_OPERATION(spread_positions, o->batch * o->positions, BLOCK, spread_values, *o)

static __global__ void gather_values(struct typed_rows x, const int32_t *rows, struct typed_rows out)
{
    size_t at = global_thread(), i = at / out.columns, j = at % out.columns;
    if (i < out.count)
        set_row_value(out, i, j, row_value(x, (size_t)rows[i], j));
}

CUDA_OPERATION(gather_rows, o->out.rows * o->out.columns, BLOCK, gather_values, typed_rows_of(o->x), o->rows,
               typed_rows_of(o->out))

static __global__ void scatter_values(struct typed_rows x, const int32_t *rows, struct typed_rows out)
{
    size_t at = global_thread(), i = at / x.columns, j = at % x.columns;
    if (i < x.count)
        set_row_value(out, (size_t)rows[i], j, row_value(out, (size_t)rows[i], j) + row_value(x, i, j));
}

CUDA_OPERATION(scatter_rows, o->x.rows * o->x.columns, BLOCK, scatter_values, typed_rows_of(o->x), o->rows,
               typed_rows_of(o->out))

static __global__ void normalize_rows(struct rows x, struct rows y, float *norms)
{
    size_t i = global_warp();
    if (i >= x.count)
        return;
    const float *from = x.data + i * x.stride;
    float squares = 0;
    for (size_t j = lane(); j < x.columns; j += WARP)
        squares += from[j] * from[j];
    float norm = sqrtf(warp_sum(squares));
    if (!is_finite(norm)) /* 1/∞ would make a row of zeros of it */
        norm = NAN;
    float inverse = norm != 0 ? 1.0f / norm : 0.0f;
    for (size_t j = lane(); j < x.columns; j += WARP)
        y.data[i * y.stride + j] = inverse * from[j];
    if (norms != NULL && lane() == 0)
        norms[i] = norm;
}

CUDA_OPERATION(normalize, o->x.rows, ROWS_PER_BLOCK, normalize_rows, rows_of(o->x), rows_of(o->y), (float *)o->norms)

static __global__ void normalize_backward_rows(struct rows y, struct rows dy, struct rows dx, const float *norms)
{
    size_t i = global_warp();
    if (i >= y.count)
        return;
    const float *unit = y.data + i * y.stride, *slope = dy.data + i * dy.stride;
    float inverse = norms[i] > 0 ? 1.0f / norms[i] : 0.0f, along = 0;
    for (size_t j = lane(); j < y.columns; j += WARP)
        along += unit[j] * slope[j];
    along = warp_sum(along);
    for (size_t j = lane(); j < y.columns; j += WARP)
        dx.data[i * dx.stride + j] += inverse * (slope[j] - along * unit[j]);
}

CUDA_OPERATION(normalize_backward, o->y.rows, ROWS_PER_BLOCK, normalize_backward_rows, rows_of(o->y), rows_of(o->dy),
               rows_of(o->dx), (const float *)o->norms)

static __global__ void mean_values(struct mean_positions o)
{
    size_t at = global_thread(), b = at / o.width, j = at % o.width;
    if (b >= o.batch)
        return;
    size_t end = end_of(o.positions, o.lengths, b);
    float total = 0;
    for (size_t l = o.first; l < end; l++)
        total += ((const float *)o.x)[(b * o.positions + l) * o.width + j];
    ((float *)o.out)[at] = total / (float)(end - o.first);
}

CUDA_OPERATION(mean_positions, o->batch * o->width, BLOCK, mean_values, *o)

static __global__ void spread_means(struct mean_positions_backward o)
{
    size_t at = global_thread(), j = at % o.width, row = at / o.width, b = row / o.positions, l = row % o.positions;
    if (b >= o.batch)
        return;
    size_t end = end_of(o.positions, o.lengths, b);
    if (l >= o.first && l < end)
        ((float *)o.dx)[at] += ((const float *)o.dout)[b * o.width + j] / (float)(end - o.first);
}

CUDA_OPERATION(mean_positions_backward, o->batch * o->positions * o->width, BLOCK, spread_means, *o)

/* A warp has a row. */
static __global__ void sparse_softmax_rows(struct rows x, struct rows y, size_t top_k, float inverse, float threshold)
{
    size_t i = global_warp(), n = x.columns;
    if (i >= x.count)
        return;
    const float *from = x.data + i * x.stride;
    float *to = y.data + i * y.stride, most = -INFINITY, total = 0;
    struct candidate last = {INFINITY, -1};
    for (size_t k = 0; k < top_k && top_k < n; k++)
        last = next_candidate(from, n, last);
    for (size_t j = lane(); j < n; j += WARP) {
        most = fmaxf(most, from[j]);
        total += 0.0f * from[j]; /* what is not finite goes through */
    }
    most = warp_max(most);
    for (size_t j = lane(); j < n; j += WARP) {
        struct candidate own = {from[j], (int32_t)j};
        bool kept = top_k >= n || !comes_before(last, own);
        to[j] = kept ? expf((from[j] - most) * inverse) : 0.0f;
        total += to[j];
    }
    total = warp_sum(total);
    for (size_t j = lane(); j < n; j += WARP)
        to[j] = threshold != 0 && from[j] < threshold ? 0.0f : to[j] / total;
}

CUDA_OPERATION(sparse_softmax, o->x.rows, ROWS_PER_BLOCK, sparse_softmax_rows, rows_of(o->x), rows_of(o->y), o->top_k,
               1.0f / o->temperature, o->threshold)

static __global__ void sparse_softmax_backward_rows(struct rows y, struct rows dy, struct rows dx, float inverse)
{
    size_t i = global_warp();
    if (i >= y.count)
        return;
    const float *p = y.data + i * y.stride, *slope = dy.data + i * dy.stride;
    float mean = 0;
    for (size_t j = lane(); j < y.columns; j += WARP)
        mean += p[j] * slope[j];
    mean = warp_sum(mean);
    for (size_t j = lane(); j < y.columns; j += WARP)
        dx.data[i * dx.stride + j] = inverse * p[j] * (slope[j] - mean);
}

CUDA_OPERATION(sparse_softmax_backward, o->y.rows, ROWS_PER_BLOCK, sparse_softmax_backward_rows, rows_of(o->y),
               rows_of(o->dy), rows_of(o->dx), 1.0f / o->temperature)

/* ---- Sums over many rows, in two stages of fixed order. ---- */

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

status cuda_column_sum(struct cuda *cuda, const struct column_sum *o, struct error *error)
{
    struct typed_rows x = typed_rows_of(o->x);
    if (x.count == 0 || x.columns == 0)
        return OK;
    unsigned int chunks = blocks_for(x.count, SUMMED_ROWS), across = blocks_for(x.columns, WARP);
    void *partial;
    TRY(cuda_scratch(cuda, chunks * x.columns * sizeof(float), &partial, error));
    CUDA_LAUNCH(cuda, sum_chunks, dim3(across, chunks), WARP, 0, x, (float *)partial);
    cuda_add_chunks(cuda, chunks, x.columns, (const float *)partial, (float *)o->out);
    return OK;
}

/* ---- From pixels and tokens to rows, and back. A thread has a value. ---- */

struct patch_place {
    size_t image, patch, channel, y, x;
};

/* The source of value `at` of the patch rows [B · per_image, 3 · p · p]. */
static __device__ inline struct patch_place place_of(size_t at, size_t p, size_t per_image)
{
    size_t values = 3 * p * p, row = at / values, within = at % values;
    return {row / per_image, row % per_image, within / (p * p), within / p % p, within % p};
}

struct colour {
    float mean[3], std[3];
};

static __global__ void patch_pixels(size_t n, const uint8_t *images, size_t r, size_t p, size_t per_image,
                                    struct colour colour, float *out)
{
    size_t at = global_thread();
    if (at >= n)
        return;
    struct patch_place q = place_of(at, p, per_image);
    size_t row = q.patch / (r / p) * p + q.y, column = q.patch % (r / p) * p + q.x;
    float value = (float)images[((q.image * r + row) * r + column) * 3 + q.channel];
    out[at] = (value / 255.0f - colour.mean[q.channel]) / colour.std[q.channel];
}

static __global__ void patch_floats(size_t n, const float *images, size_t r, size_t p, size_t per_image, float *out)
{
    size_t at = global_thread();
    if (at >= n)
        return;
    struct patch_place q = place_of(at, p, per_image);
    size_t row = q.patch / (r / p) * p + q.y, column = q.patch % (r / p) * p + q.x;
    out[at] = images[((q.image * 3 + q.channel) * r + row) * r + column];
}

status cuda_patchify(struct cuda *cuda, const struct patchify *o, struct error *error)
{
    size_t n = o->images->shape[0] * o->per_image * 3 * o->patch * o->patch;
    if (n == 0)
        return OK;
    if (o->images->type == TENSOR_U8) {
        struct colour colour = {{o->mean[0], o->mean[1], o->mean[2]}, {o->std[0], o->std[1], o->std[2]}};
        CUDA_LAUNCH(cuda, patch_pixels, blocks_for(n, BLOCK), BLOCK, 0, n, (const uint8_t *)o->images->data,
                    o->images->shape[1], o->patch, o->per_image, colour, (float *)o->out);
    } else {
        CUDA_LAUNCH(cuda, patch_floats, blocks_for(n, BLOCK), BLOCK, 0, n, (const float *)o->images->data,
                    o->images->shape[2], o->patch, o->per_image, (float *)o->out);
    }
    return OK;
}

/* The position of token l of image b: 0 for the class token, else one past its patch. */
static __global__ void assemble(size_t batch, size_t per_image, size_t d, const float *patches,
                                const float *class_embedding, const float *position, float *x)
{
    size_t at = global_thread(), j = at % d, l = at / d % (per_image + 1), b = at / d / (per_image + 1);
    if (b >= batch)
        return;
    float token = l == 0 ? class_embedding[j] : patches[(b * per_image + l - 1) * d + j];
    x[at] = token + position[l * d + j];
}

CUDA_OPERATION(assemble_tokens, (o->per_image + 1) * o->batch * o->width, BLOCK, assemble, o->batch, o->per_image,
               o->width, (const float *)o->patches, (const float *)o->class_embedding, (const float *)o->position,
               (float *)o->x)

/* A thread has a value of a position and walks over the images, so that sums never change their order. */
static __global__ void assemble_backward(size_t batch, size_t per_image, size_t d, const float *__restrict__ dx,
                                         float *dpatches, float *dclass, float *dposition)
{
    size_t at = global_thread(), j = at % d, l = at / d, values = (per_image + 1) * d;
    if (at >= values)
        return;
    float of_position = dposition[at], of_class = l == 0 ? dclass[j] : 0;
    for (size_t b = 0; b < batch; b++) {
        float slope = dx[b * values + at];
        of_position += slope;
        if (l == 0)
            of_class += slope;
        else
            dpatches[(b * per_image + l - 1) * d + j] = slope;
    }
    dposition[at] = of_position;
    if (l == 0)
        dclass[j] = of_class;
}

CUDA_OPERATION(assemble_tokens_backward, (o->per_image + 1) * o->width, BLOCK, assemble_backward, o->batch,
               o->per_image, o->width, (const float *)o->dx, (float *)o->dpatches, (float *)o->dclass,
               (float *)o->dposition)

static __global__ void embed(size_t batch, size_t positions, size_t context, size_t d, const int32_t *tokens,
                             const float *table, const float *position, float *x)
{
    size_t at = global_thread(), j = at % d, l = at / d % positions, b = at / d / positions;
    if (b < batch)
        x[at] = table[(size_t)tokens[b * context + l] * d + j] + position[l * d + j];
}

CUDA_OPERATION(embed_tokens, o->batch * o->positions * o->width, BLOCK, embed, o->batch, o->positions, o->context,
               o->width, o->tokens, (const float *)o->table, (const float *)o->position, (float *)o->x)

/* As in assemble_backward. */
static __global__ void embed_positions(size_t batch, size_t values, const float *__restrict__ dx, float *dposition)
{
    size_t at = global_thread();
    if (at >= values)
        return;
    float sum = dposition[at];
    for (size_t b = 0; b < batch; b++)
        sum += dx[b * values + at];
    dposition[at] = sum;
}

/* Along y, a warp has one in SHARES of the words. It adds their slopes in the order of the tokens, 32 columns at a time, and keeps the
 * sum of a word as long as no other one of its words comes. */
enum { SHARES = 64 };

static __global__ void embed_backward(size_t count, size_t positions, size_t context, size_t d, const int32_t *tokens,
                                      const float *__restrict__ dx, float *dtable)
{
    size_t j = (size_t)blockIdx.x * WARP + lane();
    float sum = 0, *place = NULL;
    for (size_t first = 0; first < count; first += WARP) {
        size_t i = first + lane();
        int32_t token = i < count ? tokens[i / positions * context + i % positions] : -1;
        unsigned int own = __ballot_sync(0xffffffffu, token >= 0 && (unsigned int)token % SHARES == blockIdx.y);
        for (; own != 0 && j < d; own &= own - 1) {
            size_t at = first + (size_t)__ffs((int)own) - 1;
            float *word = dtable + (size_t)tokens[at / positions * context + at % positions] * d + j;
            if (word != place) {
                if (place != NULL)
                    *place = sum;
                place = word;
                sum = *word;
            }
            sum += dx[at * d + j];
        }
    }
    if (place != NULL)
        *place = sum;
}

status cuda_embed_tokens_backward(struct cuda *cuda, const struct embed_tokens_backward *o, struct error *error)
{
    size_t values = o->positions * o->width;
    if (values > 0) {
        CUDA_LAUNCH(cuda, embed_positions, blocks_for(values, BLOCK), BLOCK, 0, o->batch, values, (const float *)o->dx,
                    (float *)o->dposition);
        CUDA_LAUNCH(cuda, embed_backward, dim3(blocks_for(o->width, WARP), SHARES), WARP, 0, o->batch * o->positions,
                    o->positions, o->context, o->width, o->tokens, (const float *)o->dx, (float *)o->dtable);
    }
    return OK;
}

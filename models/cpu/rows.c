/* Operations row by row: norms, activations, sums, gathers, and from pixels and tokens to rows. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "models/cpu/cpu.h"
#include "models/routing.h"

struct rows_run {
    struct cpu *cpu;
    rows_body body;
    const void *operation;
    size_t rows, chunk;
};

static void run_chunk(void *context, size_t job, size_t worker)
{
    const struct rows_run *run = context;
    size_t first = job * run->chunk, last = first + run->chunk < run->rows ? first + run->chunk : run->rows;
    run->body(run->cpu, run->operation, first, last);
    if (run->cpu->bf16 != NULL)
        run->cpu->bf16->fence();
}

status cpu_run_rows(struct cpu *cpu, size_t rows, size_t values_per_row, rows_body body, const void *operation)
{
    enum { WORTHWHILE = 1 << 15 }; /* values, some ten microseconds */
    size_t chunk = values_per_row < WORTHWHILE ? WORTHWHILE / (values_per_row > 0 ? values_per_row : 1) : 1;
    struct rows_run run = {cpu, body, operation, rows, chunk};
    threads_run(cpu->threads, divide_up(rows, chunk), run_chunk, &run);
    return OK;
}

enum { NORM_COLUMNS = 8192 }; /* of bf16: a row is kept in floats on a thread's stack */

static void layer_norm_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct layer_norm *o = operation;
    float buffer[NORM_COLUMNS];
    bool far = cpu_is_far(o->y);
    for (size_t i = first; i < last; i++) {
        float unused[2], *statistics = o->statistics != NULL ? (float *)o->statistics + 2 * i : unused,
                         *y = cpu_float_row(o->y, i, 0, buffer);
        cpu->vector->layer_norm(o->x.columns, row_of(o->x, i), o->gain, o->bias, o->epsilon, y, statistics);
        if (y == buffer)
            cpu_write(cpu, o->y, far, i, 0, o->y.columns, y);
    }
}

static status check_norm(struct matrix bf16, struct error *error)
{
    if (bf16.type == TENSOR_F32 || bf16.columns <= NORM_COLUMNS)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "layer norm: in bf16 the CPU takes at most %d columns, found %zu; set run.precision=f32",
                     NORM_COLUMNS, bf16.columns);
}

status cpu_layer_norm(struct cpu *cpu, const struct layer_norm *o, struct error *error)
{
    assert(o->x.type == TENSOR_F32);
    TRY(check_norm(o->y, error));
    return cpu_run_rows(cpu, o->x.rows, o->x.columns, layer_norm_rows, o);
}

static void layer_norm_backward_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct layer_norm_backward *o = operation;
    float buffer[NORM_COLUMNS];
    bool far = o->rounded.data != NULL && cpu_is_far(o->rounded);
    for (size_t i = first; i < last; i++) {
        float *dx = row_of(o->dx, i);
        if (o->addend.data == NULL)
            memset(dx, 0, o->dx.columns * sizeof *dx);
        else if (o->addend.data != o->dx.data)
            memcpy(dx, row_of(o->addend, i), o->dx.columns * sizeof *dx);
        cpu->vector->layer_norm_backward(o->x.columns, row_of(o->x, i),
                                         cpu_floats(cpu, o->dy, i, 0, o->x.columns, buffer), o->gain,
                                         (const float *)o->statistics + 2 * i, dx);
        if (o->rounded.data != NULL)
            cpu_write(cpu, o->rounded, far, i, 0, o->dx.columns, dx);
    }
}

/* Columns [16 · job, …): all rows in order, so that the sum does not depend on threads. */
static void layer_norm_gain_columns(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct layer_norm_backward *o = operation;
    size_t from = first * 16, to = last * 16 < o->x.columns ? last * 16 : o->x.columns;
    float *dgain = o->dgain, *dbias = o->dbias, buffer[NORM_COLUMNS];
    for (size_t i = 0; i < o->x.rows; i++) {
        const float *x = row_of(o->x, i) + from, *dy = cpu_floats(cpu, o->dy, i, from, to - from, buffer),
                    *statistics = (const float *)o->statistics + 2 * i;
        for (size_t j = from; j < to; j++, x++, dy++) {
            dgain[j] += *dy * ((*x - statistics[0]) * statistics[1]);
            dbias[j] += *dy;
        }
    }
}

status cpu_layer_norm_backward(struct cpu *cpu, const struct layer_norm_backward *o, struct error *error)
{
    assert(o->x.type == TENSOR_F32 && o->dx.type == TENSOR_F32 && o->addend.type == TENSOR_F32);
    TRY(check_norm(o->dy, error));
    cpu_run_rows(cpu, o->x.rows, o->x.columns, layer_norm_backward_rows, o);
    if (o->dgain != NULL)
        cpu_run_rows(cpu, (o->x.columns + 15) / 16, o->x.rows * 16, layer_norm_gain_columns, o);
    return OK;
}

CPU_ROWS(activate, o->x.rows, o->x.columns)
{
    float from[CPU_PIECE], to[CPU_PIECE];
    size_t piece = cpu_piece(o->x.columns, o->x.type, o->out.type, TENSOR_F32);
    for (size_t i = first; i < last; i++)
        for (size_t j = 0, n; j < o->x.columns; j += n) {
            n = o->x.columns - j < piece ? o->x.columns - j : piece;
            float *out = cpu_float_row(o->out, i, j, to);
            cpu->vector->activate(o->activation, n, cpu_floats(cpu, o->x, i, j, n, from), out);
            cpu_store(cpu, o->out, i, j, n, out);
        }
}

CPU_ROWS(activate_backward, o->x.rows, o->x.columns)
{
    float x[CPU_PIECE], dy[CPU_PIECE], to[CPU_PIECE];
    size_t piece = cpu_piece(o->x.columns, o->x.type, o->dy.type, o->dx.type);
    for (size_t i = first; i < last; i++)
        for (size_t j = 0, n; j < o->x.columns; j += n) {
            n = o->x.columns - j < piece ? o->x.columns - j : piece;
            float *dx = cpu_float_row(o->dx, i, j, to);
            cpu->vector->activate_backward(o->activation, n, cpu_floats(cpu, o->x, i, j, n, x),
                                           cpu_floats(cpu, o->dy, i, j, n, dy), dx);
            cpu_store(cpu, o->dx, i, j, n, dx);
        }
}

static size_t end_of(size_t positions, const int32_t *lengths, size_t b)
{
    return lengths != NULL ? (size_t)lengths[b] : positions;
}

status cpu_arange(struct cpu *cpu, const struct arange *o, struct error *error)
{
    for (size_t i = 0; i < o->count; i++) {
        int32_t row = o->first + (int32_t)i * o->step;
        o->out[i] = o->lengths == NULL ? row : routing_own_row(row, (int32_t)o->positions, o->lengths);
    }
    return OK;
}

status cpu_spread_positions(struct cpu *cpu, const struct spread_positions *o, struct error *error)
{
    for (size_t b = 0; b < o->batch; b++)
        for (size_t l = 0; l < o->positions; l++)
            o->out[b * o->positions + l] = l < end_of(o->positions, o->lengths, b) ? o->value[b] : -1;
    return OK;
}

void cpu_copy_row(const struct cpu *cpu, struct matrix from, size_t row, struct matrix to, size_t at)
{
    size_t size = tensor_type_size(from.type);
    const void *x = (const char *)from.data + row * from.stride * size;
    void *y = (char *)to.data + at * to.stride * tensor_type_size(to.type);
    if (from.type == to.type)
        memcpy(y, x, to.columns * size);
    else if (to.type == TENSOR_BF16)
        cpu_write(cpu, to, cpu_is_far(to), at, 0, to.columns, x);
    else
        cpu->vector->widen(to.columns, x, y);
}

void cpu_add_row(const struct cpu *cpu, float scale, struct matrix from, size_t row, struct matrix to, size_t at)
{
    float x[CPU_PIECE], y[CPU_PIECE];
    size_t piece = cpu_piece(from.columns, from.type, to.type, TENSOR_F32);
    for (size_t j = 0, n; j < from.columns; j += n) {
        n = from.columns - j < piece ? from.columns - j : piece;
        float *sum = cpu_float_row(to, at, j, y);
        if (sum == y)
            cpu_floats(cpu, to, at, j, n, y);
        cpu->vector->axpy(n, scale, cpu_floats(cpu, from, row, j, n, x), sum);
        cpu_store(cpu, to, at, j, n, sum);
    }
}

static void drop_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct dropout *o = operation;
    const uint32_t key[2] = {(uint32_t)o->state->seed, (uint32_t)(o->state->seed >> 32)};
    const uint32_t counter[2] = {o->state->step, philox_stream(RNG_TOWER_DROPOUT, o->state->task)};
    uint32_t threshold = (uint32_t)((double)o->probability * 4294967296.0);
    float x[CPU_PIECE], y[CPU_PIECE];
    size_t columns = o->x.columns, piece = cpu_piece(columns, o->x.type, o->addend.type, o->out.type);
    for (size_t i = first; i < last; i++)
        for (size_t j = 0, n; j < columns; j += n) {
            n = columns - j < piece ? columns - j : piece;
            float *out = cpu_float_row(o->out, i, j, y);
            const float *from = cpu_floats(cpu, o->x, i, j, n, out);
            if (from != out)
                memcpy(out, from, n * sizeof *out);
            cpu->vector->dropout(n / 4, (o->base + i * columns + j) / 4, key, counter, threshold,
                                 1.0f / (1.0f - o->probability), out);
            if (o->addend.data != NULL)
                cpu->vector->axpy(n, 1.0f, cpu_floats(cpu, o->addend, i, j, n, x), out);
            cpu_store(cpu, o->out, i, j, n, out);
        }
}

status cpu_dropout(struct cpu *cpu, const struct dropout *o, struct error *error)
{
    if (o->x.columns % 4 != 0 || o->base % 4 != 0)
        return error_set(error, ERROR_ARGUMENT, "dropout: expected a multiple of 4 values in a row, found %zu",
                         o->x.columns);
    return cpu_run_rows(cpu, o->x.rows, 16 * o->x.columns, drop_rows, o);
}

CPU_ROWS(gather_rows, o->out.rows, o->out.columns)
{
    for (size_t i = first; i < last; i++)
        cpu_copy_row(cpu, o->x, (size_t)o->rows[i], o->out, i);
}

CPU_ROWS(scatter_rows, o->x.rows, o->x.columns)
{
    for (size_t i = first; i < last; i++)
        cpu_add_row(cpu, 1.0f, o->x, i, o->out, (size_t)o->rows[i]);
}

CPU_ROWS(column_sum, (o->x.columns + 63) / 64, o->x.rows * 64)
{
    size_t from = first * 64, to = last * 64 < o->x.columns ? last * 64 : o->x.columns;
    float buffer[CPU_PIECE];
    size_t piece = cpu_piece(to - from, o->x.type, TENSOR_F32, TENSOR_F32);
    for (size_t i = 0; i < o->x.rows; i++)
        for (size_t j = from, n; j < to; j += n) {
            n = to - j < piece ? to - j : piece;
            cpu->vector->axpy(n, 1.0f, cpu_floats(cpu, o->x, i, j, n, buffer), (float *)o->out + j);
        }
}

CPU_ROWS(normalize, o->x.rows, o->x.columns)
{
    for (size_t i = first; i < last; i++) {
        float norm = sqrtf(cpu->vector->dot(o->x.columns, row_of(o->x, i), row_of(o->x, i)));
        if (isinf(norm)) /* 1/∞ would make a row of zeros of it */
            norm = NAN;
        cpu->vector->scale(o->x.columns, norm != 0 ? 1.0f / norm : 0.0f, row_of(o->x, i), row_of(o->y, i));
        if (o->norms != NULL)
            ((float *)o->norms)[i] = norm;
    }
}

CPU_ROWS(normalize_backward, o->y.rows, o->y.columns)
{
    size_t n = o->y.columns;
    for (size_t i = first; i < last; i++) {
        const float *y = row_of(o->y, i), *dy = row_of(o->dy, i);
        float norm = ((const float *)o->norms)[i], inverse = norm > 0 ? 1.0f / norm : 0.0f,
              along = cpu->vector->dot(n, y, dy);
        cpu->vector->axpy(n, inverse, dy, row_of(o->dx, i));
        cpu->vector->axpy(n, -inverse * along, y, row_of(o->dx, i));
    }
}

/* y = x where it is among the top_k largest, of equal ones the first, or NaN; −∞ elsewhere. top_k is below n. */
static void keep_largest(size_t n, size_t top_k, const float *x, float *y)
{
    size_t equal = 0;
    for (size_t j = 0; j < n; j++) { /* y: the largest so far, falling */
        if (j >= top_k && !(x[j] > y[top_k - 1]))
            continue;
        size_t k = j < top_k ? j : top_k - 1;
        for (; k > 0 && x[j] > y[k - 1]; k--)
            y[k] = y[k - 1];
        y[k] = x[j];
    }
    float last = y[top_k - 1];
    for (size_t k = 0; k < top_k; k++)
        equal += y[k] == last;
    for (size_t j = 0; j < n; j++) {
        bool among = x[j] > last || isnan(x[j]) || (x[j] == last && equal > 0);
        equal -= x[j] == last && equal > 0;
        y[j] = among ? x[j] : -INFINITY;
    }
}

CPU_ROWS(sparse_softmax, o->x.rows, o->x.columns)
{
    size_t n = o->x.columns;
    for (size_t i = first; i < last; i++) {
        const float *x = row_of(o->x, i);
        float *y = row_of(o->y, i);
        if (o->top_k < n)
            keep_largest(n, o->top_k, x, y);
        cpu->vector->softmax(n, 1.0f / o->temperature, o->top_k < n ? y : x, y);
        for (size_t j = 0; j < n && o->threshold != 0; j++)
            y[j] = x[j] < o->threshold ? 0.0f : y[j];
    }
}

CPU_ROWS(sparse_softmax_backward, o->y.rows, o->y.columns)
{
    for (size_t i = first; i < last; i++)
        cpu->vector->softmax_backward(o->y.columns, 1.0f / o->temperature, row_of(o->y, i), row_of(o->dy, i),
                                      row_of(o->dx, i));
}

CPU_ROWS(mean_positions, o->batch, o->positions * o->width)
{
    for (size_t b = first; b < last; b++) {
        const float *x = (const float *)o->x + b * o->positions * o->width;
        float *out = (float *)o->out + b * o->width;
        size_t end = end_of(o->positions, o->lengths, b);
        memset(out, 0, o->width * sizeof *out);
        for (size_t l = o->first; l < end; l++)
            cpu->vector->axpy(o->width, 1.0f, x + l * o->width, out);
        cpu->vector->scale(o->width, 1.0f / (float)(end - o->first), out, out);
    }
}

CPU_ROWS(mean_positions_backward, o->batch, o->positions * o->width)
{
    for (size_t b = first; b < last; b++) {
        const float *dout = (const float *)o->dout + b * o->width;
        float *dx = (float *)o->dx + b * o->positions * o->width;
        size_t end = end_of(o->positions, o->lengths, b);
        for (size_t l = o->first; l < end; l++)
            cpu->vector->axpy(o->width, 1.0f / (float)(end - o->first), dout, dx + l * o->width);
    }
}

/* ---- from pixels and tokens to rows, and back ---- */

static void patch_from_pixels(const struct vector_kernels *vector, const struct patchify *o, size_t b, size_t patch,
                              float *out)
{
    size_t p = o->patch, r = o->images->shape[1], grid = r / p;
    const uint8_t *image = (const uint8_t *)o->images->data + b * r * r * 3;
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < p; y++) {
            const uint8_t *row = image + ((patch / grid * p + y) * r + patch % grid * p) * 3 + c;
            vector->pixels(p, row, 3, o->mean[c], o->std[c], out + (c * p + y) * p);
        }
}

static void patch_from_floats(const struct patchify *o, size_t b, size_t patch, float *out)
{
    size_t p = o->patch, r = o->images->shape[2], grid = r / p;
    const float *image = (const float *)o->images->data + b * 3 * r * r;
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < p; y++)
            memcpy(out + (c * p + y) * p, image + (c * r + patch / grid * p + y) * r + patch % grid * p,
                   p * sizeof *out);
}

CPU_ROWS(patchify, o->images->shape[0] * o->per_image, 3 * o->patch * o->patch)
{
    for (size_t i = first; i < last; i++) {
        size_t b = i / o->per_image, patch = i % o->per_image;
        float *out = (float *)o->out + i * 3 * o->patch * o->patch;
        if (o->images->type == TENSOR_U8)
            patch_from_pixels(cpu->vector, o, b, patch, out);
        else
            patch_from_floats(o, b, patch, out);
    }
}

CPU_ROWS(assemble_tokens, o->batch *(o->per_image + 1), o->width)
{
    size_t d = o->width, length = o->per_image + 1;
    for (size_t i = first; i < last; i++) {
        size_t b = i / length, l = i % length, patch = b * o->per_image + (l > 0 ? l - 1 : 0);
        const float *token = l == 0 ? o->class_embedding : (const float *)o->patches + patch * d;
        cpu->vector->add(d, token, (const float *)o->position + l * d, (float *)o->x + i * d);
    }
}

enum { COLUMN_CHUNK = 32 }; /* sums over samples are shared out by columns, so that their order never changes */

CPU_ROWS(assemble_tokens_backward, (o->width + COLUMN_CHUNK - 1) / COLUMN_CHUNK,
         o->batch *(o->per_image + 1) * COLUMN_CHUNK)
{
    size_t d = o->width, length = o->per_image + 1, from = first * COLUMN_CHUNK,
           to = last * COLUMN_CHUNK < d ? last * COLUMN_CHUNK : d;
    for (size_t i = 0; i < o->batch * length; i++) {
        size_t b = i / length, l = i % length, patch = b * o->per_image + (l > 0 ? l - 1 : 0);
        const float *dx = (const float *)o->dx + i * d;
        if (l == 0)
            cpu->vector->axpy(to - from, 1.0f, dx + from, (float *)o->dclass + from);
        else
            memcpy((float *)o->dpatches + patch * d + from, dx + from, (to - from) * sizeof *dx);
        cpu->vector->axpy(to - from, 1.0f, dx + from, (float *)o->dposition + l * d + from);
    }
}

CPU_ROWS(embed_tokens, o->batch * o->positions, o->width)
{
    for (size_t i = first; i < last; i++) {
        size_t b = i / o->positions, l = i % o->positions, token = (size_t)o->tokens[b * o->context + l];
        cpu->vector->add(o->width, (const float *)o->table + token * o->width,
                         (const float *)o->position + l * o->width, (float *)o->x + i * o->width);
    }
}

CPU_ROWS(embed_tokens_backward, (o->width + COLUMN_CHUNK - 1) / COLUMN_CHUNK, o->batch * o->positions * COLUMN_CHUNK)
{
    size_t d = o->width, from = first * COLUMN_CHUNK, to = last * COLUMN_CHUNK < d ? last * COLUMN_CHUNK : d;
    for (size_t i = 0; i < o->batch * o->positions; i++) {
        size_t b = i / o->positions, l = i % o->positions, token = (size_t)o->tokens[b * o->context + l];
        const float *dx = (const float *)o->dx + i * d + from;
        cpu->vector->axpy(to - from, 1.0f, dx, (float *)o->dtable + token * d + from);
        cpu->vector->axpy(to - from, 1.0f, dx, (float *)o->dposition + l * d + from);
    }
}

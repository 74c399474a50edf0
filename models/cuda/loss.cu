/* Losses and argmax. A warp has a row. */
#include "models/cuda/kernel.cuh"

enum { ROWS_PER_BLOCK = BLOCK / WARP };

/* log Σ exp(z / temperature) */
static __device__ inline double log_sum_exp(const float *z, size_t n, float temperature)
{
    float maximum = -INFINITY;
    for (size_t c = lane(); c < n; c += WARP)
        maximum = fmaxf(maximum, z[c] / temperature);
    maximum = warp_max(maximum);
    float total = 0;
    for (size_t c = lane(); c < n; c += WARP)
        total += expf(z[c] / temperature - maximum);
    return (double)maximum + log((double)warp_sum(total));
}

/* One warp: loss += weight · Σ values / divisor */
static __global__ void add_loss(size_t n, const double *values, double divisor, float weight, float *loss)
{
    double total = 0;
    for (size_t i = lane(); i < n; i += WARP)
        total += values[i];
    total = warp_sum(total);
    if (lane() == 0)
        *loss += (float)((double)weight * total / divisor);
}

/* One warp: right[0] += Σ values, right[1] += n */
static __global__ void add_right(size_t n, const double *values, float *right)
{
    double total = 0;
    for (size_t i = lane(); i < n; i += WARP)
        total += values[i];
    total = warp_sum(total);
    if (lane() == 0) {
        right[0] += (float)total;
        right[1] += (float)n;
    }
}

/* The column of a row's maximum, the lowest one of several; −1 where a value is not finite. In every lane. */
static __device__ inline int warp_argmax(const float *row, size_t n)
{
    float maximum = -INFINITY;
    for (size_t j = lane(); j < n; j += WARP)
        maximum = fmaxf(maximum, row[j]);
    maximum = warp_max(maximum);
    int first = 0x7fffffff;
    for (size_t j = lane(); j < n; j += WARP) {
        if (row[j] == maximum && (int)j < first)
            first = (int)j;
        if (!is_finite(row[j])) /* lower than any column */
            first = -1;
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        int other = __shfl_xor_sync(0xffffffffu, first, lanes);
        first = other < first ? other : first;
    }
    return first;
}

/* right [rows], 1 or 0; NULL: not wanted */
static __global__ void cross_entropy_rows(struct rows logits, struct rows dlogits, const int32_t *labels,
                                          const int32_t *others, const float *shares, float smoothing, float weight,
                                          double *losses, double *right)
{
    size_t i = global_warp(), classes = logits.columns;
    if (i >= logits.count)
        return;
    const float *z = logits.data + i * logits.stride;
    size_t label = (size_t)labels[i], other = others != NULL ? (size_t)others[i] : label;
    float part = others != NULL ? shares[i] : 1.0f;
    double lse = log_sum_exp(z, classes, 1.0f);
    float total = 0, share = weight / (float)logits.count, uniform = smoothing / (float)classes;
    for (size_t c = lane(); c < classes; c += WARP)
        total += z[c];
    double mean = (double)warp_sum(total) / (double)classes;
    if (lane() == 0)
        losses[i] =
            lse -
            (1.0 - (double)smoothing) * ((double)part * (double)z[label] + (1.0 - (double)part) * (double)z[other]) -
            (double)smoothing * mean;
    if (right != NULL) {
        int best = warp_argmax(z, classes);
        if (lane() == 0)
            right[i] = best == (int)(part < 0.5f ? other : label);
    }
    if (dlogits.data == NULL)
        return;
    for (size_t c = lane(); c < classes; c += WARP)
        dlogits.data[i * dlogits.stride + c] +=
            share * ((float)exp((double)z[c] - lse) - uniform -
                     (1.0f - smoothing) * ((c == label ? part : 0.0f) + (c == other ? 1.0f - part : 0.0f)));
}

status cuda_cross_entropy(struct cuda *cuda, const struct cross_entropy *o, struct error *error)
{
    size_t rows = o->logits.rows;
    void *scratch;
    if (rows == 0)
        return OK;
    TRY(cuda_scratch(cuda, 2 * rows * sizeof(double), &scratch, error));
    double *losses = (double *)scratch, *right = o->right != NULL ? losses + rows : NULL;
    CUDA_LAUNCH(cuda, cross_entropy_rows, blocks_for(rows, ROWS_PER_BLOCK), BLOCK, 0, rows_of(o->logits),
                rows_of(o->dlogits), o->labels, o->others, o->shares, o->smoothing, o->weight, losses, right);
    CUDA_LAUNCH(cuda, add_loss, 1, WARP, 0, rows, (const double *)losses, (double)rows, o->weight, o->loss);
    if (right != NULL)
        CUDA_LAUNCH(cuda, add_right, 1, WARP, 0, rows, (const double *)right, o->right);
    return OK;
}

static __global__ void soft_cross_entropy_rows(struct rows logits, struct rows targets, struct rows dlogits,
                                               float temperature, float weight, double *losses)
{
    size_t i = global_warp(), columns = logits.columns;
    if (i >= logits.count)
        return;
    const float *z = logits.data + i * logits.stride, *t = targets.data + i * targets.stride;
    double log_z = log_sum_exp(z, columns, temperature), log_t = log_sum_exp(t, columns, temperature), loss = 0;
    float share = weight / ((float)logits.count * temperature);
    for (size_t c = lane(); c < columns; c += WARP) {
        double log_p = (double)(z[c] / temperature) - log_z, target = exp((double)(t[c] / temperature) - log_t);
        loss -= target * log_p;
        if (dlogits.data != NULL)
            dlogits.data[i * dlogits.stride + c] += share * (float)(exp(log_p) - target);
    }
    loss = warp_sum(loss);
    if (lane() == 0)
        losses[i] = loss;
}

status cuda_soft_cross_entropy(struct cuda *cuda, const struct soft_cross_entropy *o, struct error *error)
{
    void *losses;
    if (o->logits.rows == 0)
        return OK;
    TRY(cuda_scratch(cuda, o->logits.rows * sizeof(double), &losses, error));
    CUDA_LAUNCH(cuda, soft_cross_entropy_rows, blocks_for(o->logits.rows, ROWS_PER_BLOCK), BLOCK, 0, rows_of(o->logits),
                rows_of(o->targets), rows_of(o->dlogits), o->temperature, o->weight, (double *)losses);
    CUDA_LAUNCH(cuda, add_loss, 1, WARP, 0, o->logits.rows, (const double *)losses, (double)o->logits.rows, o->weight,
                o->loss);
    return OK;
}

enum { PENALTY_CHUNK = 1 << 12 };

/* A warp has a chunk. */
static __global__ void penalty_chunks(struct penalty o, double *sums)
{
    size_t chunk = global_warp(), first = chunk * PENALTY_CHUNK, last = first + PENALTY_CHUNK;
    if (first >= o.n)
        return;
    double total = 0;
    for (size_t i = first + lane(); i < last && i < o.n; i += WARP) {
        float importance = o.importance != NULL ? o.importance[i] : 1.0f, moved = o.values[i] - o.anchor[i];
        total += (double)importance * (double)moved * (double)moved;
        o.gradients[i] += 2.0f * o.strength * importance * moved;
    }
    total = warp_sum(total);
    if (lane() == 0)
        sums[chunk] = total;
}

status cuda_penalty(struct cuda *cuda, const struct penalty *o, struct error *error)
{
    size_t chunks = (o->n + PENALTY_CHUNK - 1) / PENALTY_CHUNK;
    void *sums;
    if (chunks == 0)
        return OK;
    TRY(cuda_scratch(cuda, chunks * sizeof(double), &sums, error));
    CUDA_LAUNCH(cuda, penalty_chunks, blocks_for(chunks, ROWS_PER_BLOCK), BLOCK, 0, *o, (double *)sums);
    CUDA_LAUNCH(cuda, add_loss, 1, WARP, 0, chunks, (const double *)sums, 1.0, o->strength, o->loss);
    return OK;
}

static __global__ void argmax_rows(struct rows x, int32_t *out)
{
    size_t i = global_warp();
    if (i >= x.count)
        return;
    int first = warp_argmax(x.data + i * x.stride, x.columns);
    if (lane() == 0)
        out[i] = first;
}

CUDA_OPERATION(argmax, o->x.rows, ROWS_PER_BLOCK, argmax_rows, rows_of(o->x), o->out)

static __global__ void squared_error_rows(struct rows x, struct rows y, struct rows dx, float scale, float *errors)
{
    size_t i = global_warp();
    if (i >= x.count)
        return;
    double total = 0;
    for (size_t j = lane(); j < x.columns; j += WARP) {
        float difference = x.data[i * x.stride + j] - y.data[i * y.stride + j];
        total += (double)difference * (double)difference;
        if (dx.data != NULL)
            dx.data[i * dx.stride + j] = scale * 2.0f * difference;
    }
    total = warp_sum(total);
    if (lane() == 0)
        errors[i] = (float)(total / (double)x.columns);
}

CUDA_OPERATION(squared_error, o->x.rows, ROWS_PER_BLOCK, squared_error_rows, rows_of(o->x), rows_of(o->y),
               rows_of(o->dx), o->scale, o->errors)

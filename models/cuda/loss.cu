/* Losses and predictions. A warp has a row. */
#include "models/cuda/kernel.cuh"

enum { ROWS_PER_BLOCK = BLOCK / WARP };

struct log_sum {
    float most;
    double log_sum; /* log Σ exp z */
};

static __device__ inline struct log_sum log_sum_exp(const float *z, size_t n)
{
    float most = -INFINITY;
    for (size_t c = lane(); c < n; c += WARP)
        most = fmaxf(most, z[c]);
    most = warp_max(most);
    float total = 0;
    for (size_t c = lane(); c < n; c += WARP)
        total += expf(z[c] - most);
    return {most, (double)most + log((double)warp_sum(total))};
}

static __global__ void cross_entropy_rows(struct rows logits, struct rows dlogits, const int32_t *labels,
                                          float smoothing, float weight, double *losses)
{
    size_t i = global_warp(), classes = logits.columns;
    if (i >= logits.count)
        return;
    const float *z = logits.data + i * logits.stride;
    size_t label = (size_t)labels[i];
    struct log_sum s = log_sum_exp(z, classes);
    float total = 0, share = weight / (float)logits.count, uniform = smoothing / (float)classes;
    for (size_t c = lane(); c < classes; c += WARP)
        total += z[c];
    double mean = (double)warp_sum(total) / (double)classes;
    if (lane() == 0)
        losses[i] = s.log_sum - (1.0 - (double)smoothing) * (double)z[label] - (double)smoothing * mean;
    if (dlogits.data == NULL)
        return;
    for (size_t c = lane(); c < classes; c += WARP)
        dlogits.data[i * dlogits.stride + c] +=
            share * ((float)exp((double)z[c] - s.log_sum) - uniform - (c == label ? 1.0f - smoothing : 0.0f));
}

/* One warp: loss += weight · mean */
static __global__ void add_mean_loss(size_t n, const double *losses, float weight, float *loss)
{
    double total = 0;
    for (size_t i = lane(); i < n; i += WARP)
        total += losses[i];
    total = warp_sum(total);
    if (lane() == 0)
        *loss += (float)((double)weight * total / (double)n);
}

status cuda_cross_entropy(struct backend *backend, const struct cross_entropy *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    void *losses;
    if (o->logits.rows == 0)
        return OK;
    TRY(cuda_scratch(cuda, o->logits.rows * sizeof(double), &losses, error));
    CUDA_LAUNCH(cuda, cross_entropy_rows, blocks_for(o->logits.rows, ROWS_PER_BLOCK), BLOCK, 0, rows_of(o->logits),
                rows_of(o->dlogits), o->labels, o->smoothing, o->weight, (double *)losses);
    CUDA_LAUNCH(cuda, add_mean_loss, 1, WARP, 0, o->logits.rows, (const double *)losses, o->weight, o->loss);
    arena_release(&cuda->scratch, mark);
    return cuda_finish(cuda, "cross_entropy", error);
}

static __global__ void predict_rows(struct rows logits, int32_t *best)
{
    size_t i = global_warp();
    if (i >= logits.count)
        return;
    const float *z = logits.data + i * logits.stride;
    float most = -INFINITY;
    for (size_t c = lane(); c < logits.columns; c += WARP)
        most = fmaxf(most, z[c]);
    most = warp_max(most);
    int first = 0x7fffffff;
    for (size_t c = lane(); c < logits.columns; c += WARP) {
        if (z[c] == most && (int)c < first)
            first = (int)c;
        if (!is_finite(z[c])) /* lower than any column */
            first = -1;
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        int other = __shfl_xor_sync(0xffffffffu, first, lanes);
        first = other < first ? other : first;
    }
    if (lane() == 0)
        best[i] = first;
}

status cuda_predict(struct backend *backend, const struct predict *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->logits.rows > 0)
        CUDA_LAUNCH(cuda, predict_rows, blocks_for(o->logits.rows, ROWS_PER_BLOCK), BLOCK, 0, rows_of(o->logits),
                    o->best);
    return cuda_finish(cuda, "predict", error);
}

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

status cuda_squared_error(struct backend *backend, const struct squared_error *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->x.rows > 0)
        CUDA_LAUNCH(cuda, squared_error_rows, blocks_for(o->x.rows, ROWS_PER_BLOCK), BLOCK, 0, rows_of(o->x),
                    rows_of(o->y), rows_of(o->dx), o->scale, o->errors);
    return cuda_finish(cuda, "squared_error", error);
}

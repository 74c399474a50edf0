#include "models/tensor.h"

#include <assert.h>
#include <math.h>

size_t tensor_type_size(enum tensor_type type)
{
    switch (type) {
    case TENSOR_F32:
    case TENSOR_I32:
        return 4;
    case TENSOR_BF16:
        return 2;
    case TENSOR_U8:
        return 1;
    }
    return 0;
}

size_t tensor_elements(const struct tensor *tensor)
{
    size_t elements = 1;
    for (int i = 0; i < tensor->rank; i++)
        elements = array_size(elements, tensor->shape[i]);
    return elements;
}

size_t tensor_bytes(const struct tensor *tensor)
{
    return array_size(tensor_elements(tensor), tensor_type_size(tensor->type));
}

static status no_memory(const struct tensor *tensor, const struct arena *arena, struct error *error)
{
    size_t bytes = tensor_bytes(tensor);
    if (arena->back != NULL && bytes < arena->limit - arena->used)
        return error_set(
            error, ERROR_MEMORY,
            "memory: %s needs %zu KiB, but the device has %zu KiB left beside the %zu MiB of the %s; lower "
            "training.batch, run.evaluation_batch or adapter.experts, or end what else uses the device",
            tensor->name, bytes >> 10, arena->left >> 10, arena->used >> 20, arena->name);
    if (bytes < arena->limit - arena->used)
        return error_set(
            error, ERROR_MEMORY,
            "memory: %s needs %zu MiB, but the system gives no more addresses beside the %zu MiB of the %s; "
            "raise their limit (ulimit -v), or lower training.batch, run.evaluation_batch or "
            "adapter.experts",
            tensor->name, bytes >> 20, arena->used >> 20, arena->name);
    return error_set(error, ERROR_MEMORY,
                     "memory: %s needs %zu MiB, but only %zu of %zu MiB are left for the %s; lower the batch size, the "
                     "number of experts or the resolution",
                     tensor->name, bytes >> 20, (arena->limit - arena->used) >> 20, arena->limit >> 20, arena->name);
}

status tensor_take(struct tensor *tensor, struct arena *arena, enum tensor_type type, const char *name, int rank,
                   const size_t *shape, struct error *error)
{
    assert(rank <= TENSOR_RANK);
    *tensor = (struct tensor){.type = type, .rank = rank, .name = name};
    for (int i = 0; i < rank; i++)
        tensor->shape[i] = shape[i];
    tensor->data = arena_take_named(arena, tensor_bytes(tensor), name);
    return tensor->data != NULL ? OK : no_memory(tensor, arena, error);
}

struct matrix matrix_of(const struct tensor *tensor)
{
    size_t columns = tensor->shape[tensor->rank - 1];
    return (struct matrix){.data = tensor->data,
                           .type = tensor->type,
                           .rows = columns > 0 ? tensor_elements(tensor) / columns : 0,
                           .columns = columns,
                           .stride = columns};
}

struct matrix matrix_rows(void *data, size_t rows, size_t columns)
{
    return (struct matrix){.data = data, .type = TENSOR_F32, .rows = rows, .columns = columns, .stride = columns};
}

struct matrix matrix_columns(struct matrix matrix, size_t first, size_t count)
{
    assert(first + count <= matrix.columns);
    matrix.data = (char *)matrix.data + first * tensor_type_size(matrix.type);
    matrix.columns = count;
    return matrix;
}

size_t not_finite_at(const float *values, size_t n)
{
    enum { CHUNK = 1024 };
    for (size_t first = 0; first < n; first += CHUNK) {
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        float total = 0; /* 0 · x is NaN where x is not finite; sums of chunks are quicker than a look at each */
        for (size_t i = 0; i < count; i++)
            total += 0.0f * values[first + i];
        for (size_t i = 0; isnan(total) && i < count; i++)
            if (!isfinite(values[first + i]))
                return first + i;
    }
    return n;
}

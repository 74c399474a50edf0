/* Copies of weights and biases in bf16, for products: of frozen ones, and of experts, which the optimizer writes in both
 * types. A copy is rounded once, and again in the same place after its parameters have changed otherwise, so that a recorded
 * step finds it where it was. */
#include <stdlib.h>

#include "models/cuda/cuda.h"

/* UNUSED: the parameters were released; the memory waits for a copy of the same size, because returning it would wait for
 * the device. */
enum copy_state { UNUSED, OUTDATED, CURRENT };

struct bf16_copy {
    struct matrix matrix; /* in f32 */
    void *memory;         /* contiguous */
    enum copy_state state;
};

static size_t values_of(struct matrix m)
{
    return m.rows * m.columns;
}

static bool same(const struct bf16_copy *copy, struct matrix m)
{
    return copy->state != UNUSED && copy->matrix.data == m.data && copy->matrix.rows == m.rows &&
           copy->matrix.columns == m.columns && copy->matrix.stride == m.stride;
}

static struct bf16_copy *find(struct cuda_copies *copies, struct matrix m)
{
    for (size_t i = 0; i < copies->count; i++)
        if (same(&copies->list[i], m))
            return &copies->list[i];
    return NULL;
}

static struct bf16_copy *find_unused(struct cuda_copies *copies, size_t values)
{
    for (size_t i = 0; i < copies->count; i++)
        if (copies->list[i].state == UNUSED && values_of(copies->list[i].matrix) == values)
            return &copies->list[i];
    return NULL;
}

/* A further copy; NULL: no memory is left for it. */
static struct bf16_copy *grow(struct cuda_copies *copies, struct matrix m)
{
    GROW(copies->list, copies->count);
    void *memory;
    if (cudaMalloc(&memory, values_of(m) * tensor_type_size(TENSOR_BF16)) != cudaSuccess) {
        cudaGetLastError(); /* products round the weight each time, to the same values in scratch memory */
        return NULL;
    }
    struct bf16_copy *copy = &copies->list[copies->count++];
    *copy = {m, memory, UNUSED};
    return copy;
}

static void update(struct cuda *cuda, struct bf16_copy *copy)
{
    cuda_round(cuda, copy->matrix, copy->memory);
    copy->state = CURRENT;
}

/* What is recorded is not carried out now, and memory cannot be allocated meanwhile. */
bool cuda_copies_find(struct cuda *cuda, struct matrix *matrix)
{
    struct bf16_copy *copy = find(&cuda->bf16_copies, *matrix);
    if (cuda->recording && (copy == NULL || copy->state == OUTDATED))
        return false;
    if (copy == NULL) {
        copy = find_unused(&cuda->bf16_copies, values_of(*matrix));
        if (copy == NULL)
            copy = grow(&cuda->bf16_copies, *matrix);
        if (copy == NULL)
            return false;
        copy->matrix = *matrix;
        copy->state = OUTDATED;
    }
    if (copy->state == OUTDATED)
        update(cuda, copy);
    *matrix = {copy->memory, TENSOR_BF16, matrix->rows, matrix->columns, matrix->columns};
    return true;
}

static void mark(struct cuda_copies *copies, const float *values, size_t n, enum copy_state state)
{
    for (size_t i = 0; i < copies->count; i++) {
        struct bf16_copy *copy = &copies->list[i];
        const float *first = (const float *)copy->matrix.data, *last = first + copy->matrix.rows * copy->matrix.stride;
        if (copy->state != UNUSED && first < values + n && values < last)
            copy->state = state;
    }
}

void cuda_copies_list(struct cuda *cuda, const float *values, size_t n, size_t *next,
                      struct cuda_trained_copies *trained)
{
    trained->count = 0;
    for (; *next < cuda->bf16_copies.count && trained->count < TRAINED_COPIES; ++*next) {
        struct bf16_copy *copy = &cuda->bf16_copies.list[*next];
        const float *first = (const float *)copy->matrix.data;
        if (copy->state != CURRENT || first < values || first >= values + n)
            continue;
        assert(copy->matrix.stride == copy->matrix.columns && (uintptr_t)first % 16 == 0); /* as experts.cu has them */
        trained->list[trained->count++] = {(size_t)(first - values), values_of(copy->matrix), copy->memory};
    }
}

void cuda_renew(struct backend *backend, const float *values, size_t n)
{
    mark(&cuda_of(backend)->bf16_copies, values, n, OUTDATED);
}

void cuda_forget(struct backend *backend, const float *values, size_t n)
{
    mark(&cuda_of(backend)->bf16_copies, values, n, UNUSED);
}

void cuda_copies_update(struct cuda *cuda)
{
    for (size_t i = 0; i < cuda->bf16_copies.count; i++)
        if (cuda->bf16_copies.list[i].state == OUTDATED)
            update(cuda, &cuda->bf16_copies.list[i]);
}

void cuda_copies_destroy(struct cuda *cuda)
{
    for (size_t i = 0; i < cuda->bf16_copies.count; i++)
        cudaFree(cuda->bf16_copies.list[i].memory);
    free(cuda->bf16_copies.list);
    cuda->bf16_copies = {};
}

/* A tensor: contiguous data on a backend's device, type, shape, name. There is no graph; operations are calls.
 *
 *     struct tensor x;
 *     TRY(tensor_take(&x, &step_arena, TENSOR_F32, "x", 3, (size_t[]){batch, positions, width}, error));
 *     struct matrix rows = matrix_of(&x);                     // [batch · positions, width]
 *
 * Only models/<backend>/ reads data; all other code passes it on.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/alloc.h"
#include "core/status.h"

enum { TENSOR_RANK = 4 };

enum tensor_type { TENSOR_F32, TENSOR_BF16, TENSOR_I32, TENSOR_U8 };

/* NaN passes through every activation. */
enum activation {
    ACTIVATION_NONE,
    ACTIVATION_QUICK_GELU,
    ACTIVATION_GELU,
    ACTIVATION_RELU,
    ACTIVATION_SIGMOID,
    ACTIVATION_GELU_TANH /* GELU by its approximation with tanh (Hendrycks & Gimpel 2016) */
};

struct tensor {
    void *data; /* NULL: not there (a frozen weight's gradient, an optional operand) */
    enum tensor_type type;
    int rank;
    size_t shape[TENSOR_RANK];
    const char *name; /* borrowed; for messages */
};

/* Rows at a distance of stride elements: a tensor seen as [product of the leading sizes, last size], or a slice of its
 * columns. */
struct matrix {
    void *data;
    enum tensor_type type;
    size_t rows, columns, stride;
};

size_t tensor_type_size(enum tensor_type type);
size_t tensor_elements(const struct tensor *tensor);
size_t tensor_bytes(const struct tensor *tensor);

/* Takes memory of unspecified content from the arena. */
status tensor_take(struct tensor *tensor, struct arena *arena, enum tensor_type type, const char *name, int rank,
                   const size_t *shape, struct error *error);

struct matrix matrix_of(const struct tensor *tensor);
struct matrix matrix_rows(void *data, size_t rows, size_t columns); /* f32, contiguous */

/* Columns [first, first + count) of a matrix, sharing its data. */
struct matrix matrix_columns(struct matrix matrix, size_t first, size_t count);

/* Index of the first of values [n], on the host, that is NaN or infinite; n: there is none. */
size_t not_finite_at(const float *values, size_t n);

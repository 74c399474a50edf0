/* Internal to the CPU backend: its context, and the operations of its table. One file per family of operations. */
#pragma once

#include <stdatomic.h>

#include "core/threads.h"
#include "models/backend.h"
#include "models/cpu/kernels.h"

/* Frozen weights as products in bf16 read them, packed once (bf16.c). */
struct cpu_weights {
    struct packed_weight *list;
    size_t count, capacity;
};
const uint32_t *cpu_weights_find(const struct cpu_weights *weights, struct matrix b, bool transpose); /* NULL: absent */
/* Memory for packing b, [pairs]; NULL: no memory is left to keep it. */
uint32_t *cpu_weights_add(struct cpu_weights *weights, struct matrix b, bool transpose, size_t pairs);
void cpu_weights_renew(struct cpu_weights *weights, const float *values, size_t n);
void cpu_weights_free(struct cpu_weights *weights);

struct cpu {
    struct backend backend;
    struct threads *threads;
    const struct vector_kernels *vector;
    const struct bf16_kernels *bf16; /* NULL in f32 */
    struct cpu_weights weights;
    struct arena scratch; /* of one operation; every operation leaves it as it was */
    atomic_bool product_failed;
    char description[128], arithmetic[128];
};

static inline struct cpu *cpu_of(struct backend *backend)
{
    return backend->context;
}

static inline float *row_of(struct matrix matrix, size_t row)
{
    return (float *)matrix.data + row * matrix.stride;
}

/* Access to values of either type, a piece at a time. n values of a row from a column on as floats: in place, or widened
 * into buffer. */
enum { CPU_PIECE = 1024 };
static inline const float *cpu_floats(const struct cpu *cpu, struct matrix m, size_t row, size_t column, size_t n,
                                      float *buffer)
{
    if (m.type == TENSOR_F32)
        return row_of(m, row) + column;
    cpu->vector->widen(n, (const uint16_t *)m.data + row * m.stride + column, buffer);
    return buffer;
}

/* The place to compute them: their own, or buffer, from which cpu_store or cpu_write rounds them. */
static inline float *cpu_float_row(struct matrix m, size_t row, size_t column, float *buffer)
{
    return m.type == TENSOR_F32 ? row_of(m, row) + column : buffer;
}

static inline void cpu_store(const struct cpu *cpu, struct matrix m, size_t row, size_t column, size_t n,
                             const float *values)
{
    if (m.type == TENSOR_BF16)
        cpu->bf16->round(n, values, (uint16_t *)m.data + row * m.stride + column);
}

/* Whether the matrix would leave the caches before it is read. */
static inline bool cpu_is_far(struct matrix m)
{
    enum { STAYS = 1 << 20 }; /* bytes */
    return m.rows * m.stride * tensor_type_size(m.type) > STAYS;
}

/* n values of a row, of either type, in a backend of bf16 precision; far: past the caches, to be followed by
 * cpu->bf16->fence() */
static inline void cpu_write(const struct cpu *cpu, struct matrix m, bool far, size_t row, size_t column, size_t n,
                             const float *x)
{
    if (m.type == TENSOR_BF16)
        (far ? cpu->bf16->stream_rounded : cpu->bf16->round)(n, x, (uint16_t *)m.data + row * m.stride + column);
    else if (far)
        cpu->bf16->stream(n, x, row_of(m, row) + column);
    else
        copy_few(row_of(m, row) + column, x, n * sizeof *x);
}

/* The most columns at a time: all of a row of floats. */
static inline size_t cpu_piece(size_t columns, enum tensor_type first, enum tensor_type second, enum tensor_type third)
{
    bool floats = first == TENSOR_F32 && second == TENSOR_F32 && third == TENSOR_F32;
    return floats || columns < CPU_PIECE ? columns : CPU_PIECE;
}

void cpu_copy_row(const struct cpu *cpu, struct matrix from, size_t row, struct matrix to, size_t at);
/* to += scale · from */
void cpu_add_row(const struct cpu *cpu, float scale, struct matrix from, size_t row, struct matrix to, size_t at);

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Shares out rows in chunks large enough to be worth a thread. body must write only the values of rows [first, last);
 * writes past the caches are fenced. Returns OK. */
typedef void (*rows_body)(struct cpu *cpu, const void *operation, size_t first, size_t last);
status cpu_run_rows(struct cpu *cpu, size_t rows, size_t values_per_row, rows_body body, const void *operation);

/* Defines an operation that cpu_run_rows carries out; its body follows, for rows [first, last) of the operation o:
 *
 *     CPU_ROWS(gather_rows, o->out.rows, o->out.columns)
 *     {
 *         for (size_t i = first; i < last; i++)
 *             cpu_copy_row(cpu, o->x, (size_t)o->rows[i], o->out, i);
 *     }
 */
#define CPU_ROWS(operation, rows, values_per_row)                                                                      \
    static void operation##_rows(struct cpu *cpu, const struct operation *o, size_t first, size_t last);               \
    static void operation##_body(struct cpu *cpu, const void *o, size_t first, size_t last)                            \
    {                                                                                                                  \
        operation##_rows(cpu, o, first, last);                                                                         \
    }                                                                                                                  \
    status cpu_##operation(struct cpu *cpu, const struct operation *o, struct error *error)                            \
    {                                                                                                                  \
        return cpu_run_rows(cpu, rows, values_per_row, operation##_body, o);                                           \
    }                                                                                                                  \
    static void operation##_rows(__attribute__((unused)) struct cpu *cpu, const struct operation *o, size_t first,     \
                                 size_t last)

/* Scratch memory of one operation, or an error. pointer: to the pointer that receives it, of any type. */
status cpu_scratch(struct cpu *cpu, size_t bytes, void *pointer, struct error *error);

/* One single-threaded product of a tile; row-major, op(a) [m, k], op(b) [k, n]. The only place that calls oneDNN. */
struct product {
    const float *a, *b;
    float *c;
    size_t m, n, k, lda, ldb, ldc; /* ld: leading dimension, from one row to the next */
    bool transpose_a, transpose_b, accumulate;
    float scale;
};
void product_run(struct cpu *cpu, const struct product *product);
status products_finish(struct cpu *cpu, struct error *error); /* ERROR_MEMORY: a product found none */
void product_library(char *text, size_t capacity);            /* "oneDNN 2.6.3" */
void product_limit(const char *instructions); /* the best that products may use: "avx2"; before the first product */

#define DECLARE(operation) status cpu_##operation(struct cpu *, const struct operation *, struct error *);
BACKEND_OPERATIONS(DECLARE)
#undef DECLARE

/* The last step of all routing (dispatch.c): assigns slots to the choices by expert, then by sample. An expert keeps at most
 * `limit` choices (0: all), first choices before second ones; the gates of the others become 0. */
void cpu_sort_slots(const struct dispatch *dispatch, size_t limit);
/* Arguments counts, used and add_used as in struct route; used may be NULL. */
void cpu_count_selections(const struct dispatch *dispatch, int32_t *counts, int32_t *used, bool add_used,
                          const int32_t *frozen);

/* Carries out the operations after an f32 product on a tile of out; added: the product has added its addend already. */
struct tile {
    size_t row, column, rows, columns;
};
void cpu_finish_tile(const struct cpu *cpu, const struct gemm *gemm, bool added, const struct tile *tile);
/* A product by the kernel vector->multiply; a is not transposed (f32.c). */
status cpu_gemm_f32(struct cpu *cpu, const struct gemm *gemm, struct error *error);

/* Operations in bf16 precision, for products that are not exact (gemm_bf16.c). */
bool cpu_adds_terms(const struct gemm *g); /* whether cpu_gemm_bf16 can */
status cpu_gemm_bf16(struct cpu *cpu, const struct gemm *gemm, struct error *error);
status cpu_grouped_gemm_bf16(struct cpu *cpu, const struct grouped_gemm *gemm, struct error *error);
status cpu_attention_bf16(struct cpu *cpu, const struct attention *operation, struct error *error);
status cpu_attention_backward_bf16(struct cpu *cpu, const struct attention_backward *operation, const bool *asked,
                                   struct error *error);

/* How many keys a row of attention sees, from the first one on; asked: whether its query is asked for, of all positions of all
 * samples (NULL: each is). */
static inline size_t cpu_seen_keys(bool causal, const bool *asked, size_t positions, size_t sample, size_t row)
{
    if (asked != NULL && !asked[sample * positions + row])
        return 0;
    return causal ? row + 1 : positions;
}

/* A value that a row does not see has the weight 0, but 0 times infinity is NaN. The first function puts a copy of m,
 * with zeros in place of values that are not finite, into m and returns it to be freed; NULL: all of m is finite. The
 * second writes NaN into the column of each value of x that is not finite, in the rows of out that see it; before:
 * the weights are transposed. */
void *cpu_without_infinite(const struct cpu *cpu, struct matrix *m);
void cpu_show_infinite(struct matrix x, bool before, struct matrix out);

/* Opens the backend; see backend_open. */
status cpu_backend_open(struct backend **backend, size_t threads, enum precision precision, struct error *error);

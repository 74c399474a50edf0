/* Inside the CPU backend: its context, and the operations that its table lists. One file per family of operations. */
#ifndef MTIL_MODELS_CPU_CPU_H
#define MTIL_MODELS_CPU_CPU_H

#include <stdatomic.h>

#include "core/threads.h"
#include "models/backend.h"
#include "models/cpu/vector.h"

struct cpu {
    struct backend backend;
    struct threads *threads;
    const struct vector_kernels *vector;
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

/* Shares out rows in chunks that are worth a thread's while. body must write only what belongs to rows [first,
 * last). */
typedef void (*rows_body)(struct cpu *cpu, const void *operation, size_t first, size_t last);
void cpu_run_rows(struct cpu *cpu, size_t rows, size_t values_per_row, rows_body body, const void *operation);

/* Scratch memory of one operation, or an error. */
status cpu_scratch(struct cpu *cpu, size_t bytes, void **memory, struct error *error);

/* One single-threaded product of a tile; row-major, op(a) [m, k], op(b) [k, n]. The only place that calls oneDNN. */
struct product {
    const float *a, *b;
    float *c;
    size_t m, n, k, a_stride, b_stride, c_stride;
    bool transpose_a, transpose_b, accumulate;
    float scale;
};
void product_run(struct cpu *cpu, const struct product *product);
status products_finish(struct cpu *cpu, struct error *error); /* of an operation: did every product find its memory? */
void product_library(char *text, size_t capacity);            /* "oneDNN 2.6.3" */

status cpu_gemm(struct backend *, const struct gemm *, struct error *);
status cpu_grouped_gemm(struct backend *, const struct grouped_gemm *, struct error *);
status cpu_layer_norm(struct backend *, const struct layer_norm *, struct error *);
status cpu_layer_norm_backward(struct backend *, const struct layer_norm_backward *, struct error *);
status cpu_activate(struct backend *, const struct activate *, struct error *);
status cpu_activate_backward(struct backend *, const struct activate_backward *, struct error *);
status cpu_attention(struct backend *, const struct attention *, struct error *);
status cpu_attention_backward(struct backend *, const struct attention_backward *, struct error *);
status cpu_patchify(struct backend *, const struct patchify *, struct error *);
status cpu_assemble_tokens(struct backend *, const struct assemble_tokens *, struct error *);
status cpu_assemble_tokens_backward(struct backend *, const struct assemble_tokens_backward *, struct error *);
status cpu_embed_tokens(struct backend *, const struct embed_tokens *, struct error *);
status cpu_embed_tokens_backward(struct backend *, const struct embed_tokens_backward *, struct error *);
status cpu_number_rows(struct backend *, const struct number_rows *, struct error *);
status cpu_gather_rows(struct backend *, const struct gather_rows *, struct error *);
status cpu_scatter_rows(struct backend *, const struct scatter_rows *, struct error *);
status cpu_column_sum(struct backend *, const struct column_sum *, struct error *);
status cpu_blend(struct backend *, const struct blend *, struct error *);
status cpu_normalize(struct backend *, const struct normalize *, struct error *);
status cpu_normalize_backward(struct backend *, const struct normalize_backward *, struct error *);
status cpu_mean_positions(struct backend *, const struct mean_positions *, struct error *);
status cpu_cross_entropy(struct backend *, const struct cross_entropy *, struct error *);
status cpu_predict(struct backend *, const struct predict *, struct error *);
status cpu_squared_error(struct backend *, const struct squared_error *, struct error *);
status cpu_route(struct backend *, const struct route *, struct error *);
status cpu_route_backward(struct backend *, const struct route_backward *, struct error *);
status cpu_dispatch_gather(struct backend *, const struct dispatch_gather *, struct error *);
status cpu_dispatch_combine(struct backend *, const struct dispatch_combine *, struct error *);
status cpu_dispatch_dropout(struct backend *, const struct dispatch_dropout *, struct error *);
status cpu_expert_gate_backward(struct backend *, const struct expert_gate_backward *, struct error *);
status cpu_find_not_finite(struct backend *, const struct find_not_finite *, struct error *);
status cpu_hold_step(struct backend *, const struct hold_step *, struct error *);
status cpu_adamw(struct backend *, const struct adamw *, struct error *);

status cpu_feed_open(struct backend *, struct feed *, size_t bytes, struct error *);
status cpu_feed_room(struct backend *, struct feed *, void **host, struct error *);
status cpu_feed_send(struct backend *, struct feed *, size_t bytes, struct error *);
status cpu_feed_receive(struct backend *, struct feed *, const void **device, struct error *);
status cpu_feed_release(struct backend *, struct feed *, struct error *);
void cpu_feed_close(struct backend *, struct feed *);
status cpu_record(struct backend *, struct recording *, recorded_body body, void *context, struct error *);
status cpu_replay(struct backend *, const struct recording *, struct error *);
void cpu_recording_destroy(struct backend *, struct recording *);
status cpu_bind(struct backend *, struct error *);
status cpu_team_create(struct backend *const *members, struct team *, struct error *);
status cpu_all_reduce(struct backend *, const struct all_reduce *, struct error *);
void cpu_team_abort(struct backend *, struct team *);
void cpu_team_destroy(struct backend *, struct team *);

/* Opens the backend; see backend_open. */
status cpu_backend_open(struct backend **backend, size_t threads, struct error *error);

#endif

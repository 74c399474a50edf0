/* The operations that a model is made of, one table per backend.
 *
 *     struct backend *backend;
 *     TRY(backend_open(&backend, &(struct backend_settings){.name = "cpu", .threads = threads}, error));
 *     TRY(backend->ops->gemm(backend, &(struct gemm){.a = x, .b = weight, .transpose_b = true, .out = y}, error));
 *     backend_close(backend);
 *
 * Every operand lives in the backend's memory. An operation adds to its gradients ("+=") and sets everything else.
 * Operands of an operation do not overlap unless its comment allows it. To add an operation: a struct and a name in
 * BACKEND_OPERATIONS here, a function in cpu/ and one in cuda/, a plain reference and a test in
 * tests/models/backend/test_backend_*.c.
 *
 * B samples, L positions, d width, E experts, K chosen experts, C classes. Row-major throughout.
 */
#pragma once

#include <stdbool.h>

#include "core/scope.h"
#include "models/dispatch.h"
#include "models/tensor.h"

struct backend;

/* Precision of matrix products. bf16 rounds their operands and adds in f32; all else stays in f32. */
enum precision { PRECISION_F32, PRECISION_BF16 };

/* Values that a step reads from device memory, so that a recorded step can be replayed with other values. */
struct step_state {
    uint64_t seed;
    uint32_t task, step;
    float learning_rate;
};

/* out = act(scale · op(a) op(b) + bias + addend), or with `before` and backward = true: out = (scale · op(a) op(b)) ⊙
 * act'(before), the product that ends a backward pass through an activation. accumulate adds to out instead of setting it (no
 * bias, addend or activation then). In bf16 precision a and b of either type are rounded to bf16 and summed in f32, unless the
 * product is exact; addend has out's type, bias is f32. Products of terms count as part of op(a) op(b); terms exclude scale,
 * accumulate and, in front of an activation, an addend. */
struct gemm {
    struct matrix a, b, out;
    bool transpose_a, transpose_b, accumulate, backward;
    bool exact;       /* in f32 whatever the precision: losses, selectors */
    bool frozen_b;    /* b is a frozen weight of parameters: the backend may keep it in a form of its own (see renew) */
    bool frozen_bias; /* the same of the bias */
    float scale;      /* 0 means 1 */
    const void *bias; /* [columns of out], NULL: none */
    struct matrix addend; /* like out; data NULL: none; may be out itself */
    enum activation activation;
    struct matrix before; /* forward: receives the value before the activation unless NULL; backward: holds it */
    const struct gemm_term *terms; /* [terms_count] */
    size_t terms_count;
};
/* scale · a b, for columns [first, first + columns of b) of a product: one of low rank. */
struct gemm_term {
    struct matrix a, b;
    size_t first;
    float scale;
};

/* One product per expert over that expert's rows. Group e holds slots offsets[e] … offsets[e+1]−1 of rows_per_slot rows
 * each.
 * GROUPED_ROWS:    out[rows of e] = act(a[rows of e] · op(b[e]) + bias[e])     b [E, N, K] transposed or [E, K, N]
 * GROUPED_WEIGHTS: out[e] += aᵀ[rows of e] · b[rows of e]                     out [E, columns of a, columns of b]
 * In GROUPED_WEIGHTS, column_sums [E, columns of a], when given, += sums over a's rows, and experts with frozen[e] ≠ 0
 * are skipped. In bf16 precision operands are rounded as in struct gemm. */
enum grouped_kind { GROUPED_ROWS, GROUPED_WEIGHTS };
struct grouped_gemm {
    enum grouped_kind kind;
    size_t groups, rows_per_slot;
    const int32_t *offsets;  /* [groups + 1] */
    struct matrix a, b, out; /* the stacked operand: all groups' rows below one another */
    bool transpose_b;
    bool
        rows_share_tiles; /* with one row per slot: whether a tile may hold several; a row's bits never depend on other rows */
    const void *bias; /* [E, N] or NULL */
    enum activation activation;
    void *column_sums;
    const int32_t *frozen; /* [E] or NULL */
};

/* y = (x − mean) · rstd ⊙ gain + bias per row; statistics [rows, 2] keeps mean and rstd. Here and below y and dy may be bf16; x,
 * dx and the addend, which belong to the residual stream, are f32 in any precision. */
struct layer_norm {
    struct matrix x, y;
    const void *gain, *bias;
    void *statistics; /* NULL in inference */
    float epsilon;    /* added to the variance */
};
/* dx = addend + …: the gradient of a residual stream past the norm comes with it; dgain, dbias += … unless both are NULL. */
struct layer_norm_backward {
    struct matrix x, dy, dx;
    struct matrix addend;  /* like dx; data NULL: none; may be dx itself */
    struct matrix rounded; /* receives dx as an operand of products in bf16; data NULL: not wanted */
    const void *gain, *statistics;
    void *dgain, *dbias;
};

/* out = act(x); x and out may be the same. */
struct activate {
    enum activation activation;
    struct matrix x, out;
};
/* out = addend + m ⊙ x, with m = 0 with probability p, else 1 / (1 − p); the addend may be none, and x and out the same. A
 * value's word (index mod 4) of block (index / 4) decides, index = base + its number in x, purpose RNG_TOWER_DROPOUT; columns
 * and base are multiples of 4. */
struct dropout {
    struct matrix x, addend, out;
    float probability;
    uint64_t base;
    const struct step_state *state;
};
/* dx = dy ⊙ act'(x); dy and dx may be the same. */
struct activate_backward {
    enum activation activation;
    struct matrix x, dy, dx;
};

/* Multi-head self-attention of qkv [B, L, 3d] (query, key, value; d / heads columns a head): out [B, R, d]. Causal:
 * position i sees 0 … i. R is L, or rows_per_sample: queries at those rows alone. On a GPU a head has 64 to 128 columns, a
 * multiple of 8. */
struct attention_operands {
    size_t batch, positions, width, heads;
    bool causal;
    enum tensor_type type; /* of qkv, out and their gradients; bf16 only in bf16 precision */
    const int32_t *rows;   /* [B · rows_per_sample] distinct rows of [B · L], by samples; NULL: all */
    size_t rows_per_sample;
    const void *qkv;
};
struct attention {
    struct attention_operands operands;
    void *out;
    float *lse; /* [B, heads, R] for the backward pass, as the backend likes; NULL in inference */
};
/* Queries at other rows get a gradient of 0. */
struct attention_backward {
    struct attention_operands operands;
    const void *out, *dout; /* out and lse: of the forward pass */
    const float *lse;
    void *dqkv; /* set, not added to */
};

/* Patch rows [B · per_image, 3·p²] (channel, row, column), from pixels u8 [B, R, R, 3], normalised as
 * ((v / 255) − mean) / std, or from f32 images [B, 3, R, R] as they are. */
struct patchify {
    const struct tensor *images;
    size_t patch, per_image;
    float mean[3], std[3];
    void *out;
};

/* x[b, 0] = class_embedding + position[0]; x[b, 1 + i] = patches[b, i] + position[1 + i]. */
struct assemble_tokens {
    size_t batch, per_image, width;
    const void *patches, *class_embedding, *position;
    void *x;
};
/* dpatches (set), dclass, dposition += … */
struct assemble_tokens_backward {
    size_t batch, per_image, width;
    const void *dx;
    void *dpatches, *dclass, *dposition;
};

/* x[b, l] = table[tokens[b, l]] + position[l] for l < positions; tokens [B, context]. */
struct embed_tokens {
    size_t batch, positions, context, width;
    const int32_t *tokens;
    const void *table, *position;
    void *x;
};
struct embed_tokens_backward {
    size_t batch, positions, context, width;
    const int32_t *tokens;
    const void *dx;
    void *dtable, *dposition;
};

/* out[i] = first + i · step: the numbers of rows, or one router for all samples. With lengths, a row b · L + l past its
 * sample's length is replaced by the sample's last row. */
struct arange {
    size_t count;
    int32_t first, step;
    const int32_t *lengths; /* [B]; NULL: none */
    size_t positions;       /* L */
    int32_t *out;
};

/* out[b, l] = value[b] for l below positions and, unless lengths is NULL, below lengths[b]; −1 for the rest. */
struct spread_positions {
    size_t batch, positions;
    const int32_t *lengths; /* [B] */
    const int32_t *value;   /* [B] */
    int32_t *out;           /* [B, L] */
};

/* out[i] = x[rows[i]] */
struct gather_rows {
    struct matrix x, out;
    const int32_t *rows; /* [out.rows] */
};
/* out[rows[i]] += x[i]; rows are distinct */
struct scatter_rows {
    struct matrix x, out;
    const int32_t *rows;
};

/* Sums over rows: out [columns] += Σ x */
struct column_sum {
    struct matrix x;
    void *out;
};

/* out = Σ weights[i] · inputs[i] / divisor over n values, in double precision; out may be one of the inputs. */
enum { WEIGHTED_SUM_INPUTS = 16 };
struct weighted_sum {
    size_t count, n;
    const void *inputs[WEIGHTED_SUM_INPUTS];
    float weights[WEIGHTED_SUM_INPUTS];
    double divisor; /* 0 means 1 */
    void *out;
};

/* EWA (Huang et al., "Experts Weights Averaging", 2023, Equation 6): each of the F experts that are not frozen becomes (1 −
 * share) · W_i + share / (F − 1) · Σ_{j≠i} W_j, all from the old values, in double precision. No effect with F < 2. */
struct average_experts {
    size_t experts, n;     /* n: values of one */
    const int32_t *frozen; /* [E]; NULL: none is */
    float share;
    float *values; /* [E, n] */
};

struct step_guard; /* below */

/* out = a ⊙ b over n values, or out += a ⊙ b; a and b may be the same, and either may be out. Nothing happens where
 * guard->skip ≠ 0. */
struct multiply {
    size_t n;
    const float *a, *b;
    float *out;
    bool accumulate;
    const struct step_guard *guard; /* NULL: none */
};

/* y = x / ‖x‖ per row; norms [rows] kept for the backward pass (NULL: not). */
struct normalize {
    struct matrix x, y;
    void *norms;
};
struct normalize_backward {
    struct matrix y, dy, dx; /* dx += (dy − y (y · dy)) / norm */
    const void *norms;
};

/* y = softmax(x / temperature) over the top_k largest of each row of x (of equal ones the first), 0 elsewhere. Then y = 0 where x is
 * below the threshold. */
struct sparse_softmax {
    struct matrix x, y;
    size_t top_k;                 /* at least 1; columns or more: all are kept */
    float temperature, threshold; /* threshold 0: none */
};
/* dx = y ⊙ (dy − y · dy) / temperature, of y without a threshold; dx may be dy */
struct sparse_softmax_backward {
    struct matrix y, dy, dx;
    float temperature;
};

/* out[b] = mean over positions first … L−1 of x[b, l], or first … lengths[b]−1; x [B, L, d] */
struct mean_positions {
    size_t batch, positions, first, width;
    const int32_t *lengths; /* [B], each above first; NULL: L */
    const void *x;
    void *out;
};
/* dx += … at the positions that were averaged */
struct mean_positions_backward {
    size_t batch, positions, first, width;
    const int32_t *lengths;
    const void *dout;
    void *dx;
};

/* Labels of a batch of images, on the device. The loss of an image that is mixed from two is shares · loss(labels) +
 * (1 − shares) · loss(others) (Zhang et al. 2018, mixup; Yun et al. 2019, CutMix). */
struct image_labels {
    const int32_t *labels; /* [B] */
    const int32_t *others; /* [B]; NULL: no image is mixed */
    const float *shares;   /* [B] in [0, 1] */
};

/* loss += weight · mean over rows of −(1−s) log p_label − s/C Σ log p; dlogits (NULL: none) += its gradient. With others
 * (rows that are mixed from two), log p_label is shares · log p_label + (1 − shares) · log p_other. right[0] += rows whose
 * highest logit (the first of equal ones) is that of their label, or the other one's if its share is larger; right[1] += rows. */
struct cross_entropy {
    struct matrix logits, dlogits;
    const int32_t *labels, *others; /* [rows]; others NULL: none */
    const float *shares;            /* [rows] in [0, 1] */
    float smoothing, weight;
    float *loss, *right; /* one value; two, NULL: not wanted */
};

/* Distillation (Hinton et al. 2015): loss += weight · mean over rows of −Σ_j softmax(targets / T)_j · log softmax(logits /
 * T)_j; dlogits (NULL: none) += its gradient. The targets get none. */
struct soft_cross_entropy {
    struct matrix logits, targets, dlogits;
    float temperature, weight;
    float *loss; /* one value */
};

/* A pull towards an anchor: loss += strength · Σ importance ⊙ (values − anchor)², gradients += its gradient. */
struct penalty {
    size_t n;
    const float *values, *anchor, *importance; /* importance NULL: 1 */
    float strength;
    float *gradients, *loss; /* loss: one value */
};

/* out[i] = the column of row i's maximum, the lowest one where several are equal; −1 where a value of the row is not
 * finite */
struct argmax {
    struct matrix x;
    int32_t *out;
};

/* errors[i] = mean over columns of (x − y)²; dx (NULL: none) = scale · 2 (x − y) */
struct squared_error {
    struct matrix x, y, dx;
    float scale;
    float *errors;
};

/* found[0] = 1 where any of values [n] is NaN or infinite, else it is unchanged. With segments > 0, only segments whose flag
 * is set are checked, as in struct update. */
struct find_not_finite {
    size_t n, segments;
    const uint64_t *offsets; /* [segments + 1] */
    const int32_t *flag;     /* [segments] */
    const int32_t *flags;
    const float *values;
    int32_t *found;
};

/* The record of skipped steps, in device memory like step_state. */
struct step_guard {
    int32_t skip;    /* the step is skipped because loss or gradients are not finite: optimizers change nothing */
    int32_t skipped; /* steps skipped so far */
    int32_t first;   /* the first of them, counted from 1; 0: none */
};

/* Where guard->skip ≠ 0: skipped += 1, first is set to this step if it is 0, and counts[i] = before[i] of both lists. */
enum { RESTORED_COUNTS = 2 };
struct skip_step {
    struct step_guard *guard;
    const struct step_state *state;
    struct {
        size_t n; /* 0: none */
        int32_t *counts;
        const int32_t *before;
    } lists[RESTORED_COUNTS];
};

/* Operands of an optimizer's step over segments, each with a step count of its own. For every segment s with
 * flags[flag[s]] ≠ 0, steps and changes += 1, values p and moments are updated as the optimizers below state, and gradients g
 * are zero afterwards. Where guard->skip ≠ 0, none of this happens, but with clear_skipped the gradients of all segments are
 * zero afterwards. */
struct update {
    size_t segments, n;      /* n: values of all segments, offsets[segments] */
    const uint64_t *offsets; /* [segments + 1] */
    const int32_t *flag;     /* [segments] */
    const int32_t *flags;
    int32_t *steps;   /* [segments] */
    int32_t *changes; /* [segments]; NULL: not wanted */
    float *values, *gradients, *first_moment, *second_moment;
    const struct step_state *state; /* learning rate */
    const struct step_guard *guard; /* NULL: every step counts */
    bool clear_skipped;
};

/* AdamW (Loshchilov & Hutter 2019): g += l2 · p, m = β₁ m + (1 − β₁) g, v = β₂ v + (1 − β₂) g², and with m̂ = m / (1 − β₁ˢ)
 * and v̂ = v / (1 − β₂ˢ) after s steps, p −= rate · (weight_decay · p + m̂ / (√v̂ + ε)). */
struct adamw {
    struct update update;
    double beta1, beta2, epsilon, weight_decay, l2;
};

/* SGD with momentum (Polyak 1964) as torch.optim.SGD has it: g += l2 · p, m = momentum · m + g, p −= rate · m. There is no
 * second moment. */
struct sgd {
    struct update update;
    double momentum, l2;
};

/* LAMB (You et al. 2020, Algorithm 2): with m̂ and v̂ as above and u = m̂ / (√v̂ + ε) + weight_decay · p,
 * p −= rate · ‖p‖ / ‖u‖ · u, norms over a segment. Where either norm is 0, their ratio counts as 1. */
struct lamb {
    struct update update;
    double beta1, beta2, epsilon, weight_decay;
};

/* A queue copies entries to the device, or results to the host, while the device computes. Of a queue TO_DEVICE the host fills one
 * slot, the slot before is copied, and the one before that is used. The calls for every entry, in this order:
 *
 *     TRY(ops->staging_acquire(backend, &queue, &host, error));   // waits until what the slot held before was copied
 *     ... host[0 … bytes) = … ...
 *     TRY(ops->staging_send(backend, &queue, bytes, error));      // the copy begins
 *     TRY(ops->staging_receive(backend, &queue, &device, error)); // operations from here on find it in device[0 … bytes)
 *     TRY(ops->staging_release(backend, &queue, error));          // and those from here on do not read it any more
 *
 * Of a queue TO_HOST:
 *
 *     TRY(ops->fetch_copy(backend, &queue, device, bytes, error)); // for each of its parts; operations from here on may change it
 *     TRY(ops->fetch_send(backend, &queue, error));                // the entry is complete
 *     TRY(ops->fetch_take(backend, &queue, &host, error));         // waits for the first entry sent and not taken
 *     ... host[0 … sum of the parts) ...                           // until TRANSFER_SLOTS entries later
 *
 * At most TRANSFER_SLOTS entries were sent and not released or taken. */
enum { TRANSFER_SLOTS = 2 };
enum transfer { TO_DEVICE, TO_HOST };
struct transfer_queue {
    enum transfer direction;
    size_t bytes;  /* of a slot: the largest entry */
    size_t filled; /* of the result that is not complete yet */
    uint64_t sent, received, released;
    void *owner;
};

/* Recorded operations, which a backend can replay with one call. */
struct recording {
    void *owner;          /* NULL: nothing was recorded */
    struct error refused; /* why recording failed; its code is OK if the backend did not try or succeeded */
};
typedef status (*recorded_body)(void *context, struct error *error);

/* Operations that a backend may carry out at the same time: neither body changes memory that the other one reads or changes,
 * so each takes its memory from an arena of its own. A body is as one that is recorded, and branches may be recorded. */
struct branches {
    struct branch {
        recorded_body body;
        void *context;
    } list[2];
};

/* Backends of one kind that compute one step together: every rank has a share of it and a thread of its own. */
struct process_group {
    size_t size;
    void *owner;
};

/* values [n] of every rank becomes the sum (the maximum) over all ranks, in an order that depends on their number alone.
 * All ranks call the same reductions in the same order; process_group_abort releases a rank that waits for one that never
 * comes. */
enum reduction { SUM_FLOATS, SUM_INTEGERS, MAX_INTEGERS };
struct all_reduce {
    const struct process_group *group;
    size_t rank;
    enum reduction reduction;
    void *values;
    size_t n;
};

/* The arithmetic. One line here declares an operation everywhere: X(gemm) is the entry `gemm` of every backend's table,
 * which takes a struct gemm, and the functions cpu_gemm and cuda_gemm behind it. */
/* clang-format off */
#define BACKEND_OPERATIONS(X) \
    X(gemm) X(grouped_gemm) \
    X(layer_norm) X(layer_norm_backward) \
    X(activate) X(activate_backward) X(dropout) \
    X(attention) X(attention_backward) X(prefix_attention) X(prefix_attention_backward) \
    X(gated_prefix) X(gated_prefix_backward) \
    X(patchify) \
    X(assemble_tokens) X(assemble_tokens_backward) \
    X(embed_tokens) X(embed_tokens_backward) \
    X(arange) X(spread_positions) X(gather_rows) X(scatter_rows) \
    X(column_sum) X(mean_positions) X(mean_positions_backward) \
    X(weighted_sum) X(average_experts) X(multiply) \
    X(normalize) X(normalize_backward) \
    X(sparse_softmax) X(sparse_softmax_backward) \
    X(cross_entropy) X(soft_cross_entropy) X(penalty) X(argmax) X(squared_error) \
    X(route) X(route_backward) X(balance) \
    X(route_softmax) X(route_softmax_backward) X(balance_softmax) X(partition) \
    X(dispatch_gather) X(dispatch_combine) X(dispatch_dropout) X(expert_gate_backward) X(count_pairs) \
    X(experts) X(experts_backward) X(experts_backward_input) \
    X(find_not_finite) X(skip_step) \
    X(adamw) X(sgd) X(lamb)
/* clang-format on */

struct backend_ops {
    const char *name;

#define DECLARE(operation) status (*operation)(struct backend *, const struct operation *, struct error *);
    BACKEND_OPERATIONS(DECLARE)
#undef DECLARE

    /* Memory: an arena over the device's memory (0: as much as is sensible), and copies to and from the host. */
    status (*arena_create)(struct backend *, struct arena *, size_t limit, const char *name, struct error *);
    void (*arena_destroy)(struct backend *, struct arena *);
    size_t (*memory_left)(struct backend *); /* bytes; SIZE_MAX: it computes in the host's memory */
    status (*upload)(struct backend *, void *device, const void *host, size_t bytes, struct error *);
    status (*download)(struct backend *, void *host, const void *device, size_t bytes, struct error *);
    status (*zero)(struct backend *, void *device, size_t bytes, struct error *);
    status (*copy)(struct backend *, void *to, const void *from, size_t bytes, struct error *); /* device to device */

    status (*queue_open)(struct backend *, struct transfer_queue *, enum transfer, size_t bytes, struct error *);
    void (*queue_close)(struct backend *, struct transfer_queue *); /* a zeroed one is allowed */
    status (*staging_acquire)(struct backend *, struct transfer_queue *, void **host, struct error *);
    status (*staging_send)(struct backend *, struct transfer_queue *, size_t bytes, struct error *);
    status (*staging_receive)(struct backend *, struct transfer_queue *, const void **device, struct error *);
    status (*staging_release)(struct backend *, struct transfer_queue *, struct error *);
    status (*fetch_copy)(struct backend *, struct transfer_queue *, const void *device, size_t bytes, struct error *);
    status (*fetch_send)(struct backend *, struct transfer_queue *, struct error *);
    status (*fetch_take)(struct backend *, struct transfer_queue *, const void **host, struct error *);

    /* Carries out both bodies, side by side or the first one first. What follows comes after both. */
    status (*branches)(struct backend *, const struct branches *, struct error *);

    /* record carries out the operations of body and, where the backend can, keeps them; replay then repeats them on the
     * same operands, whatever their memory holds by then. body reads and writes no host memory and has run before with
     * operands of these sizes; it may be run twice, the first time without effect. A backend that cannot record runs body
     * and leaves recording->owner NULL. */
    status (*record)(struct backend *, struct recording *, recorded_body body, void *context, struct error *);
    status (*replay)(struct backend *, const struct recording *, struct error *);
    void (*recording_destroy)(struct backend *, struct recording *); /* a zeroed one is allowed */

    /* Binds the backend to the calling thread, the only one that may use it from now on. The thread that opened a backend
     * is bound to it. */
    status (*bind)(struct backend *, struct error *);
    /* A group of group->size backends, in the order of their ranks. Any thread may create it, and be bound to any of them
     * afterwards. */
    status (*process_group_create)(struct backend *const *ranks, struct process_group *group, struct error *);
    status (*all_reduce)(struct backend *, const struct all_reduce *, struct error *);
    void (*process_group_abort)(struct backend *, struct process_group *);
    void (*process_group_destroy)(struct backend *, struct process_group *); /* a zeroed one is allowed */

    void (*close)(struct backend *);
};

struct backend {
    const struct backend_ops *ops;
    void *context;           /* the backend's own */
    const char *description; /* "cpu (avx512, 2 threads, oneDNN 2.6.3)", for logs and results */
    bool asynchronous;       /* operations return before they are done, so the cores of the host are free meanwhile */
    const char *arithmetic;  /* "cpu avx512 oneDNN 2.6.3": on processors of one kind it gives the same bits */
    enum precision precision;
    size_t held, taken, peak; /* bytes of a device's memory: from the start; now, with these; at most so far */
    /* The values [n] of parameters are about to change, so packed copies that the backend keeps of frozen ones are no longer
     * valid; forget: they are allocated or released, so their memory may be another's. */
    void (*renew)(struct backend *, const float *values, size_t n);
    void (*forget)(struct backend *, const float *values, size_t n);
};

/* The type of tensors that only products, and the operations between two of them, read: TENSOR_BF16 in bf16 precision, else
 * TENSOR_F32. The residual stream, norms, losses, weights and the optimizer are f32 in any precision. */
enum tensor_type backend_operand_type(const struct backend *backend);

struct backend_settings {
    const char *name; /* cpu, cuda; for harness/model/proven.h also auto */
    enum precision precision;
    size_t threads;      /* of the CPU; 0: one per core */
    size_t device, gpus; /* number of the GPU, counted from 0; how many train together, 0: it alone */
};

/* ERROR_DEVICE where cuda has no GPU, or the processor no unit for the precision. */
status backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error);

enum { GPUS = 64 };
const char *precision_name(enum precision precision); /* "f32", "bf16" */

/* A GPU that a backend can be opened on. */
struct gpu {
    char name[96], uuid[33]; /* uuid: in hexadecimal */
    int major, minor;        /* compute capability */
    size_t memory;           /* bytes */
};
struct gpus {
    size_t count;
    bool driver; /* there is one, perhaps one that is too old: set after a failure, too */
    struct gpu list[GPUS];
    char versions[96]; /* "CUDA 13.0, the driver knows up to 13.1" */
};

/* ERROR_DEVICE with the reason where there are none; gpus->count is 0 then. */
status backend_gpus(struct gpus *gpus, struct error *error);

/* A product with terms as a composition of products without, for backends that have no better way. */
status backend_gemm_with_terms(struct backend *backend, const struct gemm *product, struct error *error);

void backend_close(struct backend *backend); /* NULL is allowed */
SCOPED_POINTER(struct backend, backend_close)

/* The CUDA backend's part of backend_open and backend_gpus. */
status cuda_backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error);
status cuda_gpus(struct gpus *gpus, struct error *error);

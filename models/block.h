/* A transformer block of CLIP (models/README.md), and the hooks by which it is adapted.
 *
 *     x = x + attention(ln_1(x));   x = x + mlp(ln_2(x)) [+ hook]
 *
 *     struct block_saved saved;
 *     TRY(block_forward(&context, &block, hook, &x, &y, &saved, error));              // y [B, L, d]
 *     TRY(block_backward(&context, &block, hook, &saved, &dy, &dx, below, error));    // dx [B, L, d]
 */
#pragma once

#include "models/backend.h"
#include "models/parameters.h"

enum tower { TOWER_IMAGE, TOWER_TEXT };
enum { TOWERS = 2 };

enum block_place { BESIDE_MLP, REPLACES_MLP };

struct attention_hook;
struct block;

/* The context of a block's pass: everything that an adapter may depend on besides the values. */
struct block_context {
    struct backend *backend;
    struct arena *arena; /* of the step; also holds the memory that the backward pass needs */
    enum tower tower;
    size_t block;
    bool training;                  /* keep what the backward pass needs */
    const int32_t *router;          /* [B] device, −1: adapters off for that sample */
    const struct step_state *state; /* device */
    size_t first; /* number of the first sample in the whole batch, where GPUs share one; random numbers depend on it */
    float dropout; /* of embeddings, attention and MLP, in training (struct dropout) */
    const int32_t
        *rows; /* [B · rows_per_sample] device, rows of x [B · L]: the only ones whose output is wanted; NULL: all */
    size_t rows_per_sample;
    size_t positions;       /* L */
    const int32_t *lengths; /* [B] device; positions from a sample's length on are padding; NULL: there is none */
    const struct attention_hook *attention; /* of this block; NULL: none */
};

/* An adapter of one block. Tensors are [B, L, d]; forward adds to y, which holds the block's output with the MLP's share
 * or (REPLACES_MLP) without; backward adds to dx and dln2. dx has no data where nothing below needs a gradient, and may be dy
 * itself, which backward therefore reads before it adds to dx. With a hook that replaces the MLP, every sample must have a
 * router; a sample without one would get neither experts nor MLP. */
struct block_hook {
    void *state;
    enum block_place place;
    bool trained;      /* it has weights that need gradients */
    bool whole;        /* it reads every position of a sample, so the last block must compute all of them */
    bool stream_alone; /* backward neither reads ln2_x nor adds to dln2, which then have no data */
    /* Called before the first block of a forward pass, with its input: takes memory that must outlast the hook's own block,
     * in evaluation, too. NULL: none. */
    status (*begin)(void *state, const struct block_context *context, const struct tensor *x, struct error *error);
    status (*forward)(void *state, const struct block_context *context, const struct tensor *x,
                      const struct tensor *ln2_x, struct tensor *y, struct error *error);
    status (*backward)(void *state, const struct block_context *context, const struct tensor *x,
                       const struct tensor *ln2_x, const struct tensor *dy, struct tensor *dx, struct tensor *dln2,
                       struct error *error);
};

/* Sees the inputs of a layer in every forward pass. */
struct linear_tap {
    status (*see)(struct linear_tap *tap, struct backend *backend, struct matrix x, struct error *error);
};

/* The values around a block's attention, or their gradients: ln_1's output [B, L, d], qkv [B, L, 3d] (struct attention), and the
 * attention before the projection of the output [B, R, d], R as in struct block_saved. */
struct attention_values {
    struct tensor normal, qkv, attended;
};

/* What is added to a block's attention: by further keys and values, which queries attend to beside the sample's own positions, or
 * from ln_1's output. */
struct attention_hook {
    void *state;
    bool trained;      /* it has weights that need gradients */
    bool reads_normal; /* it reads ln_1's output instead of qkv */
    /* attended += … What it takes from the arena is released after it, in training, too; the backward pass may call it again. */
    status (*forward)(void *state, const struct block_context *context, const struct block *block,
                      const struct attention_values *values, struct error *error);
    /* The gradient of qkv, or of normal, += …, and those of its weights, from that of attended. That of normal has no data where
     * nothing below is trained. */
    status (*backward)(void *state, const struct block_context *context, const struct block *block,
                       const struct attention_values *values, const struct attention_values *gradients,
                       struct error *error);
};

/* A low-rank update of a layer's weight, kept apart from it (LoRA: Hu et al., ICLR 2022):
 *
 *     y[first … first + out) += scale · gate(x Aᵀ) B          A [rows, in], B [rows, out], which is the paper's Bᵀ
 *
 * Without a gate this is the weight W + scale · Bᵀ A. Some of the last rows may be trained while the others stay as they are. */
struct delta;

/* An operation between the halves, for experts of rank one that choose themselves, or directions with a magnitude. p,
 * q and their gradients are f32 [N, rows]. */
struct delta_gate {
    const char *name; /* in files */
    /* Sets q from p = x Aᵀ. */
    status (*forward)(const struct delta *delta, struct backend *backend, struct arena *arena, bool training,
                      struct matrix p, struct matrix q, struct error *error);
    /* Sets dp from dq, as in training, and adds the gradients of what the gate has itself. */
    status (*backward)(const struct delta *delta, struct backend *backend, struct arena *arena, struct matrix p,
                       struct matrix dq, struct matrix dp, struct error *error);
};

struct delta {
    float *a, *b;
    float *da, *db;                /* gradients of the last `trained` rows; NULL: this half is not trained */
    size_t rows, trained;          /* rows 0: none is in use */
    size_t first, out;             /* rows of the layer's weight, columns of its output */
    float scale;                   /* not 0 */
    bool trains;                   /* halves or gate: a gradient is wanted */
    const struct delta_gate *gate; /* NULL: none */
    void *state;                   /* the gate's */
};

enum { LINEAR_DELTAS = 3 };

struct linear {
    struct weight weight, bias; /* [out, in], [out] */
    size_t out, in;
    bool exact;                 /* products in f32 whatever the precision */
    const struct delta *deltas; /* [delta_count ≤ LINEAR_DELTAS] low-rank updates, borrowed; of disjoint outputs */
    size_t delta_count;
    struct linear_tap *tap; /* NULL: none */
};

struct layer_norm_weights {
    struct weight gain, bias;
    float epsilon;
};

struct block {
    size_t width, hidden, heads; /* hidden: units of the MLP */
    bool causal;
    enum activation activation;
    struct layer_norm_weights ln_1, ln_2;
    struct linear in_proj, out_proj, c_fc, c_proj;
};

/* The values that a forward pass keeps for the backward pass. R is L, or the context's rows_per_sample. */
struct block_saved {
    struct tensor x, qkv;          /* [B, L, d], [B, L, 3d] */
    struct tensor x_mid, attended; /* [B, R, d]; attended without what an attention hook adds */
    struct tensor hidden;          /* [B, R, hidden] before the activation, unless a hook replaces the MLP */
    float *ln_1, *ln_2;            /* statistics [B·L, 2] */
    float *lse;                    /* of the attention: struct attention */
};

/* y = x Wᵀ + b, through an activation if asked (before keeps the value ahead of it), plus addend. */
struct linear_forward {
    struct matrix x, y, addend, before;
    enum activation activation;
    struct arena *arena; /* scratch memory of a layer with deltas */
    bool training;       /* for the deltas' gates */
};
status linear_forward(struct backend *backend, const struct linear *linear, const struct linear_forward *operands,
                      struct error *error);
/* dx = dy W with the shares of the deltas, whose gradients it adds to; with `before`, dx ⊙ act'(before), back through an
 * activation in front of the layer. */
struct linear_backward {
    struct matrix x; /* the layer's input, where a gradient is wanted that needs it */
    struct matrix dy, dx /* no data: not wanted */, before;
    enum activation activation;
    struct arena *arena; /* scratch memory of a layer with deltas */
};
status linear_backward(struct backend *backend, const struct linear *linear, const struct linear_backward *operands,
                       struct error *error);
/* The weight's and bias's gradients, where they are trained: dW += dyᵀ x, db += Σ dy. */
status linear_backward_weights(struct backend *backend, const struct linear *linear, struct matrix x, struct matrix dy,
                               struct error *error);

/* statistics NULL: no backward pass follows. The backward functions get only operands that are not weights. */
status layer_norm_forward(struct backend *backend, const struct layer_norm_weights *ln, struct matrix x,
                          float *statistics, struct matrix y, struct error *error);
status layer_norm_backward(struct backend *backend, const struct layer_norm_weights *ln,
                           struct layer_norm_backward operands, struct error *error);

/* Dropout of a tower (Dosovitskiy et al. 2021): after the positions are added, after the attention, and after each layer of an
 * MLP. Without dropout, or outside training, nothing happens and out stays as it is: see drops. */
enum dropout_place { DROPOUT_EMBEDDING, DROPOUT_ATTENTION, DROPOUT_HIDDEN, DROPOUT_MLP };
status block_drop(const struct block_context *context, enum dropout_place place, const struct tensor *x,
                  const struct tensor *addend, const struct tensor *out, struct error *error);

/* y = addend + c_proj(act(c_fc(x))), x the output of ln_2; addend NULL: none; before receives the hidden units before the
 * activation, unless it has no data. */
status block_mlp(const struct block_context *context, const struct block *block, const struct tensor *x,
                 struct matrix before, const struct tensor *addend, struct tensor *y, struct error *error);

/* x [B, L, d] → y [B, R, d]. With context->rows, everything after the attention is computed for those rows alone, as in the
 * last block, where the features use one row per sample. Position 0 must be among them where a hook routes by it, and a
 * hook that is whole needs all rows. */
status block_forward(const struct block_context *context, const struct block *block, const struct block_hook *hook,
                     const struct tensor *x, struct tensor *y, struct block_saved *saved, struct error *error);

/* Whether something of the block itself is trained: its weights or deltas. */
bool block_is_trained(const struct block *block);

/* dy [B, R, d] → dx [B, L, d], which may be dy itself where R = L; dy is overwritten. below: something below this block is
 * trained; otherwise dx is unspecified, and a frozen block's halves are skipped. */
status block_backward(const struct block_context *context, const struct block *block, const struct block_hook *hook,
                      const struct block_saved *saved, struct tensor *dy, struct tensor *dx, bool below,
                      struct error *error);

/* Kinds of experts, and the experts of a block with their routing and the values that a forward pass keeps for its
 * backward pass.
 *
 *     const struct expert_kind *kind;
 *     TRY(expert_kind_find(&kind, "ffn", error));
 *     settings.kind = kind;
 *     kind->set_unread(&settings);
 *
 * Each kind is two linear layers with an activation or nothing between them; it sets the activation, the place in the block
 * and the start values. A new one is a file in this folder, copied from lora.c, and a name here. expert.c computes experts of any
 * kind and puts them into a block, routers/ chooses them. */
#pragma once

#include "adapters/adapter.h"
#include "core/rng.h"

struct expert_kind {
    const char *name, *source; /* source: where it is published */
    const char *formula;
    enum block_place place;
    enum activation activation;      /* between the layers; dropout works with ACTIVATION_RELU alone */
    bool models_activation;          /* the activation of the model's MLPs instead */
    const char *parts[EXPERT_PARTS]; /* names of its tensors */
    /* Hidden units of an expert in a tower whose MLPs have `mlp` of them. */
    size_t (*hidden)(const struct adapter_settings *settings, size_t mlp);
    void (*set_unread)(
        struct adapter_settings *settings); /* sets the fields of keys that it does not read; NULL: nothing */
    status (*check)(const struct adapter_settings *settings, struct error *error);
    /* Sets the start values, from zeros. block: the model's, NULL where there is none. */
    status (*start)(struct adapter_tower *tower, size_t bank, const struct block *block, uint64_t seed,
                    struct error *error);
};

#define EXPERT_KINDS(X) X(lora) X(ffn)
#define DECLARE(name) extern const struct expert_kind expert_##name;
EXPERT_KINDS(DECLARE)
#undef DECLARE

status expert_kind_find(const struct expert_kind **kind, const char *name, struct error *error);
const struct expert_kind *expert_kind_at(size_t index);                            /* NULL past the last one */
const struct expert_kind *expert_kind_of(const struct adapter_settings *settings); /* lora by default */

/* --- Internal to adapters/ --- */

/* Experts of a block with the samples that each was given. A sample is `length` rows: all of an image or a prompt, or
 * one token. */
struct expert_layer {
    const struct adapter_tower *tower;
    struct weight parts[EXPERT_PARTS]; /* [E, m, d], [E, m], [E, d, m], [E, d] */
    const int32_t *frozen;             /* device [E], NULL: none is */
    uint64_t numbers;                  /* first random number of its dropout */
    size_t length;
    bool tokens;   /* a sample of the layer is a token */
    bool constant; /* gates are 1 and have no gradient */
    struct dispatch dispatch;
    const float *weights; /* [samples, K] weights of the forward sum; NULL: the gates */
    struct tensor hidden; /* [samples · K · length, m], in the backend's own order */
};

/* Takes memory for a dispatch, which the router fills. */
status expert_dispatch_take(struct dispatch *dispatch, const struct block_context *context, size_t samples,
                            size_t experts, size_t top_k, struct error *error);

enum { ROUTER_ARRAYS = 6 }; /* that a router keeps for its backward pass */

/* A decision that several blocks use. */
struct shared_decision {
    struct dispatch dispatch;
    float *weights; /* [samples, K], as in struct expert_layer; NULL: the gates */
    float *dgates;  /* [samples, K] the sum over the blocks; NULL: not training */
};

/* The values that a forward pass through one block keeps for its backward pass. Arrays of the router are per sample
 * of the layer. */
struct expert_pass {
    const struct adapter_tower *tower;
    size_t block;                    /* of the tower */
    size_t index, bank;              /* among the tower's passes and banks */
    struct expert_pass *decider;     /* pass whose decision this one uses: the first of its run, or itself */
    struct shared_decision decision; /* of a decider that has followers */
    struct expert_layer routed, shared;
    struct tensor
        gate; /* [samples, positions, d], whose first position the router reads: x itself, or means [samples, 1, d] */
    const int32_t *router; /* [samples] */
    float *kept[ROUTER_ARRAYS];
};

/* Blocks that use each decision: 1 unless they share them. */
size_t expert_decision_users(const struct adapter_tower *tower);

/* Fills the routed layer's dispatch from x [B, L, d]. */
status router_forward(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                      struct error *error);

/* Whether a decision reads all positions of a sample, not its first one alone. */
bool router_reads_all(const struct adapter_tower *tower);

/* dgates [samples, K] is the gradient of the gates and is overwritten. dx += … unless it has no data. */
status router_backward(struct expert_pass *pass, const struct block_context *context, float *dgates,
                       const struct tensor *dx, struct error *error);

/* The dispatch of a layer with one expert: every sample with a router goes to it, with gate 1. */
status router_send_all(const struct expert_layer *layer, const struct block_context *context, const struct tensor *x,
                       struct error *error);

/* The hook that runs the pass in its block. */
void expert_hook(struct expert_pass *pass, struct block_hook *hook);

/* The population deviation. */
double expert_deviation(const float *values, size_t n);
/* values[i] += deviation · n_i, n ~ N(0, 1) from draw `base` on. */
void expert_add_noise(float *values, size_t n, double deviation, const struct rng *rng, uint64_t base);

/* The first random number of a block. Each block has 2⁴⁰ numbers of its own, the upper half for its shared expert. */
uint64_t expert_numbers(const struct block_context *context);

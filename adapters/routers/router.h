/* Routers choose the experts of each sample. A router fills the dispatch of a block's layer and propagates the gradient of
 * its gates. A new one is a file in this folder, copied from softmax_topk.c, and a name here.
 *
 *     const struct router_kind *kind;
 *     TRY(router_kind_find(&kind, "softmax_topk", error));
 *     settings.router = kind;
 */
#pragma once

#include "adapters/experts/expert.h"

struct router_kind {
    const char *name, *source; /* source: where it is published */
    const char *formula;
    bool weights, noise_weights; /* whether it has a matrix of each, [T, d, E], one for each task */
    bool averages;               /* it chooses in training alone; otherwise samples go to the mean of the experts */
    unsigned balances;           /* its balance losses, as bits 1 << enum balance_kind */
    status (*check)(const struct adapter_settings *settings, struct error *error); /* NULL: nothing to check */
    /* Sets the start weights, from zeros; NULL: they stay zero. */
    status (*start)(struct adapter_tower *tower, size_t bank, uint64_t seed, struct error *error);
    /* Fills the dispatch of pass->routed from the router's input rows and adds the balance loss. before: samples of the
     * batch that precede this share, by which random numbers are counted. */
    status (*forward)(struct expert_pass *pass, const struct block_context *context, size_t before,
                      struct error *error);
    /* dgates [samples, K] may be overwritten. dx += the gradient of the router's input rows; NULL: not wanted. */
    status (*backward)(struct expert_pass *pass, const struct block_context *context, float *dgates, float *dx,
                       struct error *error);
};

#define ROUTER_KINDS(X) X(noisy_topk) X(softmax_topk) X(random_uniform)
#define DECLARE(name) extern const struct router_kind router_##name;
ROUTER_KINDS(DECLARE)
#undef DECLARE

status router_kind_find(const struct router_kind **kind, const char *name, struct error *error);
const struct router_kind *router_kind_at(size_t index);                            /* NULL past the last one */
const struct router_kind *router_kind_of(const struct adapter_settings *settings); /* noisy_topk by default */

enum { SOFTMAX_PROBABILITIES }; /* where softmax_topk keeps p [samples, E] */

/* Refuses settings that contradict one another for their router; where: "suite" or another beginning of the message. */
status router_check(const struct adapter_settings *settings, const char *where, struct error *error);

/* For routers: whether this pass adds a balance loss; whether an earlier block has the same experts; and memory for an array
 * of the pass. */
bool router_is_balanced(const struct expert_pass *pass, const struct block_context *context);
bool router_adds_used(const struct expert_pass *pass);
status router_take(struct expert_pass *pass, const struct block_context *context, size_t array, const char *name,
                   size_t rows, size_t columns, struct error *error);

/* Operands of the operations that route samples to experts and combine the outputs (models/backend.h).
 *
 *     TRY(ops->route(backend, &(struct route){…, .dispatch = &dispatch}, error));           // who goes where
 *     struct expert_stack_operands stack = {.dispatch = &dispatch, …};
 *     TRY(ops->experts(backend, &(struct experts){.stack = stack, .x = x, .units = units, .y = y}, error));
 *
 * A sample is an image or a prompt, or one token of it, as the caller likes.
 */
#pragma once

#include <stdbool.h>

#include "models/tensor.h"

struct backend;
struct step_state;

/* The slots of each sample's chosen experts, sorted by expert, then by sample. */
struct dispatch {
    size_t samples, experts, top_k;
    int32_t *chosen; /* [B, K] expert, best first; −1 where the sample's router is off */
    float *gates;    /* [B, K] */
    int32_t
        *slot; /* [B, K] its slot, −1: none, because the router is off or the expert is full (struct route_softmax) */
    int32_t *sample;  /* [B · K] by slot: the sample */
    int32_t *choice;  /* [B · K] by slot: b · K + k */
    int32_t *offsets; /* [E + 1] first slot of each expert */
};

/* Noisy top-k (Shazeer et al. 2017; adapters/README.md): z = x₀R_r + n ⊙ (softplus(x₀N_r) + ε), gates = softmax over the K largest
 * z (ties: the lowest index). r is the sample's router, −1 for none. counts [E] and used [E] are written in training
 * only: counts += samples per expert with a gate above 0; used[e] = whether e was chosen and is not frozen (used NULL: not
 * wanted). With add_used, flags that are set stay set, as for a further block with the same experts. */
struct route {
    size_t batch, positions, width, experts, top_k, routers;
    const void *x;             /* [B, L, d]; position 0 decides */
    const void *routers_value; /* R [T, d, E] */
    const void *noise_value;   /* N [T, d, E] */
    const int32_t *router;     /* [B] */
    bool training;
    const void *noise; /* n [B, E]; NULL: drawn, purpose RNG_ROUTER_NOISE, index noise_base + b · E + e */
    uint64_t noise_base;
    const struct step_state *state;
    float epsilon;
    struct dispatch *dispatch;
    float *noise_logits, *drawn; /* [B, E] x₀N and n, kept for the backward pass */
    float *logits;               /* [B, E] z, kept for the balance loss; NULL: not */
    int32_t *counts, *used;
    bool add_used;
    const int32_t *frozen; /* [E] or NULL */
};
/* The backward pass, from dgates [B, K]: dR, dN [T, d, E] and, unless NULL, dx (position 0) += … */
struct route_backward {
    size_t batch, positions, width, experts, top_k;
    const void *x, *routers_value, *noise_value;
    const int32_t *router;
    const struct dispatch *dispatch;
    const float *noise_logits, *drawn, *dgates;
    const float *dlogits, *dnoise_logits; /* [B, E] further gradients of x₀R and x₀N (struct balance); NULL: none */
    void *drouters, *dnoise, *dx;
};

/* The balance loss of noisy top-k (Shazeer et al. 2017, section 4 and appendix A): loss += weight · (CV²(importance) +
 * CV²(load)), and unweighted += share times the same sum, over the experts, CV² their unbiased variance / (mean² + 1e-10).
 * importance_e = Σ_b g_be; load_e = Σ_b Φ((c_be − T_be) / s_be) with c = x₀R, s = softplus(x₀N) + ε, and T_be the K-th largest
 * z of the other experts. Samples without a router are left out. With K = E the loads are equal. Receives the gradients of
 * gates, c and x₀N. */
struct balance {
    const struct dispatch *dispatch;
    float epsilon, weight, share;
    float *logits;                     /* [B, E] in: z; out: the gradient of c */
    const float *noise_logits, *drawn; /* [B, E] as route left them */
    float *dnoise_logits, *dgates;     /* [B, E], [B, K] */
    float *loss, *unweighted;          /* one value each; unweighted NULL: not wanted */
};

enum alignment { ALIGN_NONE, ALIGN_SHARED, ALIGN_EACH };

/* Softmax top-k (WideNet: Xue et al., "Go Wider Instead of Deeper", AAAI 2022; RMoE: Wu et al., "Residual Mixture of
 * Experts", 2022): p = softmax(x R_r + σ ε) over the experts, ε ~ N(0, 1) in training and 0 else. The K largest are
 * chosen (ties: the lowest index) with p as their gates, so the gates of a sample do not sum to 1. r is the sample's
 * router, −1 for none: p is 0 then. An expert keeps at most `limit` samples: first choices before second ones and so on,
 * each in the order of the samples; the choices beyond have no slot and gate 0. Gates are NaN where a logit is not finite.
 * counts and used are as in struct route. */
struct route_softmax {
    size_t samples, width, experts, top_k, routers;
    const void *x;             /* [B, d], f32 */
    const void *routers_value; /* R [T, d, E] */
    const int32_t *router;     /* [B] */
    bool training;
    float noise_deviation; /* σ */
    const void *noise;     /* ε [B, E]; NULL: drawn, purpose RNG_ROUTER_NOISE, index noise_base + b · E + e */
    uint64_t noise_base;
    const struct step_state *state;
    size_t limit; /* 0: none */
    struct dispatch *dispatch;
    float *probabilities; /* p [B, E], kept for the backward pass and the balance loss */
    /* Weights of the forward sum of the experts' outputs, [B, K]; NULL: not wanted. They are the gates or, aligned (RMoE),
     * for each of a sample's n kept choices ALIGN_SHARED g + (1 − Σ g) / n, ALIGN_EACH g + (1 − g), which is Equation 7; a
     * single kept choice has exactly 1 with both. The added part has no gradient, along the experts' outputs either: in the
     * backward pass their weights are the gates. */
    enum alignment aligned;
    float *weights;
    int32_t *counts, *used;
    bool add_used;
    const int32_t *frozen; /* [E] or NULL */
};
/* The backward pass, from dgates [B, K] of the choices that have a slot and dprobabilities [B, E] (struct
 * balance_softmax; NULL: none): dR [T, d, E] and, unless NULL, dx [B, d] += … Gradients of logits below 1e-30 count
 * as 0. */
struct route_softmax_backward {
    size_t samples, width, experts, top_k, routers;
    const void *x, *routers_value;
    const int32_t *router;
    const struct dispatch *dispatch;
    const float *probabilities, *dgates, *dprobabilities;
    void *drouters, *dx;
};

/* Balance losses of softmax top-k over the n samples that have a router; 0 where there are none.
 * BALANCE_WIDENET: loss += weight · E · Σ_e m_e P_e, m_e = choices of e / n before the limit, P_e = the mean of p.
 * BALANCE_RMOE: loss += weight · (population deviation / mean of the importance)², importance_e = Σ of the gates of e.
 * unweighted += share times the same without its weight. dprobabilities receives the gradient; m has none. */
enum balance_softmax_kind { BALANCE_WIDENET, BALANCE_RMOE };
struct balance_softmax {
    enum balance_softmax_kind kind;
    const struct dispatch *dispatch;
    const float *probabilities; /* p [B, E] */
    float weight, share;
    float *dprobabilities;    /* [B, E] */
    float *loss, *unweighted; /* one value each; unweighted NULL: not wanted */
};

/* EWA's random uniform partition (Huang et al., "Experts Weights Averaging", 2023): the n samples that have a router, in a
 * random order, are cut into E groups of n div E, the first n mod E of them with one more; group e goes to expert e,
 * with gate 1. Samples are ordered by random 32-bit numbers, purpose RNG_TOKENS, index base + b; ties: by b. top_k of the
 * dispatch is 1. */
struct partition {
    const int32_t *router; /* [B] */
    const int32_t *owner;  /* [B] experts, given; NULL: drawn */
    uint64_t base;
    const struct step_state *state;
    struct dispatch *dispatch;
    int32_t *counts, *used; /* [E] as in struct route; NULL: not wanted */
    bool add_used;
    const int32_t *frozen; /* [E] or NULL */
};

/* rows of slot s = x[sample[s]]; [slots · L, d] */
struct dispatch_gather {
    const struct dispatch *dispatch;
    size_t rows_per_sample, width;
    enum tensor_type x_type, out_type;
    const void *x;
    void *out;
};
/* y[b] += scale · Σ_k weight[b, k] · rows[slot[b, k]]; weights NULL: 1; y is f32 */
struct dispatch_combine {
    const struct dispatch *dispatch;
    size_t rows_per_sample, width;
    enum tensor_type rows_type;
    const void *rows;
    const float *weights;
    float scale;
    void *y;
};

/* counts[e, f] [E, E] += samples that have e among first and f among second, [samples, K] each; −1 is none. */
struct count_pairs {
    size_t samples, experts, top_k;
    const int32_t *first, *second;
    int32_t *counts;
};

/* Dropout of hidden [slots · L, m] in place: a unit stays with probability 1 − p and is scaled by 1/(1 − p). Word
 * (index mod 4) of block (index / 4), index = base + ((b · K + k) · L + l) · m + unit, purpose RNG_DROPOUT. base and L
 * · m are multiples of 4. */
struct dispatch_dropout {
    const struct dispatch *dispatch;
    size_t rows_per_sample, width;
    float probability;
    uint64_t base;
    const struct step_state *state;
    enum tensor_type type; /* of hidden */
    void *hidden;
};

/* The gates' part of the backward pass of experts. With dh = dy W_up before any gate and h the hidden units:
 * dgates[b, k] = scale · (Σ h ⊙ dh + b_up[e] · Σ_l dy);  dh ← gate · scale · dh ⊙ act'(before) / (1 − p);  h ← gate ·
 * scale · h; dy ← dy, with its gated, scaled column sums in dup_bias [E, d] += gate · scale · Σ_l dy for experts that are
 * not frozen. before holds the hidden units before their activation; NULL: the activation is ReLU, whose slope follows from
 * h, after dropout, too. */
struct expert_gate_backward {
    const struct dispatch *dispatch;
    size_t rows_per_sample, hidden, width;
    float scale, keep;     /* keep = 1 − p */
    enum tensor_type type; /* of h, before, dh and dy */
    enum activation activation;
    const void *before;
    void *h, *dh;
    const void *dy, *up_bias;
    float *dgates;
    void *dup_bias;
    const int32_t *frozen;
};

/* Stacked experts ε_e(x) = W₂ drop(act(W₁ x + b₁)) + b₂ of m hidden units, and the samples that were routed to them. The
 * three operations below belong together: their stacks are equal. x, y and their gradients have addresses that are
 * multiples of 16. */
struct expert_stack_operands {
    const struct dispatch *dispatch;
    size_t rows_per_sample, width, hidden;
    bool tokens; /* a sample is a token: samples are many, and have one row each */
    enum activation activation;
    float scale;
    float *first, *first_bias, *second, *second_bias; /* [E, m, d], [E, m], [E, d, m], [E, d] */
    float probability;                                /* of dropout, in training; 0: none */
    uint64_t base;                                    /* as in struct dispatch_dropout */
    const struct step_state *state;
    struct arena *arena; /* of the backend, for what lives no longer than an operation */
};
/* y += scale · Σ_k weight[b, k] · ε_k(x[b]), k over the choices that have a slot; x, y [B, L, d]. */
struct experts {
    struct expert_stack_operands stack;
    bool training;
    enum tensor_type x_type;
    const void *x;
    const float *weights; /* [B, K]; NULL: the gates */
    void *units; /* [B · K · L, m] of the operands' type; in training kept for the backward pass, in any order */
    float *y;
};
/* The backward pass, from dy [B, L, d]: dgates [B, K], set, 0 for choices without a slot; gradients of weights and
 * biases of experts that are not frozen, += …; and dunits, like units, for the operation below. units are
 * overwritten. */
struct experts_backward {
    struct expert_stack_operands stack;
    bool constant; /* gates are 1 and have no gradient: dgates need not be set */
    enum tensor_type x_type, dy_type;
    const void *x, *dy;
    void *units, *dunits;
    float *dgates;
    float *dfirst, *dfirst_bias, *dsecond, *dsecond_bias;
    const int32_t *frozen; /* [E] or NULL */
};
/* dx [B, L, d] += … */
struct experts_backward_input {
    struct expert_stack_operands stack;
    const void *dunits;
    float *dx;
};

/* The same three as a composition of other operations, for backends without kernels of their own for them: samples are sorted into
 * slots, all slots of an expert go through one product, and the outputs are combined. */
status experts_by_slots(struct backend *backend, const struct experts *o, struct error *error);
status experts_backward_by_slots(struct backend *backend, const struct experts_backward *o, struct error *error);
status experts_backward_input_by_slots(struct backend *backend, const struct experts_backward_input *o,
                                       struct error *error);

/* Whether a GPU has kernels of its own for stacks of this shape, where samples choose. In bf16 precision these read copies of the
 * weights, which it keeps (models/cuda/experts.cu). */
static inline bool experts_go_by_sample(enum activation activation, size_t width, size_t hidden)
{
    enum { WHOLE = 8, WIDEST = 2048, MOST = 128 };
    return activation == ACTIVATION_RELU && width % WHOLE == 0 && width <= WIDEST && hidden % WHOLE == 0 &&
           hidden <= MOST;
}

enum { PREFIX_LENGTH = 64 }; /* keys of a prefix, at most */

/* Attention over n learned keys and values beside a sample's own: out += weight · softmax(q Kᵀ / √c) V per head of c columns, at
 * most 128, where every query sees all n (residual attention: Tang et al., "Mind the Interference", ECCV 2024). K and V are those
 * of the sample's router; one without a router (−1) gets nothing. The sums are in f32 whatever the precision. */
struct prefix_operands {
    size_t batch, positions, width, heads, length; /* length: n */
    enum tensor_type type;                         /* of qkv, out and their gradients */
    const int32_t *rows;                           /* as in struct attention_operands */
    size_t rows_per_sample;
    const int32_t *router; /* [B] */
    const float *weights;  /* [B]; NULL: 1 */
    const float *values;   /* [T, 2, n, width]: keys, then values */
    const void *qkv;       /* [B, L, 3 · width] */
};
struct prefix_attention {
    struct prefix_operands prefix;
    void *out; /* [B, R, width] */
};
struct prefix_attention_backward {
    struct prefix_operands prefix;
    size_t routers;   /* T */
    const void *dout; /* [B, R, width] */
    void *dqkv;       /* its queries += … */
    float *dvalues;   /* like values, += …; NULL: not wanted */
};

/* Prefixes with a gate per token (DPW: Jang et al., "Enhancing Continual Learning of Vision-Language Models via Dynamic Prefix
 * Weighting", CVPR 2026). With n values V and h heads of c columns, a row x at position i, its scores s and the output r of a delta:
 *
 *     g = σ(s + bias_i),   m = max(1, Σ g) per head
 *     out += weight · (g / m · V + scale · (m − 1) · r)
 *
 * A sample whose weight is below `certain` keeps a g / m only where it is above 1 − weight, or with `mean` above 1 − σ(log
 * N(s + bias; mean, variance)) of its first row. One without a router (−1) gets nothing. Heads from *used on do not count, and
 * their gradients are 0. The sums are in f32 whatever the precision. */
struct gated_prefix_operands {
    size_t batch, positions, width, heads, length; /* heads: the most there may be, a divisor of width; length: n */
    enum tensor_type type;                         /* of out and its gradient */
    const int32_t *rows;                           /* as in struct attention_operands */
    size_t rows_per_sample;
    const int32_t *router; /* [B] */
    const float *weights;  /* [B]; NULL: 1 */
    const float *used;     /* 1 value: h, a divisor of width */
    const float *scores;   /* [B · R, heads · n] */
    const float *bias;     /* [at least L, heads · n] */
    const float *values;   /* [n, width] */
    const float *residual; /* [B · R, width]: r */
    float scale, certain;
    const float *mean, *variance; /* [heads · n]; NULL: none */
};
struct gated_prefix {
    struct gated_prefix_operands prefix;
    void *out;   /* [B, R, width] */
    float *seen; /* [B, heads · n]: s + bias of each sample's first row; NULL: not wanted */
};
struct gated_prefix_backward {
    struct gated_prefix_operands prefix;
    const void *dout; /* [B, R, width] */
    float *dscores;   /* like scores: set, like dresidual */
    float *dresidual; /* like residual */
    float *dvalues;   /* like values: +=, like dbias */
    float *dbias;     /* like bias */
};

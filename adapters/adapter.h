/* The mixtures of experts in the blocks of both towers (adapters/README.md): experts, routers, counts and the frozen set.
 *
 *     struct adapters *adapters;
 *     struct adapter_settings settings = {.experts = 55, .top_k = 2, .tasks = 11, .bottleneck = 64, .scale = 0.1f, …};
 *     TRY(adapters_create(&adapters, backend, &model_arena, &dimensions, &settings, PARAMETERS_TRAINED, error));
 *     TRY(adapters_initialize(adapters, blocks, seed, error));  // blocks: the model's
 *     TRY(adapters_begin_task(adapters, task, error));  // counts to zero, a fresh optimizer, router `task` trained
 *     encoding.hooks = adapters_hooks(adapters, TOWER_IMAGE);               // for clip_encode_*
 *     ... after the backward pass: adapters_before_update(adapters, &rule, error), and a step of each tower's parameters
 */
#pragma once

#include "adapters/place.h"
#include "core/scope.h"
#include "models/clip/cost.h"
#include "models/dispatch.h"

enum expert_input { EXPERT_INPUT_RESIDUAL, EXPERT_INPUT_POST_LN };
enum gate_input { GATE_CLASS_TOKEN, GATE_MEAN };
/* How experts that replace the MLP start; auto: independent where the model starts from random weights. */
enum expert_start { EXPERT_START_COPIES, EXPERT_START_INDEPENDENT, EXPERT_START_AUTO };
enum routing_unit { ROUTING_PER_SAMPLE, ROUTING_PER_TOKEN };
enum balance_kind { BALANCE_NONE, BALANCE_CV, BALANCE_LOSS_WIDENET, BALANCE_LOSS_RMOE };

struct expert_kind; /* adapters/experts/expert.h */
struct router_kind; /* adapters/routers/router.h */

struct adapter_settings {
    const struct expert_kind *kind;           /* NULL: lora */
    const struct router_kind *router;         /* NULL: noisy_topk */
    size_t experts, top_k, tasks, bottleneck; /* tasks: routers, one of each or one for all */
    float scale, dropout, noise_epsilon;
    enum expert_input input;
    float router_noise; /* of softmax_topk: standard deviation of the noise on its logits in training */
    double capacity; /* of softmax_topk: an expert takes at most this times its fair share in training; 0: no limit */
    enum alignment aligned_output; /* of softmax_topk: weights of a sample's experts, whose gradients are the gates' */
    enum gate_input gate_input;    /* of samples */
    enum routing_unit routing;     /* unit that is routed and counted: samples or tokens */
    enum expert_start start;       /* of kind ffn */
    float init_noise;              /* of kind ffn: how far experts start from the MLP */
    bool absolute_noise;           /* init_noise and score_noise are deviations, not shares of a tensor's own */
    enum activation activation;    /* of the model's MLPs, for kinds that share it */
    struct adapter_place place;
    size_t score_steps;        /* steps of each task before as many batches score the blocks (BLOCKS_BY_SCORE) */
    float score_noise;         /* init_noise while blocks are scored */
    bool shared_expert;        /* one more, which every sample uses with gate 1; neither merged nor frozen */
    enum balance_kind balance; /* the loss that spreads samples over experts, added to that of the task */
    float balance_weight;
};

/* Tensors of an expert: weight and bias of its two layers. */
enum { EXPERT_DOWN, EXPERT_DOWN_BIAS, EXPERT_UP, EXPERT_UP_BIAS, EXPERT_PARTS };

/* The tensors of one block, or of blocks that share them, by number in the tower's group; experts are stacked along the
 * first axis. */
struct expert_bank {
    size_t block;                /* index in the tower; of blocks that share, the first */
    size_t parts[EXPERT_PARTS];  /* [E, m, d], [E, m], [E, d, m], [E, d] */
    size_t routers, noise;       /* [T, d, E] each, where the router has them */
    size_t shared[EXPERT_PARTS]; /* with settings.shared_expert: a stack of one */
    float *mean[EXPERT_PARTS];   /* see adapters_mean; NULL unless the router averages */
    uint64_t mean_of;            /* version of the parameters that mean was computed from */
    int32_t *used;               /* device [E], the experts' update flags */
    int32_t *counts, *frozen;    /* device [E] */
};

struct expert_pass; /* what a forward pass keeps for its backward pass */

/* Device memory, NULL unless it was asked for: adapters/statistics.h. */
struct adapter_statistics {
    int32_t *pairs, *next;    /* [blocks, E, E] */
    int32_t *earlier;         /* [blocks, E] */
    float *probes;            /* [blocks, PROBES, d] */
    float *squared_gradients; /* like the tower's parameters */
};

/* Banks, counts and other arrays by block cover the blocks that have adapters, in their order; of a run of blocks that
 * share their experts, only the first. */
struct adapter_tower {
    struct adapters *adapters;
    size_t blocks, width; /* blocks: those with experts of their own, 0: none */
    size_t adapted;       /* blocks with adapters */
    size_t decisions; /* routing decisions per sample: one for each of these blocks, or for each run that shares them */
    size_t hidden;    /* units of an expert, m */
    enum activation activation;
    struct parameters *parameters;
    struct expert_bank *banks;
    struct expert_pass *passes; /* [adapted] */
    struct block_hook *hooks;   /* by block of the tower */
    int32_t *choices;           /* see adapters_keep_choices */
    float *gates;               /* likewise */
    float *no_preference;       /* device [T, d] zeros: the router between one expert and itself */
    struct adapter_statistics statistics;
};

struct adapters {
    struct backend *backend;
    struct adapter_settings settings;
    struct adapter_tower towers[TOWERS];
    float *loss, *balance; /* see adapters_add_loss */
    float loss_share;
};

status adapters_create(struct adapters **adapters, struct backend *backend, struct arena *arena,
                       const struct clip_dimensions *dimensions, const struct adapter_settings *settings,
                       enum parameters_mode mode, struct error *error);
void adapters_destroy(struct adapters *adapters); /* NULL is allowed */
SCOPED_POINTER(struct adapters, adapters_destroy)

/* Whether a tower has adapters at all. */
bool adapters_in_tower(const struct adapters *adapters, enum tower tower);

/* Sets the start values of the kind, drawn with RNG_INIT; all values must be zero before. blocks: the blocks of the model's
 * towers, NULL for kinds that do not start from them. */
status adapters_initialize(struct adapters *adapters, const struct block *const blocks[TOWERS], uint64_t seed,
                           struct error *error);

/* ERROR_ARGUMENT where experts that start as copies of the MLP are shared by blocks with different MLPs. */
status adapters_check_start(const struct adapters *adapters, const struct block *const blocks[TOWERS],
                            struct error *error);

/* Bytes of the experts' weights in bf16 that a GPU keeps beside them for products; ViT-B/16 with 55 experts: 216,268,800. */
size_t adapters_rounded_bytes(const struct clip_dimensions *dimensions, const struct adapter_settings *settings);

/* The experts that a sample uses, the shared one included, for models/clip/cost.h. */
struct cost_experts adapters_cost(const struct clip_dimensions *dimensions, const struct adapter_settings *settings);

/* Hidden units of an expert in a tower of such a model. */
size_t adapters_hidden(const struct clip_dimensions *dimensions, const struct adapter_settings *settings,
                       enum tower tower);

/* The hooks that put the adapters into a tower's blocks, for struct encoding; NULL for a tower without adapters. Valid as
 * long as the adapters. */
const struct block_hook *adapters_hooks(const struct adapters *adapters, enum tower tower);

/* Choices per sample: decisions · K; 0 where tokens decide or where samples go to the mean of all experts. */
size_t adapters_choices(const struct adapters *adapters, enum tower tower);

/* From now on, forward passes through a tower write the experts that they chose to choices: device [decisions, B, K], −1
 * for samples without a router, or [decisions, B, L, K] where tokens decide, and their gates to gates, which are 0 beyond a
 * capacity. NULL: nowhere. */
void adapters_keep_choices(struct adapters *adapters, enum tower tower, int32_t *choices, float *gates);
/* The block of the tower that makes the decision. */
size_t adapters_decision_block(const struct adapters *adapters, enum tower tower, size_t decision);

/* The mean of a bank's experts, used in evaluation with a router that chooses in training alone: its four tensors, [m, d],
 * [m], [d, m] and [d], on the device, valid until the experts change. It is computed once after each change. */
status adapters_mean(const struct adapters *adapters, enum tower tower, size_t bank, float *parts[EXPERT_PARTS],
                     struct error *error);

/* The router of a task: its own, or the only one. */
int adapters_router(const struct adapter_settings *settings, size_t task);

/* From now on, forward passes in training add share times the balance loss of settings.balance, if any, to *loss on the
 * device, and the same without its weight to *balance unless that is NULL; a backward pass must then follow each. loss NULL:
 * the balance loss is not computed. */
void adapters_add_loss(struct adapters *adapters, float *loss, float *balance, float share);

status adapters_begin_task(struct adapters *adapters, size_t task, struct error *error);
/* Collects the statistics of the gradients that merge policies need (statistics.h). */
status adapters_before_update(struct adapters *adapters, const struct update_rule *rule, struct error *error);

/* Selection counts and frozen flags of all blocks of a tower: device [blocks, E] each, n = blocks · E; 0 and no memory
 * for a tower without adapters. */
struct adapter_counts {
    int32_t *counts, *frozen;
    size_t n;
};
struct adapter_counts adapters_counts(const struct adapters *adapters, enum tower tower);

/* Counts of a block, to the host: [E]. */
status adapters_read_counts(const struct adapters *adapters, enum tower tower, size_t block, int32_t *counts,
                            struct error *error);
/* Counts and frozen flags of all blocks in one transfer: [2, blocks, E], the counts first. */
status adapters_read_counts_and_frozen(const struct adapters *adapters, enum tower tower, int32_t *counts,
                                       struct error *error);
status adapters_write_frozen(struct adapters *adapters, enum tower tower, size_t block, const int32_t *frozen,
                             struct error *error);

/* Whether the adapters have changed since a feature was computed: one number per expert and per router, which changes with
 * every update and write. A feature is unchanged while the numbers of its router and experts are.
 *
 *     struct adapter_identity identity;
 *     adapter_identity_create(&identity, adapters);
 *     TRY(adapter_identity_read(&identity, error));                      // after each task
 *     uint64_t now = adapter_identity_of(&identity, TOWER_IMAGE, router, chosen);
 *     adapter_identity_free(&identity);
 */
struct adapter_identity {
    const struct adapters *adapters;
    uint64_t *changes[TOWERS]; /* of the tower's segments, as parameters_changes */
};

void adapter_identity_create(struct adapter_identity *identity, const struct adapters *adapters);
void adapter_identity_free(struct adapter_identity *identity); /* all zero is allowed */

/* Reads from the device how often every expert and router has changed. Numbers of different processes cannot be compared,
 * because they do not depend on the weights' values. */
status adapter_identity_read(struct adapter_identity *identity, struct error *error);

/* The number of one sample's path through a tower: its router, and chosen [decisions, K], its experts at each decision.
 * Where tokens decide, any expert may be on the path, and chosen is not read. */
uint64_t adapter_identity_of(const struct adapter_identity *identity, enum tower tower, size_t router,
                             const int32_t *chosen);

/* Experts Weights Averaging (Huang et al. 2023, arXiv 2308.06093, equation 4): after every step each of the N experts of a
 * block that are not frozen moves towards the others, all from the old weights:
 *
 *     W_i ← (1 − β) W_i + β / (N − 1) · Σ_{j ≠ i} W_j
 *
 * Frozen experts neither move nor count. β is the share rate r, or rises linearly over the iterations of a task, to r at
 * the last one: β = r · i / I. With fewer than two free experts nothing moves. There is no target and no schedule, and
 * the optimizer's moments stay. The paper averages the experts of a dense model that was split, over one training, without a
 * router; here the router stays, and β rises anew in every task. */
#include <stdlib.h>

#include "adapters/merge/policies.h"

enum { CONSTANT, LINEAR };

static const struct option options[] = {{.name = "rate",
                                         .type = OPTION_REAL,
                                         .minimum = 0,
                                         .maximum = 1,
                                         .fallback = "0.3",
                                         .help = "share rate: how far experts move towards the others' mean at a step"},
                                        {.name = "ramp",
                                         .type = OPTION_CHOICE,
                                         .choices = "constant|linear",
                                         .fallback = "linear",
                                         .help = "constant, or from 0 to the share rate within each task"},
                                        {0}};

/* mixing [E, E] of a block: new weights are W + β · mixing · W. Rows and columns of frozen experts are zero. */
static void mix(size_t experts, const int32_t *frozen, float *mixing)
{
    size_t n = 0;
    for (size_t e = 0; e < experts; e++)
        n += frozen[e] == 0;
    for (size_t i = 0; i < experts; i++)
        for (size_t j = 0; j < experts; j++) {
            float share = n < 2 || frozen[i] || frozen[j] ? 0 : i == j ? -1.0f : 1.0f / (float)(n - 1);
            mixing[i * experts + j] = share;
        }
}

static status begin_tower(struct adapters *adapters, enum tower which, struct error *error)
{
    struct adapter_tower *tower = &adapters->towers[which];
    size_t experts = adapters->settings.experts, marks = tower->blocks * experts;
    int32_t *frozen = malloc(array_size(2 * marks, sizeof *frozen));
    float *mixing = malloc(array_size(marks, experts * sizeof *mixing));
    status result = frozen != NULL && mixing != NULL
                        ? OK
                        : error_set(error, ERROR_MEMORY, "ewa: no memory for %zu experts", experts);
    NEXT(result, adapters_read_marks(adapters, which, frozen, error));
    for (size_t b = 0; result == OK && b < tower->blocks; b++)
        mix(experts, frozen + marks + b * experts, mixing + b * experts * experts);
    NEXT(result, adapters->backend->ops->upload(adapters->backend, tower->statistics.mixing, mixing,
                                                marks * experts * sizeof *mixing, error));
    free(mixing);
    free(frozen);
    return result;
}

static status begin_task(struct adapters *adapters, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        if (adapters_in_tower(adapters, (enum tower)t))
            TRY(begin_tower(adapters, (enum tower)t, error));
    return OK;
}

/* One of the stacked tensors of a block: [E, n]. */
static status average(struct adapter_tower *tower, size_t block, const struct parameter *p, float rate,
                      struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    size_t experts = p->shape[0], n = p->size / experts;
    float *old = tower->statistics.stack, *values = parameters_write(tower->parameters, p->offset, p->size);
    TRY(backend->ops->copy(backend, old, values, p->size * sizeof *values, error));
    return backend->ops->gemm(
        backend,
        &(struct gemm){.a = matrix_rows(tower->statistics.mixing + block * experts * experts, experts, experts),
                       .b = matrix_rows(old, experts, n),
                       .out = matrix_rows(values, experts, n),
                       .exact = true,
                       .scale = rate,
                       .accumulate = true},
        error);
}

static status after_step(struct adapters *adapters, const struct merge_call *call, struct error *error)
{
    bool rises = options_choice(call->options, "ramp") == LINEAR;
    double part = rises ? (double)call->iteration / (double)call->iterations : 1;
    float rate = (float)(options_real(call->options, "rate") * part);
    for (int t = 0; rate > 0 && t < TOWERS; t++) {
        struct adapter_tower *tower = &adapters->towers[t];
        for (size_t b = 0; b < tower->blocks; b++) {
            const struct parameter *tensors[EXPERT_PARTS];
            merge_expert_tensors(tower, b, tensors);
            for (int i = 0; i < EXPERT_PARTS; i++)
                TRY(average(tower, b, tensors[i], rate, error));
        }
    }
    return OK;
}

const struct merge_policy policy_ewa = {.name = "ewa",
                                        .source = "Huang et al. 2023, Experts Weights Averaging, arXiv 2308.06093",
                                        .formula = "W_i ← (1 − b) W_i + b / (N − 1) · Σ_{j≠i} W_j",
                                        .needs = NEEDS_MIXING,
                                        .options = options,
                                        .begin_task = begin_task,
                                        .after_step = after_step};

/* Experts Weights Averaging (Huang et al. 2023, arXiv 2308.06093, Equation 6): after every step each of the N experts of a
 * block that are not frozen moves towards the others, all from the old weights:
 *
 *     W_i ← (1 − β) W_i + β / (N − 1) · Σ_{j ≠ i} W_j
 *
 * Frozen experts neither move nor count. β is the share rate r, or rises linearly to r at the last iteration of a task, β =
 * r · i / I (fine-tuning, Section 5.2), or in its last epoch, constant within each: β = r · e / (E − 1) in epoch e of 0 … E − 1 (from
 * scratch, Section 3.2.2), or at the end of the run. After the share `until` of a task's iterations nothing
 * moves (Table 5, of mixtures with a router: 0.5, β constant), nor with fewer than two free experts. There is no target and no
 * schedule, and the optimizer's moments stay. The paper's experts are whole MLPs without a router; here any router stays. */
#include "adapters/merge/policies.h"

enum { CONSTANT, LINEAR, RUN, EPOCH };

static const struct option options[] = {
    OPTION_NUMBER(REAL, "rate", 0, 1, "0.3",
                  "share rate: the distance that an expert moves towards the mean of the others at a step"),
    OPTION_ONE_OF("ramp", "constant|linear|run|epoch", "linear",
                  "ramp of the share rate: constant; linear from 0 within each task; linear over the run of all tasks; "
                  "or epoch, from 0 in the first epoch of a task to rate in the last"),
    OPTION_NUMBER(REAL, "until", 0.001, 1, "1",
                  "share of a task's iterations after which experts are no longer averaged", .incidental = "1"),
    {0}};

/* One of the stacked tensors of a block: [E, n]. */
static status average(struct adapter_tower *tower, size_t block, const struct parameter *p, float rate,
                      struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    return backend->ops->average_experts(
        backend,
        &(struct average_experts){.experts = p->shape[0],
                                  .n = p->size / p->shape[0],
                                  .frozen = tower->banks[block].frozen,
                                  .share = rate,
                                  .values = parameters_write(tower->parameters, p->offset, p->size)},
        error);
}

/* Between 0 in the first epoch and 1 in the last, to which an iteration beyond the schedule belongs. */
static double passed_epochs(const struct merge_call *call)
{
    size_t length = call->epoch_length > 0 ? call->epoch_length : call->iterations,
           last = (call->iterations - call->more - 1) / length;
    size_t epoch = (call->iteration - 1) / length;
    return last > 0 ? (double)(epoch < last ? epoch : last) / (double)last : 0;
}

/* β of an iteration. */
static float rate_of(const struct merge_call *call)
{
    double rate = options_real(call->options, "rate"), iteration = (double)call->iteration;
    if (iteration > options_real(call->options, "until") * (double)call->iterations)
        return 0;
    switch (options_choice(call->options, "ramp")) {
    case LINEAR:
        return (float)(rate * (iteration / (double)call->iterations));
    case RUN:
        return (float)(rate * (((double)call->before + iteration) / (double)call->all));
    case EPOCH:
        return (float)(rate * passed_epochs(call));
    default:
        return (float)rate;
    }
}

static status check(const struct merge_call *call, struct error *error)
{
    struct merge_call last = *call;
    double until = options_real(call->options, "until");
    last.iteration = (size_t)(until * (double)call->iterations);
    if (call->iterations == 0 || options_real(call->options, "rate") == 0 || (last.iteration > 0 && rate_of(&last) > 0))
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "merge.ramp: %s with merge.until: %g averages no experts in %zu iterations (an epoch has %zu); "
                     "train for longer, or set merge.ramp=linear",
                     options_text(call->options, "ramp"), until, call->iterations, call->epoch_length);
}

static status after_step(struct adapters *adapters, const struct merge_call *call, struct error *error)
{
    float rate = rate_of(call);
    for (int t = 0; rate > 0 && t < TOWERS; t++) {
        struct adapter_tower *tower = &adapters->towers[t];
        for (size_t b = 0; b < tower->blocks; b++)
            for (int i = 0; i < EXPERT_PARTS; i++)
                TRY(average(tower, b, &tower->parameters->list[tower->banks[b].parts[i]], rate, error));
    }
    return OK;
}

const struct merge_policy policy_ewa = {.name = "ewa",
                                        .source = "Huang et al. 2023, Experts Weights Averaging, arXiv 2308.06093",
                                        .formula = "W_i ← (1 − b) W_i + b / (N − 1) · Σ_{j≠i} W_j",
                                        .options = options,
                                        .check = check,
                                        .after_step = after_step};

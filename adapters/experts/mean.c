/* The mean of a bank's experts (Huang et al. 2023, arXiv 2308.06093, Equation 7), computed once after they have changed. */
#include "adapters/adapter.h"

/* out [n] = the mean of values [E, n], summed up in double precision for as many at a time as an operation takes. */
static status mean_of_stack(struct backend *backend, const float *values, size_t experts, size_t n, float *out,
                            struct error *error)
{
    for (size_t e = 0; e < experts;) {
        struct weighted_sum sum = {.n = n, .out = out};
        if (e > 0) {
            sum.inputs[0] = out;
            sum.weights[0] = 1;
            sum.count = 1;
        }
        for (; sum.count < WEIGHTED_SUM_INPUTS && e < experts; e++) {
            sum.inputs[sum.count] = values + e * n;
            sum.weights[sum.count++] = 1;
        }
        sum.divisor = e == experts ? (double)experts : 1;
        TRY(backend->ops->weighted_sum(backend, &sum, error));
    }
    return OK;
}

status adapters_mean(const struct adapters *adapters, enum tower which, size_t index, float *parts[EXPERT_PARTS],
                     struct error *error)
{
    const struct parameters *group = adapters->towers[which].parameters;
    struct expert_bank *bank = &adapters->towers[which].banks[index];
    const size_t stacks[EXPERT_PARTS] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
    size_t experts = adapters->settings.experts;
    for (int i = 0; i < EXPERT_PARTS; i++) {
        size_t n = group->list[stacks[i]].size / experts;
        parts[i] = bank->mean[i];
        if (bank->mean_of == group->version)
            continue;
        adapters->backend->renew(adapters->backend, bank->mean[i], n);
        TRY(mean_of_stack(adapters->backend, parameters_weight(group, stacks[i]).value, experts, n, bank->mean[i],
                          error));
    }
    bank->mean_of = group->version;
    return OK;
}

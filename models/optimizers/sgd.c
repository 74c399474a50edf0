/* Stochastic gradient descent with momentum, as torch.optim.SGD has it. Its weight decay is an L2 penalty: it is added to the
 * gradient, and so goes through the momentum. */
#include "models/optimizers/optimizer.h"

static status step(struct backend *backend, const struct update *update, const struct update_rule *rule,
                   struct error *error)
{
    struct sgd sgd = {.update = *update, .momentum = rule->momentum, .l2 = rule->weight_decay + rule->l2};
    return backend->ops->sgd(backend, &sgd, error);
}

const struct optimizer optimizer_sgd = {
    .name = "sgd",
    .source = "Polyak 1964, as torch.optim.SGD",
    .formula = "m = momentum m + g + decay w; w -= rate m",
    .one_moment = true,
    .has_momentum = true,
    .rule = {.optimizer = &optimizer_sgd, .momentum = 0.9},
    .step = step,
};

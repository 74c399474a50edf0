/* Adam with decoupled weight decay. With l2 instead, which is added to the gradient, it is the Adam of Kingma & Ba (2015). */
#include "models/optimizers/optimizer.h"

#include <assert.h>

static status step_adamw(struct backend *backend, const struct update *update, const struct update_rule *rule,
                         struct error *error)
{
    struct adamw adamw = {.update = *update,
                          .beta1 = rule->beta1,
                          .beta2 = rule->beta2,
                          .epsilon = rule->epsilon,
                          .weight_decay = rule->weight_decay,
                          .l2 = rule->l2};
    return backend->ops->adamw(backend, &adamw, error);
}

const struct optimizer optimizer_adamw = {
    .name = "adamw",
    .source = "Loshchilov & Hutter, Decoupled Weight Decay Regularization, ICLR 2019",
    .formula = "w -= rate (m / (sqrt v + 1e-8) + decay w); m, v: corrected means of g and g^2, betas 0.9 and 0.999",
    .rule = {.optimizer = &optimizer_adamw, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
    .step = step_adamw,
};

/* LAMB: AdamW with every tensor's step scaled to the norm of the tensor times the learning rate. Algorithm 2 of the paper,
 * with φ the identity and its ε. Each segment counts as a tensor. */
static status step_lamb(struct backend *backend, const struct update *update, const struct update_rule *rule,
                        struct error *error)
{
    struct lamb lamb = {.update = *update,
                        .beta1 = rule->beta1,
                        .beta2 = rule->beta2,
                        .epsilon = rule->epsilon,
                        .weight_decay = rule->weight_decay};
    assert(rule->l2 == 0);
    return backend->ops->lamb(backend, &lamb, error);
}

const struct optimizer optimizer_lamb = {
    .name = "lamb",
    .source = "You et al., Large Batch Optimization for Deep Learning, ICLR 2020",
    .formula = "u = m / (sqrt v + 1e-6) + decay w; w -= rate |w| / |u| u, per tensor; m, v as adamw",
    .rule = {.optimizer = &optimizer_lamb, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6},
    .step = step_lamb,
};

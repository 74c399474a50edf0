/* Inside adapters/: what an expert layer keeps between its forward and its backward pass. */
#ifndef MTIL_ADAPTERS_EXPERTS_EXPERT_H
#define MTIL_ADAPTERS_EXPERTS_EXPERT_H

#include "adapters/adapter.h"

struct expert_pass {
    struct dispatch dispatch;
    float *noise_logits, *drawn; /* [B, E] */
    struct tensor hidden;        /* [B · K · L, m] by slot, after ReLU and dropout */
    /* Gradients of the balance loss, NULL without one: of gates [B, K], clean logits and noise logits [B, E] */
    float *balance_gates, *balance_logits, *balance_noise;
};

#endif

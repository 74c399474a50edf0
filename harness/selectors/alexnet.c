/* Autoencoders on AlexNet's features, as published. */
#include "harness/selectors/autoencoders.h"

const struct selector_kind selector_alexnet = {
    .name = "alexnet",
    .source = "autoencoders on AlexNet's features, MoE-Adapters (Yu et al., CVPR 2024)",
    .formula = CODER_FORMULA,
    .route = ROUTE_BY_ERRORS,
    .features = FEATURES_PIXELS,
    .threshold = "0.0655",
    .reads = CODER_KEYS "|alexnet",
    CODER_FUNCTIONS};

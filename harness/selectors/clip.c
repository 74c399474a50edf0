/* Autoencoders on the mean patch features of the frozen image tower: no weights but CLIP's. */
#include "harness/selectors/autoencoders.h"

const struct selector_kind selector_clip = {
    .name = "clip",
    .source = "autoencoders on CLIP's patch features, after MoE-Adapters (Yu et al., CVPR 2024)",
    .formula = CODER_FORMULA,
    .route = ROUTE_BY_ERRORS,
    .features = FEATURES_PATCHES,
    .reads = CODER_KEYS,
    CODER_FUNCTIONS};

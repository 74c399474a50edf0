/* Encodes with one router for every sample, and reports the experts that the samples chose.
 *
 *     struct routed_encoding routed;
 *     TRY(routed_encoding_begin(&routed, model, TOWER_IMAGE, count, router, &encoding, error));
 *     TRY(routed_encoding_keep_tokens(&routed, 197, error));            // only to report the choices of tokens
 *     TRY(clip_encode_images(clip, &encoding, …));
 *     routed_encoding_end(&routed);
 *     TRY(routed_encoding_chosen(&routed, chosen, error));              // host [count, decisions, …]
 */
#pragma once

#include "harness/model/model.h"

struct routed_encoding {
    struct model *model;
    enum tower tower;
    size_t count;
    bool routed; /* samples have a router, and the tower has adapters */
    bool weighs; /* the prefixes have the weights of these samples */
    struct tensor choices,
        gates; /* device [decisions, count, K], or [decisions, count, positions · K]; no data: none */
};

/* Sets hooks and routers of the encoding, the routers in the step arena; −1: no adapters. */
status routed_encoding_begin(struct routed_encoding *routed, struct model *model, enum tower tower, size_t count,
                             int router, struct encoding *encoding, struct error *error);

/* Multiplies the prefixes' addition to each sample by its weight: weights [count] on the host. No effect without
 * prefixes. */
status routed_encoding_weigh(struct routed_encoding *routed, const float *weights, struct error *error);

/* Keeps the choices of all tokens, where tokens choose experts, so that they can be counted. No effect without a
 * router. */
status routed_encoding_keep_tokens(struct routed_encoding *routed, size_t positions, struct error *error);
void routed_encoding_end(struct routed_encoding *routed);

/* The experts that samples chose, by sample. No effect without a router. */
status routed_encoding_chosen(const struct routed_encoding *routed, int32_t *chosen, struct error *error);
/* Choices or gates on the host, [decisions, count, bytes], by sample: [count, decisions, bytes]. */
void routed_encoding_by_sample(const void *by_decision, size_t decisions, size_t count, size_t bytes, void *by_sample);

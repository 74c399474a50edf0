/* Encodes with one router for every sample, and reports the experts that the samples chose.
 *
 *     struct routing routing;
 *     TRY(routing_begin(&routing, model, TOWER_IMAGE, count, router, &encoding, error));
 *     TRY(routing_see_tokens(&routing, 197, error));                    // only to report the choices of tokens
 *     TRY(clip_encode_images(clip, &encoding, …));
 *     routing_end(&routing);
 *     TRY(routing_chosen(&routing, chosen, error));                     // host [count, decisions, …]
 */
#pragma once

#include "harness/heads/model.h"

struct routing {
    struct model *model;
    enum tower tower;
    size_t count;
    bool routed; /* samples have a router, and the tower has adapters */
    bool weighs; /* the prefixes have the weights of these samples */
    struct tensor choices,
        gates; /* device [decisions, count, K], or [decisions, count, positions · K]; no data: none */
};

/* Sets hooks and routers of the encoding, the routers in the step arena; −1: no adapters. */
status routing_begin(struct routing *routing, struct model *model, enum tower tower, size_t count, int router,
                     struct encoding *encoding, struct error *error);

/* Weights what the prefixes add to each sample: weights [count] on the host. No effect without prefixes. */
status routing_weigh(struct routing *routing, const float *weights, struct error *error);

/* Keeps the choices of all tokens, where tokens choose experts, so that they can be counted. No effect without a
 * router. */
status routing_see_tokens(struct routing *routing, size_t positions, struct error *error);
void routing_end(struct routing *routing);

/* The experts that samples chose, by sample. No effect without a router. */
status routing_chosen(const struct routing *routing, int32_t *chosen, struct error *error);
/* Choices or gates on the host, [decisions, count, bytes], by sample: [count, decisions, bytes]. */
void routing_by_sample(const void *by_decision, size_t decisions, size_t count, size_t bytes, void *by_sample);

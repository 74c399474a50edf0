/* Encodes with one router for every sample, and reports the experts that the samples chose.
 *
 *     struct routing routing;
 *     TRY(routing_begin(&routing, experiment, TOWER_IMAGE, count, router, &encoding, error));
 *     TRY(routing_see_tokens(&routing, 197, error));                    // only to report the choices of tokens
 *     TRY(clip_encode_images(clip, &encoding, …));
 *     TRY(routing_end(&routing, chosen, gates, error));                 // host [count, decisions, …]; NULL: not needed
 */
#ifndef MTIL_HARNESS_EVALUATE_ROUTING_H
#define MTIL_HARNESS_EVALUATE_ROUTING_H

#include "harness/run/experiment.h"

struct routing {
    struct experiment *experiment;
    enum tower tower;
    size_t count;
    bool routed; /* samples have a router, and the tower has adapters */
    struct tensor choices,
        gates; /* device [decisions, count, K], or [decisions, count, positions · K]; no data: none */
};

/* Sets hooks and routers of the encoding, the routers in the step arena; −1: no adapters. */
status routing_begin(struct routing *routing, struct experiment *experiment, enum tower tower, size_t count, int router,
                     struct encoding *encoding, struct error *error);

/* Keeps the choices of all tokens, where tokens choose experts, so that they can be counted. No effect without a
 * router. */
status routing_see_tokens(struct routing *routing, size_t positions, struct error *error);
status routing_end(struct routing *routing, int32_t *chosen, float *gates, struct error *error);

#endif

/* Encoding with one router for every sample, and the experts that the samples chose.
 *
 *     struct routing routing;
 *     TRY(routing_begin(&routing, experiment, TOWER_IMAGE, count, router, &encoding, error));
 *     TRY(routing_see_tokens(&routing, 197, error));                    // where tokens decide, and their choices are wanted
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

/* Sets hooks and routers of the encoding, these in the step arena; −1: no adapters. */
status routing_begin(struct routing *routing, struct experiment *experiment, enum tower tower, size_t count, int router,
                     struct encoding *encoding, struct error *error);

/* Where tokens decide, which experts they choose: nobody asks for that but whoever counts them. Nothing without a router. */
status routing_see_tokens(struct routing *routing, size_t positions, struct error *error);
status routing_end(struct routing *routing, int32_t *chosen, float *gates, struct error *error);

#endif

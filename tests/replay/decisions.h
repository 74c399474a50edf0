/* What routers decide while a backend trains, and by how much: the chosen experts of every sample, and how far the K-th
 * logit lies above the next one.
 *
 *     struct decisions seen;
 *     TRY(decisions_watch(&seen, backend, error));                 // the backend's route operation is asked twice from now on
 *     ... a training step ...
 *     decisions_at(&seen, i, sample) …                             // of the i-th routing, in the order of the calls
 *     decisions_clear(&seen);                                      // before the next step
 *     decisions_end(&seen);
 */
#pragma once

#include "models/backend.h"

enum { DECISIONS_ROUTINGS = 256, DECISIONS_BLOCK_BITS = 40 };

/* One call of route. */
struct routing_seen {
    int tower, block;
    size_t samples, top_k, width; /* width: top_k and, unless all experts are chosen, the next one */
    int32_t *chosen;              /* [samples, width], the K best first */
    float *gates;                 /* of a softmax over them */
};

struct decisions {
    struct backend_ops ops; /* first: the backend's table while it is watched */
    const struct backend_ops *watched;
    struct backend *backend;
    struct arena room; /* device */
    size_t count;
    struct routing_seen routings[DECISIONS_ROUTINGS];
};

status decisions_watch(struct decisions *decisions, struct backend *backend, struct error *error);
void decisions_clear(struct decisions *decisions);
void decisions_end(struct decisions *decisions);

/* The K experts of a sample; NULL where its router is off. Their order says nothing. */
const int32_t *routing_experts(const struct routing_seen *routing, size_t sample);

/* Whether both chose the same experts for the sample. */
bool routing_same(const struct routing_seen *a, const struct routing_seen *b, size_t sample);

/* K-th logit minus the next one; INFINITY when all experts are chosen or the router is off. */
double routing_margin(const struct routing_seen *routing, size_t sample);

/* A backend on which random numbers of routers are given, as a fixture recorded them, instead of drawn.
 *
 *     struct given given;
 *     given_begin(&given, backend);            // its operations change until given_end
 *     given.noise[TOWER_IMAGE] = noise;        // NULL: drawn as usual
 */
#pragma once

#include "models/block.h"

struct given {
    struct backend_ops ops;
    const struct backend_ops *own;
    struct backend *backend;
    const float *noise[TOWERS]; /* device [blocks, B, E] */
    const int32_t *owner;       /* device [B] experts of a partition */
};
void given_begin(struct given *given, struct backend *backend);
void given_end(struct given *given);

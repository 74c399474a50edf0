/* A serializer: one function saves to an archive and restores from it, so that both directions name the same arrays.
 *
 *     static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
 *     {
 *         struct state *state = run->state;
 *         TRY(serializer_host(serializer, "mean.members", SAFETENSOR_I32, 1, &state->members, error));
 *         return serializer_device(serializer, "mean.values", SAFETENSOR_F32, state->n, state->mean, error);
 *     }
 */
#pragma once

#include "harness/train/archive.h"
#include "models/parameters.h"

struct serializer {
    struct archive *archive;
    struct backend *backend; /* of the device arrays */
    bool saving;             /* otherwise restoring: the arrays must exist with this type and count */
};

status serializer_host(const struct serializer *serializer, const char *name, enum safetensor_type type, size_t count,
                       void *values, struct error *error);
status serializer_device(const struct serializer *serializer, const char *name, enum safetensor_type type, size_t count,
                         void *device, struct error *error);
/* The values of a group. Restoring marks them as changed. */
status serializer_weights(const struct serializer *serializer, const char *name, struct parameters *group,
                          struct error *error);

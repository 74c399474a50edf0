/* A serializer: one function saves to an archive and restores from it, so that both directions name the same arrays.
 *
 *     static status keep(struct method_run *run, const struct passage *passage, struct error *error)
 *     {
 *         struct state *state = run->state;
 *         TRY(passage_host(passage, "mean.members", SAFETENSOR_I32, 1, &state->members, error));
 *         return passage_device(passage, "mean.values", SAFETENSOR_F32, state->n, state->mean, error);
 *     }
 */
#ifndef MTIL_HARNESS_RUN_PASSAGE_H
#define MTIL_HARNESS_RUN_PASSAGE_H

#include "harness/run/archive.h"
#include "models/parameters.h"

struct passage {
    struct archive *archive;
    struct backend *backend; /* of the device arrays */
    bool saving;             /* otherwise restoring: the arrays must exist with this type and count */
};

status passage_host(const struct passage *passage, const char *name, enum safetensor_type type, size_t count,
                    void *values, struct error *error);
status passage_device(const struct passage *passage, const char *name, enum safetensor_type type, size_t count,
                      void *device, struct error *error);
/* The values of a group. Restoring marks them as changed. */
status passage_weights(const struct passage *passage, const char *name, struct parameters *group, struct error *error);

#endif

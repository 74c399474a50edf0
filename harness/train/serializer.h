/* A serializer: one function saves to an archive and restores from it, so that both directions name the same arrays.
 *
 *     static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
 *     {
 *         struct state *state = run->state;
 *         TRY(serializer_host(serializer, "mean.members", SAFETENSOR_I32, 1, &state->members, error));
 *         return serializer_device(serializer, "mean.values", SAFETENSOR_F32, state->n, state->mean, error);
 *     }
 *
 * An archive is named arrays in a file, which hold the state for resuming a run.
 *
 *     archive_create(&archive);
 *     TRY(archive_put(archive, "selector.thresholds", SAFETENSOR_F32, n, thresholds, error));
 *     TRY(archive_write(archive, path, metadata, count, error));
 *     ...
 *     TRY(archive_open(&archive, path, error));
 *     TRY(archive_get(archive, "selector.thresholds", SAFETENSOR_F32, n, thresholds, error));
 */
#pragma once

#include "core/scope.h"
#include "models/backend.h"
#include "models/files/safetensors.h"
#include "models/parameters.h"

struct archive;

/* archive_open verifies the digest that archive_write stored. */
void archive_create(struct archive **archive);
status archive_open(struct archive **archive, const char *path, struct error *error);
void archive_close(struct archive *archive); /* NULL is allowed */
SCOPED_POINTER(struct archive, archive_close)

/* Copies count values of type. */
status archive_put(struct archive *archive, const char *name, enum safetensor_type type, size_t count,
                   const void *values, struct error *error);
status archive_write(const struct archive *archive, const char *path, const struct safetensors_metadata *metadata,
                     size_t metadata_count, struct error *error);

/* The array must exist with this type and count, in an opened file or in an archive that is being written. */
status archive_get(const struct archive *archive, const char *name, enum safetensor_type type, size_t count,
                   void *values, struct error *error);
bool archive_has(const struct archive *archive, const char *name);            /* with any type and count */
const char *archive_metadata(const struct archive *archive, const char *key); /* NULL: absent */

struct serializer {
    struct archive *archive;
    struct backend *backend; /* of the device arrays */
    bool saving;             /* otherwise restoring: the arrays must exist with this type and count */
    size_t tasks,
        tasks_before; /* restoring the state of a run of fewer tasks: those of the run, and of the file; else 0 */
};

status serializer_host(const struct serializer *serializer, const char *name, enum safetensor_type type, size_t count,
                       void *values, struct error *error);
status serializer_device(const struct serializer *serializer, const char *name, enum safetensor_type type, size_t count,
                         void *device, struct error *error);
/* The values of a group, tensor by tensor. Restoring marks them as changed. Of a run of fewer tasks, a tensor whose first axis is
 * the tasks has those of the file, and keeps the others. */
status serializer_weights(const struct serializer *serializer, const char *name, struct parameters *group,
                          struct error *error);

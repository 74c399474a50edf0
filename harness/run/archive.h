/* Named arrays that go to a file and come back: what a run keeps for going on after a stop.
 *
 *     TRY(archive_create(&archive, error));
 *     TRY(archive_put(archive, "selector.thresholds", SAFETENSOR_F32, n, thresholds, error));
 *     TRY(archive_put_device(archive, backend, "image.values", SAFETENSOR_F32, n, group->values, error));
 *     TRY(archive_write(archive, path, metadata, count, error));
 *     ...
 *     TRY(archive_open(&archive, path, error));
 *     TRY(archive_get(archive, "selector.thresholds", SAFETENSOR_F32, n, thresholds, error));
 */
#ifndef MTIL_HARNESS_RUN_ARCHIVE_H
#define MTIL_HARNESS_RUN_ARCHIVE_H

#include "models/backend.h"
#include "models/files/safetensors.h"

struct archive;

/* archive_open: the file has the digest that archive_write gave it, and is as that says. */
status archive_create(struct archive **archive, struct error *error);
status archive_open(struct archive **archive, const char *path, struct error *error);
void archive_close(struct archive *archive); /* NULL is allowed */

/* Copies count values of type. */
status archive_put(struct archive *archive, const char *name, enum safetensor_type type, size_t count,
                   const void *values, struct error *error);
status archive_put_device(struct archive *archive, struct backend *backend, const char *name, enum safetensor_type type,
                          size_t count, const void *device, struct error *error);
status archive_write(const struct archive *archive, const char *path, const struct safetensors_metadata *metadata,
                     size_t metadata_count, struct error *error);

/* The array must be there with this type and count, in a file or in an archive that is being made. */
status archive_get(const struct archive *archive, const char *name, enum safetensor_type type, size_t count,
                   void *values, struct error *error);
status archive_get_device(const struct archive *archive, struct backend *backend, const char *name,
                          enum safetensor_type type, size_t count, void *device, struct error *error);
const char *archive_metadata(const struct archive *archive, const char *key); /* NULL: absent */

#endif

/* Inside safetensors: a digest of all that a file says, in whatever order it says so.
 *
 *     struct safetensors_digest digest;
 *     safetensors_digest(&digest, metadata, tensors, count);
 *     … digest.text …                                              // "xxh3:0123456789abcdef"
 *
 * It proves a file against accidents and editing, at the speed of memory; not against an attacker who computes it anew.
 */
#ifndef MTIL_MODELS_FILES_SAFETENSORS_DIGEST_H
#define MTIL_MODELS_FILES_SAFETENSORS_DIGEST_H

#include <jansson.h>

#include "models/files/safetensors.h"

struct safetensors_digest {
    char text[24];
};

/* metadata may be NULL; its entry SAFETENSORS_DIGEST is left out. */
void safetensors_digest(struct safetensors_digest *digest, const json_t *metadata, const struct safetensor *tensors,
                        size_t count);

#endif

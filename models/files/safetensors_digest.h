/* Internal to safetensors: a digest of a file's contents that does not depend on their order.
 *
 *     struct safetensors_digest digest;
 *     safetensors_digest(&digest, metadata, tensors, count);
 *     … digest.text …                                              // "xxh3:0123456789abcdef"
 *
 * It detects damage and editing, at the speed of memory, but not an attacker who computes it anew.
 */
#pragma once

#include <jansson.h>

#include "models/files/safetensors.h"

struct safetensors_digest {
    char text[24];
};

/* metadata may be NULL; its entry SAFETENSORS_DIGEST is left out. */
void safetensors_digest(struct safetensors_digest *digest, const json_t *metadata, const struct safetensor *tensors,
                        size_t count);

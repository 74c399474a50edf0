/* The identity of a CLIP: a digest of all its weights as used in the computation, and of its activation. Files with the same
 * weights under other names or in another precision have the same digest.
 *
 *     char digest[CLIP_DIGEST_SIZE];
 *     TRY(clip_digest(clip, digest, error));
 */
#pragma once

#include "models/clip.h"

#define CLIP_DIGEST_SIZE 17 /* 64 bits (XXH3) in hexadecimal, and a NUL */

status clip_digest(const struct clip *clip, char digest[CLIP_DIGEST_SIZE], struct error *error);

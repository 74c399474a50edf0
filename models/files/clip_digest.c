#include "models/files/clip_digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"

enum { PART = 1 << 20 }; /* values read at a time */

static status add_values(const struct clip *clip, const struct parameter *p, float *values, uint64_t *digest,
                         struct error *error)
{
    struct backend *backend = clip->backend;
    for (size_t first = 0; first < p->size; first += PART) {
        size_t count = p->size - first < PART ? p->size - first : PART;
        TRY(backend->ops->download(backend, values, clip->parameters->values + p->offset + first,
                                   count * sizeof *values, error));
        *digest = digest_quick(values, count * sizeof *values, *digest);
    }
    return OK;
}

status clip_digest(const struct clip *clip, char digest[CLIP_DIGEST_SIZE], struct error *error)
{
    const struct clip_dimensions *d = &clip->dimensions;
    const uint64_t untold[] = {(uint64_t)clip->activation, d->image_heads, d->text_heads,
                               (uint64_t)clip->pixels}; /* not shown by any tensor's shape */
    uint64_t sum = digest_quick(untold, sizeof untold, 0);
    float *values = xmalloc(PART * sizeof *values);
    status result = OK;
    for (size_t i = 0; result == OK && i < clip->parameters->count; i++) {
        const struct parameter *p = &clip->parameters->list[i];
        sum = digest_quick(p->name, strlen(p->name), sum);
        result = add_values(clip, p, values, &sum, error);
    }
    free(values);
    snprintf(digest, CLIP_DIGEST_SIZE, "%016" PRIx64, sum);
    return result;
}

/* A CLIP that starts from nothing, which the program never does. */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "models/clip.h"

/* Standard deviation of a tensor at the start; 0: constant 0, negative: constant −deviation. */
static inline float clip_initial_deviation(const struct clip *clip, const struct parameter *p)
{
    const struct clip_dimensions *n = &clip->dimensions;
    bool image = strncmp(p->name, "visual.", 7) == 0;
    float width = (float)(image ? n->image_width : n->text_width);
    float blocks = (float)(image ? n->image_blocks : n->text_blocks);
    if (strcmp(p->name, "logit_scale") == 0)
        return -logf(1.0f / 0.07f);
    if (strstr(p->name, "ln_") != NULL)
        return strstr(p->name, ".weight") != NULL ? -1.0f : 0.0f;
    if (strstr(p->name, "bias") != NULL)
        return 0.0f;
    if (strcmp(p->name, "token_embedding.weight") == 0)
        return 0.02f;
    if (strcmp(p->name, "positional_embedding") == 0)
        return 0.01f;
    if (strstr(p->name, "in_proj_weight") != NULL || strstr(p->name, "proj") == p->name + 7 ||
        strstr(p->name, "text_projection") != NULL || strstr(p->name, "embedding") != NULL)
        return 1.0f / sqrtf(width);
    if (strstr(p->name, "out_proj") != NULL || strstr(p->name, "c_proj") != NULL)
        return 1.0f / sqrtf(width * 2.0f * blocks);
    if (strstr(p->name, "c_fc") != NULL)
        return 1.0f / sqrtf(2.0f * width);
    return 1.0f / sqrtf((float)(3 * n->patch * n->patch)); /* conv1 */
}

/* Normal numbers of a deviation, or what its sign says. */
static inline status parameters_draw(struct parameters *group, const struct parameter *p, float deviation,
                                     const struct rng *rng, struct error *failure)
{
    float *values = xmalloc(array_size(p->size, sizeof *values));
    for (size_t i = 0; i < p->size; i++)
        values[i] = deviation > 0 ? deviation * rng_normal(rng, i) : -deviation;
    status result = parameters_upload(group, p, values, failure);
    free(values);
    return result;
}

/* Random weights as CLIP starts them (its initialize_parameters), drawn with RNG_INIT. */
static inline status clip_initialize(struct clip *clip, uint64_t seed, struct error *failure)
{
    for (size_t i = 0; i < clip->parameters->count; i++) {
        const struct parameter *p = &clip->parameters->list[i];
        struct rng rng = rng_make(seed, RNG_INIT, 0, (uint32_t)i);
        TRY(parameters_draw(clip->parameters, p, clip_initial_deviation(clip, p), &rng, failure));
    }
    return OK;
}

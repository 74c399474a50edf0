/* A classifier of a test: a head with drawn weights, and a file of it. */
#pragma once

#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "models/linear_head.h"
#include "models/vit.h"

/* W: normal numbers of standard deviation 0.02, as timm's heads start. */
static inline status linear_head_initialize(struct linear_head *head, uint64_t seed, struct error *failure)
{
    const struct parameter *p = parameters_find(head->parameters, "head.weight");
    struct rng rng = rng_make(seed, RNG_INIT, 0, 1 << 16);
    float *values = xmalloc(array_size(p->size, sizeof *values));
    for (size_t i = 0; i < p->size; i++)
        values[i] = 0.02f * rng_normal(&rng, i);
    status result = parameters_upload(head->parameters, p, values, failure);
    free(values);
    return result;
}

static inline status vit_save(const struct clip *vit, const struct linear_head *head, enum clip_naming names,
                              const char *path, struct error *failure)
{
    struct vit_content content;
    status result = vit_content_take(&content, vit, head, names, path, failure);
    NEXT(result,
         safetensors_write(path, content.tensors, content.tensor_count, content.metadata, VIT_METADATA, failure));
    vit_content_free(&content);
    return result;
}

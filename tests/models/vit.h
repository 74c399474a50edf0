/* A classifier of a test: a head with drawn weights, and a file of it. */
#pragma once

#include "models/class_head.h"
#include "models/vit.h"
#include "tests/models/initialize.h"

/* W: normal numbers of standard deviation 0.02, as timm's heads start. */
static inline status linear_head_initialize(struct linear_head *head, uint64_t seed, struct error *failure)
{
    struct rng rng = rng_make(seed, RNG_INIT, 0, 1 << 16);
    return parameters_draw(head->parameters, parameters_find(head->parameters, "head.weight"), 0.02f, &rng, failure);
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

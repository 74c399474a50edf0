/* The common part of clip_create and vit_create: a struct clip of the given form with zero weights. */
#pragma once

#include "models/clip.h"

struct clip_plan {
    struct clip_dimensions dimensions; /* text_blocks 0: no text tower; embed 0: no projection */
    enum activation activation;
    enum pixels pixels; /* PIXELS_UNSTATED: CLIP's */
    float epsilon;      /* of the norms; 0: 1e-5 */
    enum pool pool;
    size_t run; /* of blocks that share, as in struct clip */
    bool share_norms;
};
status clip_build(struct clip **clip, struct backend *backend, struct arena *arena, const struct clip_plan *plan,
                  enum parameters_mode mode, struct error *error);

/* The block whose tensor a block of the image tower uses: the first of its run, or itself (vit.h). */
size_t clip_owner(const struct clip *clip, const struct clip_tensor *tensor);

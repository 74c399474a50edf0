#include "models/vit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "models/clip/build.h"

static status check_settings(const struct vit_settings *s, struct error *error)
{
    if (s->resolution == 0 || s->patch == 0 || s->resolution % s->patch != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected a resolution that is a multiple of the patch, found %zu and %zu", s->resolution,
                         s->patch);
    if (s->width == 0 || s->width % 8 != 0 || s->hidden == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected a width that is a multiple of 8 and hidden units, found %zu and %zu", s->width,
                         s->hidden);
    if (s->heads == 0 || s->width % s->heads != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected a number of heads that divides the width, found %zu for a width of %zu",
                         s->heads, s->width);
    if (s->blocks == 0 || s->blocks > CLIP_BLOCKS_MOST)
        return error_set(error, ERROR_ARGUMENT, "vit: expected 1 to %d blocks, found %zu", CLIP_BLOCKS_MOST, s->blocks);
    if (s->share_groups > 0 && s->blocks % s->share_groups != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected groups of equally many blocks that share weights, found %zu groups of %zu "
                         "blocks",
                         s->share_groups, s->blocks);
    if (s->share_norms && s->share_groups == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: norms are shared by blocks that share their attention and MLP; "
                         "no groups of blocks were given");
    return OK;
}

status vit_create(struct clip **vit, struct backend *backend, struct arena *arena, const struct vit_settings *s,
                  enum parameters_mode mode, struct error *error)
{
    TRY(check_settings(s, error));
    const struct clip_plan plan = {.dimensions = {.resolution = s->resolution,
                                                  .patch = s->patch,
                                                  .image_width = s->width,
                                                  .image_hidden = s->hidden,
                                                  .image_heads = s->heads,
                                                  .image_blocks = s->blocks,
                                                  .patch_bias = !s->ln_pre},
                                   .activation = s->activation,
                                   .pool = s->pool,
                                   .pixels = s->pixels,
                                   .epsilon = s->epsilon,
                                   .run = s->share_groups > 0 ? s->blocks / s->share_groups : 1,
                                   .share_norms = s->share_norms};
    return clip_build(vit, backend, arena, &plan, mode, error);
}

struct vit_settings vit_settings_of(const struct clip *clip)
{
    const struct clip_dimensions *n = &clip->dimensions;
    return (struct vit_settings){.resolution = n->resolution,
                                 .patch = n->patch,
                                 .width = n->image_width,
                                 .hidden = n->image_hidden,
                                 .heads = n->image_heads,
                                 .blocks = n->image_blocks,
                                 .activation = clip->activation,
                                 .ln_pre = clip->ln_pre.gain.value != NULL,
                                 .pool = clip->pool,
                                 .pixels = clip->pixels,
                                 .epsilon = clip->epsilon,
                                 .share_groups = clip->run > 1 ? n->image_blocks / clip->run : 0,
                                 .share_norms = clip->share_norms};
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

static void draw(const struct clip *vit, const struct parameter *p, struct rng rng, float *values)
{
    size_t patch = vit->dimensions.patch;
    float bound = 1.0f / sqrtf((float)(3 * patch * patch)), deviation = VIT_START_DEVIATION;
    bool patches = strstr(p->name, ".conv1.") != NULL, norm = strstr(p->name, ".ln_") != NULL;
    if (ends_with(p->name, "class_embedding"))
        deviation = 1e-6f;
    for (size_t i = 0; i < p->size; i++) {
        if (patches)
            values[i] = bound * (2.0f * rng_uniform(&rng, i) - 1.0f);
        else if (norm || ends_with(p->name, "bias"))
            values[i] = norm && ends_with(p->name, "weight") ? 1.0f : 0.0f;
        else
            values[i] = deviation * rng_normal(&rng, i);
    }
}

status vit_initialize(struct clip *vit, uint64_t seed, struct error *error)
{
    struct parameters *group = vit->parameters;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        float *values = xmalloc(array_size(p->size, sizeof *values));
        draw(vit, p, rng_make(seed, RNG_INIT, 0, (uint32_t)i), values);
        status result = parameters_upload(group, p, values, error);
        free(values);
        TRY(result);
    }
    return OK;
}

/* All settings but pooling and resolution as text, for messages. */
struct words {
    char text[256];
};
static struct words words_of(const struct vit_settings *s)
{
    struct words words;
    snprintf(
        words.text, sizeof words.text,
        "patches of %zu pixels, %zu blocks (%zu groups that share) of width %zu with %zu heads and %zu hidden units, "
        "%s, %s norm before them, ε %g, images normalised as %s",
        s->patch, s->blocks, s->share_groups, s->width, s->heads, s->hidden, clip_activation_name(s->activation),
        s->ln_pre ? "a" : "no", (double)s->epsilon, pixel_norms[s->pixels].name);
    return words;
}

/* Cubic convolution with a = −0.75, as PyTorch's bicubic interpolation without aligned corners. */
static double cubic(double distance)
{
    double t = fabs(distance), a = -0.75;
    return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

void vit_resize_grid(const float *from, size_t old, float *to, size_t side, size_t width)
{
    for (size_t at = 0; at < side * side; at++) {
        size_t line = at / side, place = at % side;
        double y = ((double)line + 0.5) * (double)old / (double)side - 0.5,
               x = ((double)place + 0.5) * (double)old / (double)side - 0.5;
        for (size_t c = 0; c < width; c++) {
            double sum = 0;
            for (double row = floor(y) - 1; row < floor(y) + 3; row++)
                for (double column = floor(x) - 1; column < floor(x) + 3; column++) {
                    size_t v = (size_t)fmin(fmax(row, 0), (double)old - 1),
                           u = (size_t)fmin(fmax(column, 0), (double)old - 1);
                    sum += cubic(y - row) * cubic(x - column) * (double)from[(v * old + u) * width + c];
                }
            to[at * width + c] = (float)sum;
        }
    }
}

/* Positions of another number of patches are interpolated; the class token's stays. */
static status copy_tensor(struct clip *vit, const struct clip *clip, const struct parameter *to, struct error *error)
{
    const struct parameter *from = parameters_find(clip->parameters, to->name);
    float *values = xmalloc(array_size(from->size + to->size, sizeof *values)), *copied = values;
    status result = parameters_download(clip->parameters, from, values, error);
    if (result == OK && from->size != to->size) {
        size_t width = to->shape[1];
        copied = values + from->size;
        memcpy(copied, values, width * sizeof *values);
        vit_resize_grid(values + width, clip->dimensions.resolution / clip->dimensions.patch, copied + width,
                        vit->dimensions.resolution / vit->dimensions.patch, width);
    }
    NEXT(result, parameters_upload(vit->parameters, to, copied, error));
    free(values);
    return result;
}

status vit_copy_image_tower(struct clip *vit, const struct clip *clip, struct error *error)
{
    if (clip->dimensions.pool_hidden > 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "vit: the image tower of a SigLIP pools by attention and has no class token; a ViT with a linear head "
            "needs the weights of a CLIP or a ViT");
    struct vit_settings expected = vit_settings_of(clip), found = vit_settings_of(vit);
    struct words expected_words = words_of(&expected), found_words = words_of(&found);
    if (strcmp(expected_words.text, found_words.text) != 0)
        return error_set(error, ERROR_ARGUMENT, "vit: expected the form of CLIP's image tower, %s; found %s",
                         expected_words.text, found_words.text);
    for (size_t i = 0; i < vit->parameters->count; i++)
        TRY(copy_tensor(vit, clip, &vit->parameters->list[i], error));
    return OK;
}

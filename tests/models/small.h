/* A small CLIP with a batch of images and prompts, and its loss, on the backend under test.
 *
 *     struct small s;
 *     small_open(&s, 2, PARAMETERS_TRAINED, ACTIVATION_GELU);
 *     s.hooks[TOWER_IMAGE] = hooks;                                // by block; and s.router; NULL: no adapters
 *     float loss = small_loss(&s, true);  // gradients add up in s.clip->parameters and the hooks' own
 *     small_check_gradient(&s, "proj", values, gradient, n);       // against central differences
 *     small_close(&s);
 */
#pragma once

#include "models/clip.h"
#include "tests/models/device.h"

enum { SMALL_IMAGES = 3, SMALL_PROMPTS = 4 };
extern const struct clip_dimensions small_dimensions, vit_b_16;
extern const int32_t small_tokens[SMALL_PROMPTS * 6]; /* starts are 9, ends 10 */

struct small {
    struct device d;
    struct arena step;
    struct clip *clip;
    struct operand images;
    const int32_t *labels; /* device */
    float dropout;         /* of both towers */
    const struct block_hook *hooks[TOWERS];
    const struct attention_hook *attention[TOWERS];
    const int32_t *router[TOWERS]; /* device */
    struct step_state *state;      /* device */
    float *loss;                   /* device */
    struct tensor features[TOWERS];
};

/* Weights and images are normal numbers, without a zero: a dropped bias must show. */
void small_open(struct small *s, size_t threads, enum parameters_mode mode, enum activation activation);
/* Of other sizes, but of these images. */
void small_open_of(struct small *s, size_t threads, enum parameters_mode mode, enum activation activation,
                   const struct clip_dimensions *dimensions);
/* The same as a SigLIP, whose image tower pools by attention. */
void small_open_siglip(struct small *s, size_t threads, enum parameters_mode mode);
void small_close(struct small *s);

/* Adds normal numbers to all values of a group. */
void small_disturb(struct device *d, struct parameters *group, float deviation);

/* The features of all images and prompts, for inference; in the step arena until the next call. */
void small_encode(struct small *s);

/* The same, and a tower's features on the host. */
const float *small_features(struct small *s, enum tower tower);

/* Every part of the batch of images has the features that it has in the whole, to the bit. */
void small_expect_parts(struct small *s);

/* All values of a group on the host; sets those at offset to zero. */
float *small_values(struct small *s, const struct parameters *group);
void small_clear(struct small *s, struct parameters *group, size_t offset, size_t n);

/* Those of images first … first + count − 1 alone, with the routers of all. */
void small_encode_images(struct small *s, size_t first, size_t count, struct tensor *features);

/* The cross-entropy in training, and the gradients of everything that is trained. */
float small_loss(struct small *s, bool backward);

/* check_gradient with small_loss. */
void small_check_gradient(struct small *s, const char *name, float *values, const float *gradient, size_t n);

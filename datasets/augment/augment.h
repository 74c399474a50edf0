/* Augmentation of training images after their crop: flips, RandAugment, random erasing, mixup and CutMix. The loader applies
 * them to the images of `loader_settings.augmentation`.
 *
 *     struct augmentation augmentation = {.flip = 0.5};                          // the keys of a suite's `training`
 *     struct rng rng = rng_make(seed, 0, task, epoch);
 *     augment_image(&augmentation, rng, item, 224, pixels);                      // flip, RandAugment, erasing
 *     struct mixing mixing = augment_draw_mixing(&augmentation, seed, task, step, 224);
 *     augment_mix(&mixing, 224, image, partner, mixed);                          // mixing.own is the image's share
 *
 * Everything depends on the settings and (seed, purpose, task, epoch or step, index) alone.
 */
#pragma once

#include "core/option.h"
#include "core/rng.h"
#include "datasets/image/image.h"

enum augment_policy { AUGMENT_POLICY_NONE, AUGMENT_POLICY_CIFAR10 };
enum erasing_fill { ERASING_FILL_MEAN, ERASING_FILL_BLACK };

/* Zero: none. */
struct augmentation {
    size_t operations, magnitude; /* RandAugment: how many operations an image gets, how strong they are */
    enum augment_policy policy;   /* of AutoAugment, in place of RandAugment */
    double erasing;               /* the probability that a rectangle is erased */
    enum erasing_fill erasing_fill;
    double mixup, cutmix; /* alpha: the images' shares are drawn from Beta(alpha, alpha) */
    double unmixed;       /* the probability that mixup leaves a batch as it is */
    double flip;          /* the probability that an image is mirrored, left and right */
    double crop_scale;    /* least share of an image's area that its crop has; 0: IMAGE_CROP_SCALE */
    bool one_crop;        /* every epoch has the crops of the first */
};

enum { AUGMENT_OPERATIONS_MOST = 16, AUGMENT_MAGNITUDE_MOST = 30, AUGMENT_ALPHA_MOST = 1000 };

/* Option table entries for owners of an augmentation, which is a member of their struct; mixup_probability is 1 − unmixed. */
#define AUGMENT_OPTIONS(owner_, member_)                                                                               \
    OPTION_ONE_OF("crops", "per_epoch|once", "per_epoch",                                                              \
                  "random crops of a training image: a new one in every epoch, or one for all epochs",                 \
                  INTO(owner_, member_.one_crop)),                                                                     \
        OPTION_NUMBER(REAL, "crop_scale", 0.001, 1, "0.9",                                                             \
                      "least share of a training image's area that its random crop has; Inception-style crops: 0.05",  \
                      INTO(owner_, member_.crop_scale), .incidental = "0.9"),                                          \
        OPTION_NUMBER(REAL, "flip", 0, 1, "0", "probability that a training image is mirrored, left and right",        \
                      INTO(owner_, member_.flip), .incidental = "0"),                                                  \
        OPTION_NUMBER(INTEGER, "randaugment", 0, AUGMENT_OPERATIONS_MOST, "0",                                         \
                      "operations of RandAugment on a training image; 0: none", INTO(owner_, member_.operations),      \
                      .incidental = "0"),                                                                              \
        OPTION_NUMBER(INTEGER, "randaugment_magnitude", 0, AUGMENT_MAGNITUDE_MOST, "9",                                \
                      "magnitude of RandAugment's operations", INTO(owner_, member_.magnitude),                        \
                      .when = "randaugment!=0", .written = true, .incidental = "9"),                                   \
        OPTION_ONE_OF("autoaugment", "none|cifar10", "none",                                                           \
                      "policy of AutoAugment for training images, in place of randaugment",                            \
                      INTO(owner_, member_.policy), .incidental = "none"),                                             \
        OPTION_NUMBER(REAL, "random_erasing", 0, 1, "0", "probability that a rectangle of a training image is erased", \
                      INTO(owner_, member_.erasing), .incidental = "0"),                                               \
        OPTION_ONE_OF("random_erasing_fill", "mean|black", "mean", "colour of erased pixels: CLIP's mean, or black",   \
                      INTO(owner_, member_.erasing_fill), .when = "random_erasing!=0", .written = true,                \
                      .incidental = "mean"),                                                                           \
        OPTION_NUMBER(REAL, "mixup", 0, AUGMENT_ALPHA_MOST, "0",                                                       \
                      "parameter of mixup: pairs of training images are averaged with weights from Beta(mixup, "       \
                      "mixup); 0: no mixup",                                                                           \
                      INTO(owner_, member_.mixup), .incidental = "0"),                                                 \
        OPTION_NUMBER(REAL, "mixup_probability", 0, 1, "1",                                                            \
                      "probability of mixup for each batch that CutMix does not get", .when = "mixup!=0",              \
                      .written = true, .incidental = "1"),                                                             \
        OPTION_NUMBER(REAL, "cutmix", 0, AUGMENT_ALPHA_MOST, "0",                                                      \
                      "parameter of CutMix: a rectangle of each training image comes from another, its area from "     \
                      "Beta(cutmix, cutmix); 0: no CutMix; with mixup as well, each batch gets one of the two",        \
                      INTO(owner_, member_.cutmix), .incidental = "0")

/* The first key that asks for an augmentation: "mixup"; NULL: none does. */
const char *augmentation_key(const struct augmentation *augmentation);
bool augmentation_mixes(const struct augmentation *augmentation);

void augment_mirror(int side, uint8_t *pixels); /* left and right change places */

/* A flip. RandAugment (Cubuk et al. 2020, arXiv 1909.13719) as in torchvision on a Pillow image: `operations` of 14 operations
 * in a row, each drawn uniformly, of the given magnitude out of 31; nearest neighbours, black beyond the edge. Or
 * AutoAugment (Cubuk et al. 2019, arXiv 1805.09501) with its policy for CIFAR-10, likewise. Then
 * random erasing (Zhong et al. 2020, arXiv 1708.04896) as in torchvision: 0.02 to 0.33 of the area, aspect ratio 0.3 to
 * 3.3. pixels [side, side, 3]; rng: any purpose, the step is the epoch. */
void augment_image(const struct augmentation *augmentation, struct rng rng, uint64_t item, int side, uint8_t *pixels);

/* How each image of a batch is mixed with a partner. */
struct mixing {
    float own;            /* the share of the image's own label; 1 − own is the partner's */
    struct image_box box; /* CutMix: the part that is the partner's; it may be empty */
    bool cut;             /* otherwise all pixels are averaged: mixup */
};

/* mixup (Zhang et al. 2018, arXiv 1710.09412) and CutMix (Yun et al. 2019, arXiv 1905.04899) as in torchvision: one
 * draw for a batch; with CutMix the share follows from the part of the rectangle inside the image. With both set, each
 * is drawn with probability 1/2. */
struct mixing augment_draw_mixing(const struct augmentation *augmentation, uint64_t seed, uint32_t task, uint64_t step,
                                  int side);

/* mixed [side, side, 3], which is neither image nor partner; averages are rounded to whole numbers. */
void augment_mix(const struct mixing *mixing, int side, const uint8_t *image, const uint8_t *partner, uint8_t *mixed);

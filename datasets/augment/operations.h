/* Internal: the operations of RandAugment, in torchvision's order, and AutoAugment. */
#pragma once

#include "datasets/augment/augment.h"

enum operation {
    OPERATION_IDENTITY,
    OPERATION_SHEAR_X,
    OPERATION_SHEAR_Y,
    OPERATION_TRANSLATE_X,
    OPERATION_TRANSLATE_Y,
    OPERATION_ROTATE,
    OPERATION_BRIGHTNESS,
    OPERATION_COLOR,
    OPERATION_CONTRAST,
    OPERATION_SHARPNESS,
    OPERATION_POSTERIZE,
    OPERATION_SOLARIZE,
    OPERATION_AUTO_CONTRAST,
    OPERATION_EQUALIZE,
    RANDAUGMENT_OPERATIONS,
    OPERATION_INVERT = RANDAUGMENT_OPERATIONS,
    OPERATIONS
};

/* An image that is changed in place. */
struct canvas {
    int side;
    uint8_t *pixels, *scratch; /* [side, side, 3] each */
};

/* Whether the sign of the magnitude is drawn. */
bool operation_signed(enum operation operation);

/* The magnitude of bin 0 … last, not negative: a slope, pixels, degrees, a factor's distance from 1, bits, a threshold,
 * or 0. */
double operation_magnitude(enum operation operation, size_t bin, size_t last, int side);

void operation_apply(enum operation operation, double magnitude, const struct canvas *canvas);

/* The sub-policies of AutoAugment's policy for CIFAR-10, each two operations that are left out by chance. */
enum { AUTOAUGMENT_POLICIES = 25, AUTOAUGMENT_STEPS = 2, AUTOAUGMENT_LAST_BIN = 9 };
struct autoaugment_step {
    enum operation operation;
    float probability;
    size_t bin;
};
extern const struct autoaugment_step autoaugment_policies[AUTOAUGMENT_POLICIES][AUTOAUGMENT_STEPS];

struct autoaugment_draw {
    size_t policy;
    float chance[AUTOAUGMENT_STEPS]; /* an operation is done where this is at most its probability */
    bool negative[AUTOAUGMENT_STEPS];
};
struct autoaugment_draw autoaugment_draw(const struct rng *rng, uint64_t item);
void autoaugment_apply(const struct autoaugment_draw *draw, const struct canvas *canvas);

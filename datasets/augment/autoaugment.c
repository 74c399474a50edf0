/* AutoAugment (Cubuk et al. 2019, arXiv 1805.09501): its policy for CIFAR-10 with magnitudes as torchvision has them,
 * in ten bins. Operations without a magnitude have bin 0. */
#include "datasets/augment/operations.h"

const struct autoaugment_step autoaugment_policies[AUTOAUGMENT_POLICIES][AUTOAUGMENT_STEPS] = {
    {{OPERATION_INVERT, 0.1F, 0}, {OPERATION_CONTRAST, 0.2F, 6}},
    {{OPERATION_ROTATE, 0.7F, 2}, {OPERATION_TRANSLATE_X, 0.3F, 9}},
    {{OPERATION_SHARPNESS, 0.8F, 1}, {OPERATION_SHARPNESS, 0.9F, 3}},
    {{OPERATION_SHEAR_Y, 0.5F, 8}, {OPERATION_TRANSLATE_Y, 0.7F, 9}},
    {{OPERATION_AUTO_CONTRAST, 0.5F, 0}, {OPERATION_EQUALIZE, 0.9F, 0}},
    {{OPERATION_SHEAR_Y, 0.2F, 7}, {OPERATION_POSTERIZE, 0.3F, 7}},
    {{OPERATION_COLOR, 0.4F, 3}, {OPERATION_BRIGHTNESS, 0.6F, 7}},
    {{OPERATION_SHARPNESS, 0.3F, 9}, {OPERATION_BRIGHTNESS, 0.7F, 9}},
    {{OPERATION_EQUALIZE, 0.6F, 0}, {OPERATION_EQUALIZE, 0.5F, 0}},
    {{OPERATION_CONTRAST, 0.6F, 7}, {OPERATION_SHARPNESS, 0.6F, 5}},
    {{OPERATION_COLOR, 0.7F, 7}, {OPERATION_TRANSLATE_X, 0.5F, 8}},
    {{OPERATION_EQUALIZE, 0.3F, 0}, {OPERATION_AUTO_CONTRAST, 0.4F, 0}},
    {{OPERATION_TRANSLATE_Y, 0.4F, 3}, {OPERATION_SHARPNESS, 0.2F, 6}},
    {{OPERATION_BRIGHTNESS, 0.9F, 6}, {OPERATION_COLOR, 0.2F, 8}},
    {{OPERATION_SOLARIZE, 0.5F, 2}, {OPERATION_INVERT, 0.0F, 0}},
    {{OPERATION_EQUALIZE, 0.2F, 0}, {OPERATION_AUTO_CONTRAST, 0.6F, 0}},
    {{OPERATION_EQUALIZE, 0.2F, 0}, {OPERATION_EQUALIZE, 0.6F, 0}},
    {{OPERATION_COLOR, 0.9F, 9}, {OPERATION_EQUALIZE, 0.6F, 0}},
    {{OPERATION_AUTO_CONTRAST, 0.8F, 0}, {OPERATION_SOLARIZE, 0.2F, 8}},
    {{OPERATION_BRIGHTNESS, 0.1F, 3}, {OPERATION_COLOR, 0.7F, 0}},
    {{OPERATION_SOLARIZE, 0.4F, 5}, {OPERATION_AUTO_CONTRAST, 0.9F, 0}},
    {{OPERATION_TRANSLATE_Y, 0.9F, 9}, {OPERATION_TRANSLATE_Y, 0.7F, 9}},
    {{OPERATION_AUTO_CONTRAST, 0.9F, 0}, {OPERATION_SOLARIZE, 0.8F, 3}},
    {{OPERATION_EQUALIZE, 0.8F, 0}, {OPERATION_INVERT, 0.1F, 0}},
    {{OPERATION_TRANSLATE_Y, 0.7F, 9}, {OPERATION_AUTO_CONTRAST, 0.9F, 0}},
};

struct autoaugment_draw autoaugment_draw(const struct rng *rng, uint64_t item)
{
    uint32_t words[4];
    rng_block(rng, item, words);
    return (struct autoaugment_draw){.policy = (uint64_t)words[0] * AUTOAUGMENT_POLICIES >> 32,
                                     .chance = {(float)(words[1] >> 8) * 0x1p-24F, (float)(words[2] >> 8) * 0x1p-24F},
                                     .negative = {words[3] >> 31 != 0, (words[3] >> 30 & 1) != 0}};
}

void autoaugment_apply(const struct autoaugment_draw *draw, const struct canvas *canvas)
{
    for (int i = 0; i < AUTOAUGMENT_STEPS; i++) {
        const struct autoaugment_step *step = &autoaugment_policies[draw->policy][i];
        double magnitude = operation_magnitude(step->operation, step->bin, AUTOAUGMENT_LAST_BIN, canvas->side);
        bool negative = operation_signed(step->operation) && draw->negative[i];
        if (draw->chance[i] <= step->probability)
            operation_apply(step->operation, negative ? -magnitude : magnitude, canvas);
    }
}

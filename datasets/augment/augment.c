#include "datasets/augment/augment.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/augment/operations.h"

struct augmentation augmentation_of(const struct options *options)
{
    return (struct augmentation){.operations = (size_t)options_integer(options, "randaugment"),
                                 .magnitude = (size_t)options_integer(options, "randaugment_magnitude"),
                                 .policy = (enum augment_policy)options_choice(options, "autoaugment"),
                                 .erasing = options_real(options, "random_erasing"),
                                 .erasing_fill = (enum erasing_fill)options_choice(options, "random_erasing_fill"),
                                 .mixup = options_real(options, "mixup"),
                                 .unmixed = 1 - options_real(options, "mixup_probability"),
                                 .cutmix = options_real(options, "cutmix"),
                                 .flip = options_real(options, "flip"),
                                 .crop_scale = options_real(options, "crop_scale"),
                                 .one_crop = strcmp(options_text(options, "crops"), "once") == 0};
}

bool augmentation_mixes(const struct augmentation *a)
{
    return a->mixup > 0 || a->cutmix > 0;
}

const char *augmentation_key(const struct augmentation *a)
{
    return a->operations > 0                  ? "randaugment"
           : a->policy != AUGMENT_POLICY_NONE ? "autoaugment"
           : a->erasing > 0                   ? "random_erasing"
           : a->flip > 0                      ? "flip"
           : a->mixup > 0                     ? "mixup"
           : a->cutmix > 0                    ? "cutmix"
                                              : NULL;
}

static void mirror(int side, uint8_t *pixels)
{
    for (int y = 0; y < side; y++)
        for (int left = 0, right = side - 1; left < right; left++, right--) {
            uint8_t *a = pixels + 3 * (y * side + left), *b = pixels + 3 * (y * side + right), kept[3];
            memcpy(kept, a, 3);
            memcpy(a, b, 3);
            memcpy(b, kept, 3);
        }
}

static void apply_operations(const struct augmentation *a, struct rng rng, uint64_t item, int side, uint8_t *pixels)
{
    struct canvas canvas = {side, pixels, xmalloc((size_t)side * (size_t)side * 3)};
    rng.purpose = RNG_AUGMENT;
    if (a->policy != AUGMENT_POLICY_NONE) {
        struct autoaugment_draw draw = autoaugment_draw(&rng, item);
        autoaugment_apply(&draw, &canvas);
    }
    for (size_t k = 0; k < a->operations; k++) {
        uint32_t words[4];
        rng_block(&rng, item * AUGMENT_OPERATIONS_MOST + k, words);
        enum operation operation = (enum operation)((uint64_t)words[0] * RANDAUGMENT_OPERATIONS >> 32);
        double magnitude = operation_magnitude(operation, a->magnitude, AUGMENT_MAGNITUDE_MOST, side);
        bool negative = operation_signed(operation) && words[1] >> 31 != 0;
        operation_apply(operation, negative ? -magnitude : magnitude, &canvas);
    }
    free(canvas.scratch);
}

void augment_image(const struct augmentation *a, struct rng rng, uint64_t item, int side, uint8_t *pixels)
{
    rng.purpose = RNG_FLIP;
    if (a->flip > 0 && rng_uniform(&rng, item) < (float)a->flip)
        mirror(side, pixels);
    if (a->operations > 0 || a->policy != AUGMENT_POLICY_NONE)
        apply_operations(a, rng, item, side, pixels);
    if (a->erasing > 0) {
        rng.purpose = RNG_ERASING;
        erasing_fill(erasing_draw(&rng, item, a->erasing, side), a->erasing_fill, side, pixels);
    }
}

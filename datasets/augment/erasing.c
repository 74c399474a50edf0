/* Random erasing: the rectangle and its colour. */
#include <math.h>

#include "datasets/augment/operations.h"

struct image_box erasing_draw(const struct rng *rng, uint64_t item, double probability, int side)
{
    enum { TRIES = 10 };
    const double unit = 0x1p-32, least = log(0.3), most = log(3.3);
    uint32_t words[4];
    rng_block(rng, item * (TRIES + 1), words);
    if (words[0] * unit >= probability)
        return (struct image_box){0};
    for (uint64_t k = 1; k <= TRIES; k++) {
        rng_block(rng, item * (TRIES + 1) + k, words);
        double area = (double)side * side * (0.02 + (0.33 - 0.02) * (words[0] * unit)),
               ratio = exp(least + (most - least) * (words[1] * unit));
        struct image_box box = {.height = (int)nearbyint(sqrt(area * ratio)),
                                .width = (int)nearbyint(sqrt(area / ratio))};
        if (box.height >= side || box.width >= side)
            continue;
        box.top = (int)((uint64_t)words[2] * (uint64_t)(side - box.height + 1) >> 32);
        box.left = (int)((uint64_t)words[3] * (uint64_t)(side - box.width + 1) >> 32);
        return box;
    }
    return (struct image_box){0};
}

void erasing_fill(struct image_box box, enum erasing_fill fill, int side, uint8_t *pixels)
{
    static const uint8_t colors[][3] = {[ERASING_FILL_MEAN] = {123, 117, 104}, /* CLIP's mean times 255 */
                                        [ERASING_FILL_BLACK] = {0, 0, 0}};
    for (int y = box.top; y < box.top + box.height; y++)
        for (int x = box.left; x < box.left + box.width; x++)
            for (int c = 0; c < 3; c++)
                pixels[((size_t)y * (size_t)side + (size_t)x) * 3 + (size_t)c] = colors[fill][c];
}

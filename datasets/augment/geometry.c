/* Affine transforms as Pillow's, of the nearest neighbours: positions in 16.16 fixed point. */
#include <math.h>
#include <string.h>

#include "datasets/augment/operations.h"

static int32_t fixed(double value)
{
    return (int32_t)floor(value * 65536.0 + 0.5);
}

/* The first pixel and the one behind the last whose position first + i · step is inside [0, side) in 16.16 fixed point. */
struct range {
    int begin, end;
};

static struct range narrow(struct range range, int32_t first, int32_t step, int side)
{
    while (range.begin < range.end && (uint32_t)((first + range.begin * step) >> 16) >= (uint32_t)side)
        range.begin++;
    while (range.begin < range.end && (uint32_t)((first + (range.end - 1) * step) >> 16) >= (uint32_t)side)
        range.end--;
    return range;
}

void geometry_transform(const struct canvas *canvas, const double m[6])
{
    int side = canvas->side;
    size_t row = (size_t)side * 3;
    int32_t xx = fixed(m[0]), xy = fixed(m[1]), yx = fixed(m[3]), yy = fixed(m[4]),
            x0 = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), y0 = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
    for (int y = 0; y < side; y++, x0 += xy, y0 += yy) {
        uint8_t *to = canvas->scratch + (size_t)y * row;
        /* positions are linear along a row, so those inside are next to one another */
        struct range inside = narrow(narrow((struct range){0, side}, x0, xx, side), y0, yx, side);
        memset(to, 0, row);
        for (int x = inside.begin; x < inside.end; x++)
            memcpy(to + 3 * x, canvas->pixels + (size_t)((y0 + x * yx) >> 16) * row + (size_t)((x0 + x * xx) >> 16) * 3,
                   3);
    }
    memcpy(canvas->pixels, canvas->scratch, row * (size_t)side);
}

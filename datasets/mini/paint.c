#include "datasets/mini/paint.h"

#include <math.h>

struct paint paint_solid(struct colour colour)
{
    return (struct paint){.pattern = PATTERN_SOLID, .first = colour};
}

void paint_turn(struct paint *paint, float turns)
{
    paint->cosine = turn_cosine(turns);
    paint->sine = turn_sine(turns);
}

static float clamp01(float value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

static float fraction(float value)
{
    return value - floorf(value);
}

/* 1 inside a band of the given width around 0 of a coordinate that repeats after 1; edges one point wide. */
static float band(float coordinate, float width, float period)
{
    float distance = fabsf(fraction(coordinate + 0.5f) - 0.5f) - width / 2;
    return clamp01(0.5f - distance * period);
}

/* How much of the second colour the pattern shows at (s, t), in periods. */
static float pattern_share(const struct paint *paint, float s, float t)
{
    float share = paint->share > 0 ? paint->share : 0.5f, period = paint->period;
    switch (paint->pattern) {
    case PATTERN_GRADIENT:
        return clamp01(s + 0.5f);
    case PATTERN_STRIPES:
        return band(s, share, period);
    case PATTERN_NOISE:
        return clamp01(noise_at(paint->noise, s, t) * 1.6f - 0.3f);
    case PATTERN_BLOTCHES:
        return clamp01(0.5f + (noise_at(paint->noise, s, t) - 1 + share) * period);
    default:
        return 0;
    }
}

struct colour paint_at(const struct paint *paint, float x, float y)
{
    if (paint->pattern == PATTERN_SOLID)
        return paint->first;
    float s = (x - paint->x) / paint->period, t = (y - paint->y) / paint->period;
    if (paint->cosine != 0 || paint->sine != 0) {
        float turned = s * paint->cosine + t * paint->sine;
        t = t * paint->cosine - s * paint->sine;
        s = turned;
    }
    return colour_mix(paint->first, paint->second, pattern_share(paint, s, t));
}

struct colour colour_mix(struct colour a, struct colour b, float share_of_b)
{
    return (struct colour){a.r + (b.r - a.r) * share_of_b, a.g + (b.g - a.g) * share_of_b,
                           a.b + (b.b - a.b) * share_of_b};
}

struct colour colour_jitter(struct dice *dice, struct colour colour, float amount)
{
    return (struct colour){clamp01(colour.r + dice_between(dice, -amount, amount)),
                           clamp01(colour.g + dice_between(dice, -amount, amount)),
                           clamp01(colour.b + dice_between(dice, -amount, amount))};
}

float colour_distance(struct colour a, struct colour b)
{
    return fmaxf(fabsf(a.r - b.r), fmaxf(fabsf(a.g - b.g), fabsf(a.b - b.b)));
}

struct colour colour_random(struct dice *dice)
{
    float r = dice_between(dice, 0, 1), g = dice_between(dice, 0, 1);
    return (struct colour){r, g, dice_between(dice, 0, 1)};
}

void noise_fill(struct noise *noise, struct dice *dice)
{
    for (int y = 0; y < NOISE_SIDE; y++)
        for (int x = 0; x < NOISE_SIDE; x++)
            noise->value[y][x] = dice_between(dice, 0, 1);
}

float noise_at(const struct noise *noise, float x, float y)
{
    float left = floorf(x), top = floorf(y), u = x - left, v = y - top;
    unsigned x0 = (unsigned)(int)left % NOISE_SIDE, y0 = (unsigned)(int)top % NOISE_SIDE;
    unsigned x1 = (x0 + 1) % NOISE_SIDE, y1 = (y0 + 1) % NOISE_SIDE;
    u = u * u * (3 - 2 * u);
    v = v * v * (3 - 2 * v);
    float upper = noise->value[y0][x0] + (noise->value[y0][x1] - noise->value[y0][x0]) * u;
    float lower = noise->value[y1][x0] + (noise->value[y1][x1] - noise->value[y1][x0]) * u;
    return upper + (lower - upper) * v;
}

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

/* Distance to the border of the nearest cell of a hexagonal grid with unit spacing. */
static float hexagon_border(float x, float y)
{
    const float height = 1.7320508f;
    float nearest = 1e9f, second = 1e9f;
    for (int lattice = 0; lattice < 2; lattice++) {
        float dx = fraction(x + 0.5f * (float)lattice) - 0.5f;
        float dy = (fraction(y / height + 0.5f * (float)lattice) - 0.5f) * height;
        for (int side = -1; side <= 1; side++) {
            float square = (dx + (float)side) * (dx + (float)side) + dy * dy;
            if (square < nearest) {
                second = nearest;
                nearest = square;
            } else if (square < second) {
                second = square;
            }
        }
    }
    return (sqrtf(second) - sqrtf(nearest)) / 2;
}

static float woven_share(float s, float t, float period)
{
    bool across = ((int)floorf(s) + (int)floorf(t)) & 1;
    float along = across ? t : s;
    return band(along + 0.5f, 0.66f, period) * (0.55f + 0.45f * turn_sine((across ? s : t) * 0.5f));
}

/* An Archimedean spiral without arc tangent: the turn of (s, t) by octants, error below 0.005 turns. */
static float turn_of(float s, float t)
{
    float small = fminf(fabsf(s), fabsf(t)), large = fmaxf(fabsf(s), fabsf(t));
    float ratio = large > 0 ? small / large : 0;
    float turn = ratio * (0.16f - 0.035f * ratio);
    turn = fabsf(t) > fabsf(s) ? 0.25f - turn : turn;
    turn = s < 0 ? 0.5f - turn : turn;
    return t < 0 ? 1 - turn : turn;
}

/* How much of the second colour the pattern shows at (s, t), in periods. */
static float pattern_share(const struct paint *paint, float s, float t)
{
    float share = paint->share > 0 ? paint->share : 0.5f, period = paint->period;
    float radius = sqrtf(s * s + t * t);
    switch (paint->pattern) {
    case PATTERN_GRADIENT:
        return clamp01(s + 0.5f);
    case PATTERN_STRIPES:
        return band(s, share, period);
    case PATTERN_CHECKS: {
        float a = band(s, 0.5f, period), b = band(t, 0.5f, period);
        return a + b - 2 * a * b;
    }
    case PATTERN_DOTS: {
        float dx = fraction(s) - 0.5f, dy = fraction(t) - 0.5f;
        return clamp01(0.5f - (sqrtf(dx * dx + dy * dy) - share * 0.6f) * period);
    }
    case PATTERN_GRID:
        return fmaxf(band(s, share * 0.4f, period), band(t, share * 0.4f, period));
    case PATTERN_ZIGZAG:
        return band(s + fabsf(fraction(t * 0.5f) - 0.5f) * 1.6f, share, period);
    case PATTERN_WAVES:
        return band(s + 0.3f * turn_sine(t * 0.45f), share, period);
    case PATTERN_RINGS:
        return band(radius, share, period);
    case PATTERN_SPIRAL:
        return band(radius - turn_of(s, t), share, period);
    case PATTERN_BRICKS:
        return fmaxf(band(t, 0.2f, period), band(s * 0.5f + (((int)floorf(t)) & 1 ? 0.5f : 0), 0.1f, 2 * period));
    case PATTERN_HONEYCOMB:
        return clamp01(0.5f - (hexagon_border(s, t) - 0.1f) * period);
    case PATTERN_WOVEN:
        return woven_share(s, t, period);
    case PATTERN_CROSSHATCH:
        return fmaxf(band(s + t, 0.22f, period), band(s - t, 0.22f, period));
    case PATTERN_NOISE:
        return clamp01(noise_at(paint->noise, s, t) * 1.6f - 0.3f);
    case PATTERN_BLOTCHES:
        return clamp01(0.5f + (noise_at(paint->noise, s, t) - 1 + share) * period);
    case PATTERN_MARBLE:
        return 0.5f + 0.5f * turn_sine(s * 0.7f + 1.5f * noise_at(paint->noise, s, t));
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

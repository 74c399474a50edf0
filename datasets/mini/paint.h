/* Colours, and the patterns that a shape or a whole picture is filled with.
 *
 *     struct paint paint = {.pattern = PATTERN_STRIPES, .first = red, .second = white, .period = 8};
 *     paint_turn(&paint, 0.125f);
 *     struct colour colour = paint_at(&paint, x, y);     // in points: a picture is 64 points wide
 */
#pragma once

#include "datasets/mini/dice.h"

struct colour {
    float r, g, b; /* 0 … 1 */
};

/* A grid of random values that smooth noise is interpolated in; it repeats after NOISE_SIDE cells. */
enum { NOISE_SIDE = 16 };
struct noise {
    float value[NOISE_SIDE][NOISE_SIDE]; /* 0 … 1 */
};

enum pattern {
    PATTERN_SOLID,    /* first */
    PATTERN_GRADIENT, /* first to second over period points */
    PATTERN_STRIPES,
    PATTERN_NOISE,    /* smooth transitions, needs noise */
    PATTERN_BLOTCHES, /* hard borders, needs noise */
    PATTERNS
};

struct paint {
    enum pattern pattern;
    struct colour first, second;
    float period;              /* points, > 0 for every pattern but solid */
    float cosine, sine;        /* of the pattern's turn; 0, 0 means not turned */
    float x, y;                /* the pattern's origin in points */
    float share;               /* of the second colour in a period, 0 means a half */
    float opacity;             /* 0 means 1 */
    const struct noise *noise; /* borrowed */
};

struct paint paint_solid(struct colour colour);
void paint_turn(struct paint *paint, float turns);
struct colour paint_at(const struct paint *paint, float x, float y);

struct colour colour_mix(struct colour a, struct colour b, float share_of_b);
struct colour colour_jitter(struct dice *dice, struct colour colour, float amount); /* ± amount a channel */
float colour_distance(struct colour a, struct colour b);                            /* the largest channel difference */
struct colour colour_random(struct dice *dice);

void noise_fill(struct noise *noise, struct dice *dice);
float noise_at(const struct noise *noise, float x, float y); /* x, y in cells; 0 … 1 */

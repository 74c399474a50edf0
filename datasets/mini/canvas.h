/* A small software rasteriser: draws, colours and patterns, and antialiased polygons, ellipses and strokes on a square float
 * RGB picture.
 *
 *     struct dice dice = dice_make(seed, STREAM_SUITE, index);      // one for each picture
 *     struct paint paint = {.pattern = PATTERN_STRIPES, .first = red, .second = white, .period = 8};
 *     paint_turn(&paint, dice_between(&dice, 0, 1));
 *     struct canvas canvas;
 *     canvas_clear(&canvas, 64, &sky);
 *     struct frame frame = frame_place(frame_canvas(&canvas), 0.2f, 0, 0.5f, 0.5f, 0.1f);
 *     canvas_ellipse(&canvas, &frame, 0, 0, 1, 0.6f, &paint);
 *     canvas_export(&canvas, pixels);                          // [side, side, 3], 8 bits
 *
 * A call has at most one draw among its arguments, because C leaves the order of their evaluation open. Coordinates
 * run from −1 (left, top) to 1 (right, bottom) inside a frame; frames nest. Nothing here can fail: what lies outside
 * the picture is clipped. Plain float arithmetic, square roots, and polynomials for sine and cosine only, so the bits
 * are the same everywhere; angles are in turns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"

/* Draws in turn, on top of the addressed random numbers of core/rng.h. */
struct dice {
    struct rng rng;
    uint64_t next;
    uint32_t words[4];
    unsigned left; /* words not yet used */
};

/* stream tells the domains of the suite apart (below 2^16). */
struct dice dice_make(uint64_t seed, uint32_t stream, uint64_t index);

uint32_t dice_word(struct dice *dice);                        /* 32 fresh bits */
float dice_between(struct dice *dice, float low, float high); /* uniform in [low, high) */
float dice_bell(struct dice *dice);           /* mean 0, variance 1: the sum of eight uniforms, |x| < 5 */
int dice_below(struct dice *dice, int count); /* uniform in [0, count) */
bool dice_chance(struct dice *dice, float probability);

float turn_sine(float turns); /* sin(2π turns), error below 0.0012 */
float turn_cosine(float turns);

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
    PATTERN_NOISE,   /* smooth transitions, needs noise */
    PATTERN_BLOTCHES /* hard borders, needs noise */
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

enum { CANVAS_SIDE = 64, CANVAS_POINTS = 64 }; /* the largest picture; the most points of one polygon or stroke */

struct canvas {
    int side;
    struct colour pixels[CANVAS_SIDE * CANVAS_SIDE];
};

struct point {
    float x, y;
};

/* pixel = (xx·x + xy·y + x0, yx·x + yy·y + y0) */
struct frame {
    float xx, xy, x0, yx, yy, y0;
};

struct frame frame_canvas(const struct canvas *canvas);

/* A frame inside frame: centred at (x, y), half as wide as scale_x and as high as scale_y, turned clockwise. */
struct frame frame_place(struct frame frame, float x, float y, float scale_x, float scale_y, float turns);

/* Starts a picture of side × side pixels, side ≤ CANVAS_SIDE. */
void canvas_clear(struct canvas *canvas, int side, const struct paint *paint);

/* points[count]: a closed outline, filled by the even-odd rule. */
void canvas_polygon(struct canvas *canvas, const struct frame *frame, const struct point *points, size_t count,
                    const struct paint *paint);
void canvas_ellipse(struct canvas *canvas, const struct frame *frame, float x, float y, float radius_x, float radius_y,
                    const struct paint *paint);
void canvas_rectangle(struct canvas *canvas, const struct frame *frame, float left, float top, float right,
                      float bottom, const struct paint *paint);

/* points[count]: an open line of the given width (in frame units) with round ends and joints. */
void canvas_stroke(struct canvas *canvas, const struct frame *frame, const struct point *points, size_t count,
                   float width, const struct paint *paint);
void canvas_line(struct canvas *canvas, const struct frame *frame, struct point from, struct point to, float width,
                 const struct paint *paint);

/* After-effects on the whole picture. */
void canvas_add_noise(struct canvas *canvas, struct dice *dice, float deviation); /* the same value on all channels */
void canvas_blur(struct canvas *canvas, int passes);                              /* (1 2 1)/4 both ways, each pass */

void canvas_export(const struct canvas *canvas, uint8_t *pixels); /* [side, side, 3] of the caller's */

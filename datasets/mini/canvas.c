#include "datasets/mini/canvas.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- draws and angles --------------------------------------------------------------------------------------------- */

struct dice dice_make(uint64_t seed, uint32_t stream, uint64_t index)
{
    /* the picture's index fills the step and the upper half of the counter; the lower half counts its draws */
    return (struct dice){.rng = rng_make(seed, RNG_DRAWING, stream, (uint32_t)index), .next = index >> 32 << 32};
}

uint32_t dice_word(struct dice *dice)
{
    if (dice->left == 0) {
        rng_block(&dice->rng, dice->next++, dice->words);
        dice->left = 4;
    }
    return dice->words[--dice->left];
}

float dice_between(struct dice *dice, float low, float high)
{
    return low + (high - low) * ((float)(dice_word(dice) >> 8) * 0x1p-24f);
}

float dice_bell(struct dice *dice)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t word = dice_word(dice);
        sum += (word >> 16) + (word & 0xffff);
    }
    /* eight uniforms on [0, 65535]: mean 4 · 65535, standard deviation sqrt(8 / 12) · 65536 */
    return ((float)sum - 262140.0f) * (1.2247449f / 65536.0f);
}

int dice_below(struct dice *dice, int count)
{
    return (int)((uint64_t)dice_word(dice) * (uint64_t)count >> 32);
}

bool dice_chance(struct dice *dice, float probability)
{
    return dice_between(dice, 0, 1) < probability;
}

float turn_sine(float turns)
{
    float t = turns - floorf(turns + 0.5f);
    float parabola = 8 * t - 16 * t * fabsf(t);
    return 0.225f * (parabola * fabsf(parabola) - parabola) + parabola;
}

float turn_cosine(float turns)
{
    return turn_sine(turns + 0.25f);
}

/* --- colours and patterns ----------------------------------------------------------------------------------------- */

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

/* x, y in cells; 0 … 1 */
static float noise_at(const struct noise *noise, float x, float y)
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

/* --- shapes ------------------------------------------------------------------------------------------------------- */

enum { SUBROWS = 4 };

struct frame frame_canvas(const struct canvas *canvas)
{
    float half = (float)canvas->side / 2;
    return (struct frame){.xx = half, .x0 = half, .yy = half, .y0 = half};
}

struct frame frame_place(struct frame frame, float x, float y, float scale_x, float scale_y, float turns)
{
    float cosine = turn_cosine(turns), sine = turn_sine(turns);
    float a = cosine * scale_x, b = -sine * scale_y, c = sine * scale_x, d = cosine * scale_y;
    return (struct frame){
        .xx = frame.xx * a + frame.xy * c,
        .xy = frame.xx * b + frame.xy * d,
        .x0 = frame.xx * x + frame.xy * y + frame.x0,
        .yx = frame.yx * a + frame.yy * c,
        .yy = frame.yx * b + frame.yy * d,
        .y0 = frame.yx * x + frame.yy * y + frame.y0,
    };
}

static struct point frame_point(const struct frame *frame, float x, float y)
{
    return (struct point){frame->xx * x + frame->xy * y + frame->x0, frame->yx * x + frame->yy * y + frame->y0};
}

static int clamp_pixel(float value, int side)
{
    return value < 0 ? 0 : value > (float)side ? side : (int)value;
}

/* The pixels [left, right) × [top, bottom) that points ± margin touch. */
struct box {
    int left, top, right, bottom;
};

static struct box points_box(const struct point *points, size_t count, float margin, int side)
{
    float left = points[0].x, right = left, top = points[0].y, bottom = top;
    for (size_t i = 1; i < count; i++) {
        left = fminf(left, points[i].x);
        right = fmaxf(right, points[i].x);
        top = fminf(top, points[i].y);
        bottom = fmaxf(bottom, points[i].y);
    }
    return (struct box){clamp_pixel(left - margin, side), clamp_pixel(top - margin, side),
                        clamp_pixel(right + margin + 1, side), clamp_pixel(bottom + margin + 1, side)};
}

static void blend(struct canvas *canvas, int x, int y, float coverage, const struct paint *paint)
{
    struct colour *pixel = &canvas->pixels[y * canvas->side + x];
    float points = (float)CANVAS_SIDE / (float)canvas->side;
    struct colour colour = paint_at(paint, ((float)x + 0.5f) * points, ((float)y + 0.5f) * points);
    float opacity = paint->opacity > 0 ? paint->opacity : 1;
    *pixel = colour_mix(*pixel, colour, fminf(coverage, 1) * opacity);
}

void canvas_clear(struct canvas *canvas, int side, const struct paint *paint)
{
    assert(side > 0 && side <= CANVAS_SIDE);
    canvas->side = side;
    memset(canvas->pixels, 0, sizeof canvas->pixels);
    struct paint opaque = *paint;
    opaque.opacity = 1;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            blend(canvas, x, y, 1, &opaque);
}

/* Adds the part of every pixel of a row that [from, to) covers, times weight. */
static void add_span(float *row, int side, float from, float to, float weight)
{
    from = fmaxf(from, 0);
    to = fminf(to, (float)side);
    if (from >= to)
        return;
    int first = (int)from, last = (int)to;
    if (first == last) {
        row[first] += (to - from) * weight;
        return;
    }
    row[first] += ((float)(first + 1) - from) * weight;
    for (int x = first + 1; x < last; x++)
        row[x] += weight;
    if (last < side)
        row[last] += (to - (float)last) * weight;
}

/* Where the outline crosses the horizontal line at y, sorted; returns how many. */
static size_t outline_crossings(const struct point *points, size_t count, float y, float *crossings)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct point a = points[i], b = points[i + 1 < count ? i + 1 : 0];
        if ((a.y <= y) == (b.y <= y))
            continue;
        float x = a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y);
        size_t place = found++;
        for (; place > 0 && crossings[place - 1] > x; place--)
            crossings[place] = crossings[place - 1];
        crossings[place] = x;
    }
    return found;
}

/* points in pixels */
static void fill_outline(struct canvas *canvas, const struct point *points, size_t count, const struct paint *paint)
{
    struct box box = points_box(points, count, 0, canvas->side);
    for (int y = box.top; y < box.bottom; y++) {
        float row[CANVAS_SIDE] = {0}, crossings[CANVAS_POINTS];
        for (int sub = 0; sub < SUBROWS; sub++) {
            float at = (float)y + ((float)sub + 0.5f) / SUBROWS;
            size_t found = outline_crossings(points, count, at, crossings);
            for (size_t i = 0; i + 1 < found; i += 2)
                add_span(row, canvas->side, crossings[i], crossings[i + 1], 1.0f / SUBROWS);
        }
        for (int x = box.left; x < box.right; x++)
            if (row[x] > 0)
                blend(canvas, x, y, row[x], paint);
    }
}

void canvas_polygon(struct canvas *canvas, const struct frame *frame, const struct point *points, size_t count,
                    const struct paint *paint)
{
    assert(count >= 3 && count <= CANVAS_POINTS);
    struct point placed[CANVAS_POINTS];
    for (size_t i = 0; i < count; i++)
        placed[i] = frame_point(frame, points[i].x, points[i].y);
    fill_outline(canvas, placed, count, paint);
}

void canvas_ellipse(struct canvas *canvas, const struct frame *frame, float x, float y, float radius_x, float radius_y,
                    const struct paint *paint)
{
    enum { CORNERS = 28 };
    struct point points[CORNERS];
    for (int i = 0; i < CORNERS; i++) {
        float turns = (float)i / CORNERS;
        points[i] = (struct point){x + radius_x * turn_cosine(turns), y + radius_y * turn_sine(turns)};
    }
    canvas_polygon(canvas, frame, points, CORNERS, paint);
}

void canvas_rectangle(struct canvas *canvas, const struct frame *frame, float left, float top, float right,
                      float bottom, const struct paint *paint)
{
    struct point corners[] = {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
    canvas_polygon(canvas, frame, corners, 4, paint);
}

static float segment_distance(struct point p, struct point a, struct point b)
{
    float dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    float along = square > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / square : 0;
    along = fminf(fmaxf(along, 0), 1);
    float rx = p.x - a.x - along * dx, ry = p.y - a.y - along * dy;
    return sqrtf(rx * rx + ry * ry);
}

void canvas_stroke(struct canvas *canvas, const struct frame *frame, const struct point *points, size_t count,
                   float width, const struct paint *paint)
{
    assert(count >= 2 && count <= CANVAS_POINTS);
    struct point placed[CANVAS_POINTS];
    for (size_t i = 0; i < count; i++)
        placed[i] = frame_point(frame, points[i].x, points[i].y);
    float half = 0.5f * width * sqrtf(fabsf(frame->xx * frame->yy - frame->xy * frame->yx));
    /* the largest coverage of any segment, so that joints are not blended twice */
    float coverage[CANVAS_SIDE * CANVAS_SIDE];
    struct box all = points_box(placed, count, half + 1, canvas->side);
    for (int y = all.top; y < all.bottom; y++)
        memset(&coverage[y * CANVAS_SIDE + all.left], 0, (size_t)(all.right - all.left) * sizeof *coverage);
    for (size_t i = 0; i + 1 < count; i++) {
        struct box box = points_box(&placed[i], 2, half + 1, canvas->side);
        for (int y = box.top; y < box.bottom; y++)
            for (int x = box.left; x < box.right; x++) {
                struct point centre = {(float)x + 0.5f, (float)y + 0.5f};
                float inside = half + 0.5f - segment_distance(centre, placed[i], placed[i + 1]);
                float *least = &coverage[y * CANVAS_SIDE + x];
                *least = fmaxf(*least, fminf(inside, fminf(1, 2 * half)));
            }
    }
    for (int y = all.top; y < all.bottom; y++)
        for (int x = all.left; x < all.right; x++)
            if (coverage[y * CANVAS_SIDE + x] > 0)
                blend(canvas, x, y, coverage[y * CANVAS_SIDE + x], paint);
}

void canvas_line(struct canvas *canvas, const struct frame *frame, struct point from, struct point to, float width,
                 const struct paint *paint)
{
    struct point ends[] = {from, to};
    canvas_stroke(canvas, frame, ends, 2, width, paint);
}

void canvas_add_noise(struct canvas *canvas, struct dice *dice, float deviation)
{
    for (int i = 0; i < canvas->side * canvas->side; i++) {
        /* the difference of the word's halves: a triangle of standard deviation 65536 / sqrt(6) */
        uint32_t word = dice_word(dice);
        float value = ((float)(word >> 16) - (float)(word & 0xffff)) * (2.4494897f / 65536.0f) * deviation;
        struct colour *pixel = &canvas->pixels[i];
        *pixel = (struct colour){pixel->r + value, pixel->g + value, pixel->b + value};
    }
}

static void blur_line(struct colour *first, int stride, int count)
{
    struct colour before = first[0];
    for (int i = 0; i < count; i++) {
        struct colour here = first[i * stride];
        struct colour after = i + 1 < count ? first[(i + 1) * stride] : here;
        first[i * stride] = colour_mix(here, colour_mix(before, after, 0.5f), 0.5f);
        before = here;
    }
}

void canvas_blur(struct canvas *canvas, int passes)
{
    for (int pass = 0; pass < passes; pass++) {
        for (int i = 0; i < canvas->side; i++)
            blur_line(&canvas->pixels[i * canvas->side], 1, canvas->side);
        for (int i = 0; i < canvas->side; i++)
            blur_line(&canvas->pixels[i], canvas->side, canvas->side);
    }
}

static uint8_t export_channel(float value)
{
    /* NOLINTNEXTLINE(bugprone-incorrect-roundings): lround has other bits where the sum is rounded up */
    return value <= 0 ? 0 : value >= 1 ? 255 : (uint8_t)(value * 255 + 0.5f);
}

void canvas_export(const struct canvas *canvas, uint8_t *pixels)
{
    for (int i = 0; i < canvas->side * canvas->side; i++) {
        pixels[3 * i] = export_channel(canvas->pixels[i].r);
        pixels[3 * i + 1] = export_channel(canvas->pixels[i].g);
        pixels[3 * i + 2] = export_channel(canvas->pixels[i].b);
    }
}

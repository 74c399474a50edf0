#include "datasets/mini/suite.h"

#include <assert.h>
#include <math.h>

#include "datasets/mini/suite/picture.h"

const struct paint *picture_ink(struct picture *picture, struct colour colour)
{
    picture->ink = paint_solid(colour_jitter(&picture->dice, colour, 0.06f));
    return &picture->ink;
}

void picture_backdrop(struct picture *picture, struct colour colour, float period)
{
    struct dice *dice = &picture->dice;
    struct paint paint = {.pattern = PATTERN_NOISE, .period = period, .noise = &picture->noise};
    float clutter = picture->difficulty->clutter;
    paint.first = colour_jitter(dice, colour, 0.05f + 0.3f * clutter);
    paint.second = colour_jitter(dice, paint.first, 0.08f + 0.5f * clutter);
    canvas_clear(&picture->canvas, picture->canvas.side, &paint);
}

struct frame picture_subject(struct picture *picture, float least, float most)
{
    struct dice *dice = &picture->dice;
    float half = dice_between(dice, least, most), reach = 0.9f * (1 - half) + 0.05f;
    float x = dice_between(dice, -reach, reach), y = dice_between(dice, -reach, reach);
    float turns = picture->difficulty->tilt * dice_bell(dice);
    float wide = half * dice_between(dice, 0.92f, 1.08f);
    return frame_place(picture->frame, x, y, dice_chance(dice, 0.5f) ? wide : -wide, half, turns);
}

struct colour picture_shade(struct colour colour, float amount)
{
    struct colour end = amount < 0 ? (struct colour){0, 0, 0} : (struct colour){1, 1, 1};
    return colour_mix(colour, end, amount < 0 ? -amount : amount);
}

float picture_between(struct picture *picture, float low, float high)
{
    return dice_between(&picture->dice, low, high);
}

void picture_polygon(struct picture *picture, const struct frame *frame, const struct point *points, size_t count,
                     struct colour colour)
{
    canvas_polygon(&picture->canvas, frame, points, count, picture_ink(picture, colour));
}

void picture_ellipse(struct picture *picture, const struct frame *frame, float x, float y, float radius_x,
                     float radius_y, struct colour colour)
{
    canvas_ellipse(&picture->canvas, frame, x, y, radius_x, radius_y, picture_ink(picture, colour));
}

void picture_rectangle(struct picture *picture, const struct frame *frame, float left, float top, float right,
                       float bottom, struct colour colour)
{
    canvas_rectangle(&picture->canvas, frame, left, top, right, bottom, picture_ink(picture, colour));
}

void picture_stroke(struct picture *picture, const struct frame *frame, const struct point *points, size_t count,
                    float width, struct colour colour)
{
    canvas_stroke(&picture->canvas, frame, points, count, width, picture_ink(picture, colour));
}

void picture_line(struct picture *picture, const struct frame *frame, struct point from, struct point to, float width,
                  struct colour colour)
{
    picture_stroke(picture, frame, (const struct point[]){from, to}, 2, width, colour);
}

/* Every point moves by up to ± the domain's wobble. */
static size_t wobbled_points(struct picture *picture, const struct part *part, struct point *points)
{
    float wobble = picture->difficulty->wobble;
    assert(part->count < CANVAS_POINTS);
    for (size_t i = 0; i < part->count; i++) {
        float dx = picture_between(picture, -wobble, wobble), dy = picture_between(picture, -wobble, wobble);
        points[i] = (struct point){part->points[i].x + dx, part->points[i].y + dy};
    }
    return part->count;
}

void picture_figure(struct picture *picture, const struct frame *frame, const struct figure *figure,
                    const struct paint paints[ROLES])
{
    for (size_t i = 0; i < figure->count; i++) {
        const struct part *part = &figure->parts[i];
        struct point points[CANVAS_POINTS];
        size_t count = wobbled_points(picture, part, points);
        const struct paint *paint = &paints[part->role];
        struct canvas *canvas = &picture->canvas;
        if (part->kind == PART_FILL)
            canvas_polygon(canvas, frame, points, count, paint);
        else if (part->kind == PART_LINE)
            canvas_stroke(canvas, frame, points, count, part->width, paint);
        else
            canvas_ellipse(canvas, frame, points[0].x, points[0].y, points[1].x, points[1].y, paint);
    }
}

static size_t oval_outline(struct point *points)
{
    enum { CORNERS = 20 };
    struct point centre = points[0], radius = points[1];
    for (int i = 0; i <= CORNERS; i++) {
        float turns = (float)i / CORNERS;
        points[i] = (struct point){centre.x + radius.x * turn_cosine(turns), centre.y + radius.y * turn_sine(turns)};
    }
    return CORNERS + 1;
}

void picture_outline(struct picture *picture, const struct frame *frame, const struct figure *figure,
                     const struct paint *paint)
{
    for (size_t i = 0; i < figure->count; i++) {
        struct point points[CANVAS_POINTS];
        size_t count = wobbled_points(picture, &figure->parts[i], points);
        if (figure->parts[i].kind == PART_OVAL)
            count = oval_outline(points);
        else if (figure->parts[i].kind == PART_FILL)
            points[count++] = points[0];
        canvas_stroke(&picture->canvas, frame, points, count, 0.05f, paint);
    }
}

enum { STREAM_SUITE = 0x51 }; /* and one more for each domain */

static const char *const mnist_names[] = {"0 - zero", "1 - one", "2 - two",   "3 - three", "4 - four",
                                          "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine"};

/* The table to tune. Where a reader splits by permutation, train and test are 80 and 20 % of their sum. */
/* clang-format off */
const struct domain suite_domains[SUITE_DOMAINS] = {
    {"aircraft", aircraft_names, 8, 64, 480, 200, suite_draw_aircraft,
     {.tilt = 0.04f, .wobble = 0.015f, .clutter = 0.3f, .noise = 0.03f, .blur = 1}},
    {"caltech101", caltech101_names, 10, 64, 640, 160, suite_draw_caltech101,
     {.tilt = 0.03f, .wobble = 0.04f, .clutter = 0.1f, .noise = 0.04f}},
    {"cifar100", cifar100_names, 10, 32, 480, 200, suite_draw_cifar100,
     {.tilt = 0.02f, .wobble = 0.04f, .clutter = 0.5f, .noise = 0.04f, .blur = 0}},
    {"dtd", dtd_names, 10, 64, 480, 200, suite_draw_dtd,
     {.wobble = 0.05f, .clutter = 0.5f, .noise = 0.04f, .blur = 1}},
    {"eurosat", eurosat_names, 8, 64, 640, 160, suite_draw_eurosat,
     {.shift = SHIFT_ROTATE, .shift_share = 1, .shift_strength = 0.2f,
      .wobble = 0.03f, .clutter = 0.3f, .noise = 0.03f, .blur = 1}},
    {"flowers", flowers_names, 8, 64, 480, 200, suite_draw_flowers,
     {.tilt = 0.03f, .wobble = 0.03f, .clutter = 0.4f, .noise = 0.03f}},
    {"food", food_names, 9, 64, 480, 200, suite_draw_food,
     {.tilt = 0.02f, .wobble = 0.03f, .clutter = 0.4f, .noise = 0.03f}},
    {"mnist", mnist_names, 10, 28, 1500, 297, NULL, {.shift = SHIFT_NONE}},
    {"oxford_pet", oxford_pet_names, 8, 64, 480, 200, suite_draw_oxford_pet,
     {.shift = SHIFT_HEAT, .shift_share = 1, .shift_strength = 0.25f,
      .tilt = 0.03f, .wobble = 0.03f, .clutter = 0.4f, .noise = 0.03f}},
    {"stanford_cars", stanford_cars_names, 9, 64, 480, 200, suite_draw_stanford_cars,
     {.tilt = 0.01f, .wobble = 0.02f, .clutter = 0.2f, .noise = 0.02f}},
    {"sun397", sun397_names, 9, 64, 640, 160, suite_draw_sun397,
     {.shift = SHIFT_NEGATIVE, .shift_share = 0.1f, .shift_strength = 1,
      .wobble = 0.03f, .clutter = 0.3f, .noise = 0.03f, .blur = 1}},
};
/* clang-format on */

static struct colour heat(float value)
{
    static const struct colour scale[] = {
        {0.05f, 0, 0.2f}, {0.55f, 0.05f, 0.5f}, {0.95f, 0.4f, 0.1f}, {1, 0.9f, 0.3f}, {1, 1, 0.95f}};
    float place = fminf(fmaxf(value, 0), 0.9999f) * 4;
    int step = (int)place;
    return colour_mix(scale[step], scale[step + 1], place - (float)step);
}

static struct colour shifted(struct colour c, enum shift shift)
{
    switch (shift) {
    case SHIFT_NEGATIVE:
        return (struct colour){1 - c.r, 1 - c.g, 1 - c.b};
    case SHIFT_ROTATE:
        return (struct colour){c.b, c.r, c.g};
    case SHIFT_HEAT:
        return heat(0.3f * c.r + 0.59f * c.g + 0.11f * c.b); /* its brightness */
    case SHIFT_NONE:
        break;
    }
    return c;
}

static void canvas_shift(struct canvas *canvas, enum shift shift, float strength)
{
    for (int i = 0; i < canvas->side * canvas->side; i++)
        canvas->pixels[i] = colour_mix(canvas->pixels[i], shifted(canvas->pixels[i], shift), strength);
}

void suite_drawing(const struct domain *domain, uint64_t seed, uint64_t index, int label, uint8_t *pixels)
{
    const struct difficulty *difficulty = &domain->difficulty;
    struct picture picture = {.canvas.side = domain->side, .difficulty = difficulty};
    picture.dice = dice_make(seed, STREAM_SUITE + (uint32_t)(domain - suite_domains), index);
    picture.frame = frame_canvas(&picture.canvas);
    noise_fill(&picture.noise, &picture.dice);
    domain->draw(&picture, label);
    canvas_blur(&picture.canvas, difficulty->blur);
    if (dice_chance(&picture.dice, difficulty->shift_share))
        canvas_shift(&picture.canvas, difficulty->shift, difficulty->shift_strength);
    canvas_add_noise(&picture.canvas, &picture.dice, difficulty->noise);
    canvas_export(&picture.canvas, pixels);
}

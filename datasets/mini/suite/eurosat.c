/* Land from a satellite: irregular plots, shadows, pale roads. */
#include "datasets/mini/suite/picture.h"

const char *const eurosat_names[] = {"crop fields",          "forest", "highway", "houses",
                                     "industrial buildings", "lake",   "orchard", "river"};

static const struct colour green = {0.33f, 0.47f, 0.24f}, dark_green = {0.1f, 0.24f, 0.12f}, dry = {0.66f, 0.58f, 0.4f},
                           pale = {0.72f, 0.7f, 0.66f}, blue = {0.12f, 0.25f, 0.42f}, tile = {0.6f, 0.32f, 0.25f};

/* Where noise is above the share, coloured; the shore follows the noise. */
static void blotch(struct picture *picture, struct colour colour, float period, float share, float turn)
{
    struct noise noise;
    noise_fill(&noise, &picture->dice);
    struct paint blotches = {.pattern = PATTERN_BLOTCHES, .period = period, .share = share, .noise = &noise};
    blotches.first = picture_shade(colour, 0.5f);
    blotches.second = colour;
    paint_turn(&blotches, turn);
    canvas_rectangle(&picture->canvas, &picture->frame, -1, -1, 1, 1, &blotches);
}

static struct frame any_direction(struct picture *picture)
{
    float turns = picture_between(picture, 0, 1), y = picture_between(picture, -0.3f, 0.3f);
    return frame_place(picture->frame, picture_between(picture, -0.3f, 0.3f), y, 1, 1, turns);
}

static void crop_fields(struct picture *picture)
{
    struct dice *dice = &picture->dice;
    static const struct colour crops[] = {
        {0.45f, 0.6f, 0.25f}, {0.75f, 0.65f, 0.35f}, {0.5f, 0.36f, 0.25f}, {0.25f, 0.4f, 0.18f}, {0.65f, 0.68f, 0.4f}};
    struct frame frame = any_direction(picture);
    for (float y = -2; y < 2;) {
        float high = dice_between(dice, 0.25f, 0.6f);
        for (float x = -2; x < 2;) {
            float wide = dice_between(dice, 0.4f, 1);
            struct paint crop = {.pattern = PATTERN_STRIPES, .first = crops[dice_below(dice, 5)], .period = 2.6f};
            crop.second = picture_shade(crop.first, -0.2f);
            paint_turn(&crop, dice_chance(dice, 0.5f) ? 0.1f : 0.35f);
            canvas_rectangle(&picture->canvas, &frame, x, y, x + wide - 0.02f, y + high - 0.02f, &crop);
            x += wide;
        }
        y += high;
    }
}

static void forest(struct picture *picture)
{
    picture_backdrop(picture, dark_green, 4);
    for (int i = 0; i < 70; i++) {
        float x = picture_between(picture, -1, 1), y = picture_between(picture, -1, 1),
              size = picture_between(picture, 0.05f, 0.12f);
        canvas_ellipse(&picture->canvas, &picture->frame, x + 0.03f, y + 0.03f, size, size,
                       picture_ink(picture, picture_shade(dark_green, -0.5f)));
        canvas_ellipse(&picture->canvas, &picture->frame, x, y, size * 0.8f, size * 0.8f,
                       picture_ink(picture, colour_mix(dark_green, green, 0.4f)));
    }
}

static void highway(struct picture *picture)
{
    struct frame frame = any_direction(picture);
    for (int lane = -1; lane <= 1; lane += 2) {
        struct point line[] = {{-2, 0.1f * (float)lane}, {0, 0.1f * (float)lane + 0.06f}, {2, 0.1f * (float)lane}};
        canvas_stroke(&picture->canvas, &frame, line, 3, 0.13f, picture_ink(picture, pale));
    }
    struct point ramp[] = {{-0.7f, 0.15f}, {-0.2f, 0.5f}, {0.1f, 0.9f}, {0.1f, 2}};
    canvas_stroke(&picture->canvas, &frame, ramp, 4, 0.1f, picture_ink(picture, pale));
    for (int i = 0; i < 6; i++) {
        float x = picture_between(picture, -1, 1), y = dice_chance(&picture->dice, 0.5f) ? 0.13f : -0.07f;
        canvas_rectangle(&picture->canvas, &frame, x - 0.05f, y - 0.025f, x + 0.05f, y + 0.025f,
                         picture_ink(picture, colour_random(&picture->dice)));
    }
}

static void building(struct picture *picture, const struct frame *frame, float x, float y, float wide, float high,
                     struct colour roof)
{
    canvas_rectangle(&picture->canvas, frame, x + 0.04f, y + 0.04f, x + wide + 0.04f, y + high + 0.04f,
                     picture_ink(picture, (struct colour){0.12f, 0.13f, 0.12f}));
    canvas_rectangle(&picture->canvas, frame, x, y, x + wide, y + high, picture_ink(picture, roof));
    canvas_rectangle(&picture->canvas, frame, x, y, x + wide, y + high / 2,
                     picture_ink(picture, picture_shade(roof, 0.18f)));
}

static void houses(struct picture *picture)
{
    struct frame frame = any_direction(picture);
    for (float y = -1.8f; y < 1.8f; y += 0.75f) {
        canvas_rectangle(&picture->canvas, &frame, -2, y - 0.1f, 2, y, picture_ink(picture, pale));
        for (float x = -1.8f; x < 1.8f; x += picture_between(picture, 0.3f, 0.4f))
            for (int row = 0; row < 2; row++)
                building(picture, &frame, x, y + 0.07f + 0.28f * (float)row, picture_between(picture, 0.16f, 0.22f),
                         0.17f, tile);
    }
}

static void industrial(struct picture *picture)
{
    picture_backdrop(picture, (struct colour){0.5f, 0.5f, 0.48f}, 16);
    struct frame frame = any_direction(picture);
    for (float y = -1.6f; y < 1.6f; y += 0.8f)
        for (float x = -1.6f; x < 1.6f; x += 0.95f) {
            float grey = picture_between(picture, 0.6f, 0.9f), high = picture_between(picture, 0.35f, 0.6f);
            building(picture, &frame, x, y, picture_between(picture, 0.5f, 0.8f), high,
                     (struct colour){grey, grey, grey + 0.04f});
        }
}

static void lake(struct picture *picture)
{
    struct point shore[16];
    float x = picture_between(picture, -0.25f, 0.25f), y = picture_between(picture, -0.25f, 0.25f);
    for (int i = 0; i < 16; i++) {
        float radius = picture_between(picture, 0.42f, 0.68f);
        shore[i] = (struct point){x + radius * turn_cosine((float)i / 16), y + radius * turn_sine((float)i / 16)};
    }
    struct frame wider = frame_place(picture->frame, 0, 0, 1.08f, 1.08f, 0);
    canvas_polygon(&picture->canvas, &wider, shore, 16, picture_ink(picture, dry));
    canvas_polygon(&picture->canvas, &picture->frame, shore, 16, picture_ink(picture, blue));
}

static void orchard(struct picture *picture)
{
    picture_backdrop(picture, dry, 18);
    struct frame frame = any_direction(picture);
    for (float y = -1.7f; y < 1.7f; y += 0.26f)
        for (float x = -1.7f; x < 1.7f; x += 0.2f) {
            float size = picture_between(picture, 0.055f, 0.085f);
            canvas_ellipse(&picture->canvas, &frame, x, y, size, size,
                           picture_ink(picture, picture_shade(green, -0.35f)));
        }
}

static void river(struct picture *picture)
{
    struct frame frame = any_direction(picture);
    struct point course[9];
    float y = 0;
    for (int i = 0; i < 9; i++) {
        y += picture_between(picture, -0.32f, 0.32f);
        course[i] = (struct point){-1.6f + 0.4f * (float)i, y * 0.8f};
    }
    float width = picture_between(picture, 0.2f, 0.36f);
    canvas_stroke(&picture->canvas, &frame, course, 9, width + 0.12f, picture_ink(picture, dry));
    canvas_stroke(&picture->canvas, &frame, course, 9, width, picture_ink(picture, blue));
}

void suite_draw_eurosat(struct picture *picture, int label)
{
    static void (*const lands[])(struct picture *) = {crop_fields, forest, highway, houses,
                                                      industrial,  lake,   orchard, river};
    picture_backdrop(picture, green, picture_between(picture, 6, 14));
    if (dice_chance(&picture->dice, 0.6f)) {
        float turn = picture_between(picture, 0, 1);
        blotch(picture, picture_shade(green, -0.25f), picture_between(picture, 8, 16), 0.45f, turn);
    }
    lands[label](picture);
}

/* eurosat: land from a satellite, irregular plots, shadows, pale roads. sun397: scenes in layers, as photographs of places have
 * them. */
#include "datasets/mini/suite/picture.h"

/* --- eurosat ------------------------------------------------------------------------------------------------------ */

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
        picture_ellipse(picture, &picture->frame, x + 0.03f, y + 0.03f, size, size, picture_shade(dark_green, -0.5f));
        picture_ellipse(picture, &picture->frame, x, y, size * 0.8f, size * 0.8f, colour_mix(dark_green, green, 0.4f));
    }
}

static void highway(struct picture *picture)
{
    struct frame frame = any_direction(picture);
    for (int lane = -1; lane <= 1; lane += 2) {
        struct point line[] = {{-2, 0.1f * (float)lane}, {0, 0.1f * (float)lane + 0.06f}, {2, 0.1f * (float)lane}};
        picture_stroke(picture, &frame, line, 3, 0.13f, pale);
    }
    struct point ramp[] = {{-0.7f, 0.15f}, {-0.2f, 0.5f}, {0.1f, 0.9f}, {0.1f, 2}};
    picture_stroke(picture, &frame, ramp, 4, 0.1f, pale);
    for (int i = 0; i < 6; i++) {
        float x = picture_between(picture, -1, 1), y = dice_chance(&picture->dice, 0.5f) ? 0.13f : -0.07f;
        picture_rectangle(picture, &frame, x - 0.05f, y - 0.025f, x + 0.05f, y + 0.025f, colour_random(&picture->dice));
    }
}

static void building(struct picture *picture, const struct frame *frame, float x, float y, float wide, float high,
                     struct colour roof)
{
    picture_rectangle(picture, frame, x + 0.04f, y + 0.04f, x + wide + 0.04f, y + high + 0.04f,
                      (struct colour){0.12f, 0.13f, 0.12f});
    picture_rectangle(picture, frame, x, y, x + wide, y + high, roof);
    picture_rectangle(picture, frame, x, y, x + wide, y + high / 2, picture_shade(roof, 0.18f));
}

static void houses(struct picture *picture)
{
    struct frame frame = any_direction(picture);
    for (float y = -1.8f; y < 1.8f; y += 0.75f) {
        picture_rectangle(picture, &frame, -2, y - 0.1f, 2, y, pale);
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
    picture_polygon(picture, &wider, shore, 16, dry);
    picture_polygon(picture, &picture->frame, shore, 16, blue);
}

static void orchard(struct picture *picture)
{
    picture_backdrop(picture, dry, 18);
    struct frame frame = any_direction(picture);
    for (float y = -1.7f; y < 1.7f; y += 0.26f)
        for (float x = -1.7f; x < 1.7f; x += 0.2f) {
            float size = picture_between(picture, 0.055f, 0.085f);
            picture_ellipse(picture, &frame, x, y, size, size, picture_shade(green, -0.35f));
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
    picture_stroke(picture, &frame, course, 9, width + 0.12f, dry);
    picture_stroke(picture, &frame, course, 9, width, blue);
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

/* --- sun397 ------------------------------------------------------------------------------------------------------- */

const char *const sun397_names[] = {"beach", "bedroom",  "bridge", "city",     "desert",
                                    "field", "mountain", "road",   "waterfall"};

static void band(struct picture *picture, float top, float bottom, struct colour colour)
{
    picture_rectangle(picture, &picture->frame, -1.3f, top, 1.3f, bottom, colour);
}

/* Land below an uneven line. */
static void skyline(struct picture *picture, float height, float unevenness, struct colour colour)
{
    struct point points[20];
    float at = height;
    for (int i = 0; i < 18; i++) {
        at += picture_between(picture, -unevenness, unevenness);
        at = at * 0.85f + height * 0.15f;
        points[i] = (struct point){-1.3f + 2.6f * (float)i / 17, at};
    }
    points[18] = (struct point){1.3f, 1.3f};
    points[19] = (struct point){-1.3f, 1.3f};
    picture_polygon(picture, &picture->frame, points, 20, colour);
}

static void beach(struct picture *picture)
{
    band(picture, -0.1f, 1.3f, (struct colour){0.2f, 0.5f, 0.68f});
    for (int i = 0; i < 3; i++) {
        float y = 0.05f + 0.12f * (float)i;
        const struct paint *foam = picture_ink(picture, (struct colour){0.85f, 0.92f, 0.95f});
        float right = picture_between(picture, 0, 1), left = picture_between(picture, -1, 0);
        canvas_line(&picture->canvas, &picture->frame, (struct point){left, y}, (struct point){right, y}, 0.03f, foam);
    }
    struct point shore[] = {{-1.3f, picture_between(picture, 0.2f, 0.6f)},
                            {0, picture_between(picture, 0.35f, 0.5f)},
                            {1.3f, picture_between(picture, 0.2f, 0.6f)},
                            {1.3f, 1.3f},
                            {-1.3f, 1.3f}};
    picture_polygon(picture, &picture->frame, shore, 5, (struct colour){0.88f, 0.78f, 0.58f});
    if (dice_chance(&picture->dice, 0.5f)) {
        struct point palm[] = {{0.7f, 1.1f}, {0.6f, 0.3f}, {0.45f, -0.35f}};
        picture_stroke(picture, &picture->frame, palm, 3, 0.08f, (struct colour){0.4f, 0.28f, 0.18f});
        for (int i = 0; i < 5; i++) {
            struct point tip = {0.45f + 0.4f * turn_cosine(0.1f * (float)i + 0.05f),
                                -0.35f + 0.35f * turn_sine(0.1f * (float)i + 0.55f)};
            picture_line(picture, &picture->frame, palm[2], tip, 0.07f, (struct colour){0.2f, 0.45f, 0.2f});
        }
    }
}

static void bedroom(struct picture *picture)
{
    struct dice *dice = &picture->dice;
    struct colour wall = colour_mix(colour_random(dice), (struct colour){0.9f, 0.87f, 0.82f}, 0.7f),
                  cover = colour_random(dice);
    band(picture, -1.3f, 1.3f, wall);
    struct point floor[] = {{-1.3f, 0.55f}, {1.3f, 0.4f}, {1.3f, 1.3f}, {-1.3f, 1.3f}};
    picture_polygon(picture, &picture->frame, floor, 4, (struct colour){0.5f, 0.36f, 0.24f});
    picture_rectangle(picture, &picture->frame, -0.85f, -0.75f, -0.35f, -0.15f, (struct colour){0.75f, 0.87f, 0.95f});
    picture_rectangle(picture, &picture->frame, -0.05f, -0.3f, 0.95f, 0.3f, (struct colour){0.42f, 0.28f, 0.18f});
    struct point mattress[] = {{0, 0.15f}, {0.95f, 0.15f}, {0.75f, 0.85f}, {-0.6f, 0.85f}};
    picture_polygon(picture, &picture->frame, mattress, 4, cover);
    for (int i = 0; i < 2; i++)
        picture_ellipse(picture, &picture->frame, 0.25f + 0.45f * (float)i, 0.18f, 0.2f, 0.1f,
                        (struct colour){0.95f, 0.95f, 0.95f});
}

static void bridge(struct picture *picture)
{
    struct colour stone = {0.5f, 0.45f, 0.4f};
    skyline(picture, 0.05f, 0.06f, (struct colour){0.3f, 0.42f, 0.28f});
    band(picture, 0.4f, 1.3f, (struct colour){0.25f, 0.45f, 0.6f});
    band(picture, -0.05f, 0.12f, stone);
    for (int i = -1; i <= 2; i++) {
        float x = 0.75f * (float)i - 0.38f;
        picture_rectangle(picture, &picture->frame, x - 0.09f, 0.1f, x + 0.09f, 0.75f, stone);
        struct point arch[] = {
            {x + 0.09f, 0.4f}, {x + 0.2f, 0.2f}, {x + 0.38f, 0.13f}, {x + 0.56f, 0.2f}, {x + 0.66f, 0.4f}};
        picture_stroke(picture, &picture->frame, arch, 5, 0.1f, stone);
    }
}

static void city(struct picture *picture)
{
    for (int row = 0; row < 2; row++)
        for (float x = -1.2f; x < 1.1f;) {
            float wide = picture_between(picture, 0.18f, 0.36f),
                  top = picture_between(picture, -0.85f, 0) + 0.45f * (float)row;
            float grey = picture_between(picture, 0.55f, 0.75f) - 0.25f * (float)row;
            struct colour wall = {grey, grey * 0.97f, grey * 1.02f};
            picture_rectangle(picture, &picture->frame, x, top, x + wide, 1.3f, wall);
            for (float y = top + 0.08f; y < 0.8f; y += 0.15f)
                for (float w = x + 0.04f; w < x + wide - 0.06f; w += 0.1f)
                    picture_rectangle(picture, &picture->frame, w, y, w + 0.05f, y + 0.08f,
                                      picture_shade(wall, dice_chance(&picture->dice, 0.4f) ? 0.6f : -0.4f));
            x += wide;
        }
    band(picture, 0.82f, 1.3f, (struct colour){0.28f, 0.28f, 0.3f});
}

static void desert(struct picture *picture)
{
    struct colour sand = {0.85f, 0.63f, 0.36f};
    skyline(picture, 0.05f, 0.08f, picture_shade(sand, -0.25f));
    skyline(picture, 0.4f, 0.12f, sand);
    skyline(picture, 0.75f, 0.1f, picture_shade(sand, 0.12f));
    if (dice_chance(&picture->dice, 0.5f)) {
        float x = picture_between(picture, -0.7f, 0.7f);
        struct point arm[] = {{x, 0.4f}, {x + 0.18f, 0.35f}, {x + 0.18f, 0.15f}};
        struct colour cactus = {0.25f, 0.42f, 0.22f};
        picture_line(picture, &picture->frame, (struct point){x, 0}, (struct point){x, 0.75f}, 0.12f, cactus);
        picture_stroke(picture, &picture->frame, arm, 3, 0.08f, cactus);
    }
}

static void field(struct picture *picture)
{
    struct colour crop =
        dice_chance(&picture->dice, 0.5f) ? (struct colour){0.4f, 0.6f, 0.22f} : (struct colour){0.78f, 0.7f, 0.3f};
    float x = picture_between(picture, -0.4f, 0.4f);
    skyline(picture, 0, 0.05f, (struct colour){0.2f, 0.36f, 0.2f});
    band(picture, 0.1f, 1.3f, crop);
    for (int i = -5; i <= 5; i++)
        picture_line(picture, &picture->frame, (struct point){x + 0.07f * (float)i, 0.12f},
                     (struct point){x + 0.55f * (float)i, 1.3f}, 0.07f, picture_shade(crop, -0.25f));
}

static void mountain(struct picture *picture)
{
    for (int row = 0; row < 3; row++) {
        float x = picture_between(picture, -0.7f, 0.7f), top = -0.8f + 0.4f * (float)row,
              grey = 0.6f - 0.14f * (float)row;
        struct point peak[] = {
            {x - 1.2f, 1}, {x - 0.35f, top + 0.45f}, {x, top}, {x + 0.4f, top + 0.5f}, {x + 1.3f, 1}};
        struct point snow[] = {{x - 0.24f, top + 0.3f},
                               {x, top},
                               {x + 0.26f, top + 0.32f},
                               {x + 0.08f, top + 0.24f},
                               {x - 0.06f, top + 0.36f}};
        picture_polygon(picture, &picture->frame, peak, 5, (struct colour){grey, grey, grey + 0.06f});
        if (row < 2)
            picture_polygon(picture, &picture->frame, snow, 5, (struct colour){0.95f, 0.96f, 0.98f});
    }
    skyline(picture, 0.65f, 0.07f, (struct colour){0.2f, 0.34f, 0.2f});
}

static void road(struct picture *picture)
{
    float x = picture_between(picture, -0.35f, 0.35f), bend = picture_between(picture, -0.3f, 0.3f);
    skyline(picture, -0.05f, 0.05f, (struct colour){0.45f, 0.5f, 0.3f});
    struct point lane[] = {{x, 0},        {x + 0.05f, 0}, {x + bend + 0.35f, 0.5f},
                           {0.95f, 1.3f}, {-0.95f, 1.3f}, {x + bend - 0.25f, 0.5f}};
    picture_polygon(picture, &picture->frame, lane, 6, (struct colour){0.33f, 0.33f, 0.36f});
    struct point dashes[] = {{x + 0.02f, 0.05f}, {x + bend + 0.05f, 0.5f}, {0, 1.3f}};
    picture_stroke(picture, &picture->frame, dashes, 3, 0.05f, (struct colour){0.95f, 0.85f, 0.4f});
}

static void waterfall(struct picture *picture)
{
    skyline(picture, -0.55f, 0.1f, (struct colour){0.3f, 0.4f, 0.25f});
    skyline(picture, -0.35f, 0.06f, (struct colour){0.36f, 0.33f, 0.3f});
    float x = picture_between(picture, -0.3f, 0.3f);
    for (int i = -3; i <= 3; i++) {
        float shade = picture_between(picture, -0.2f, 0.5f);
        const struct paint *water = picture_ink(picture, picture_shade((struct colour){0.75f, 0.85f, 0.92f}, shade));
        float aside = picture_between(picture, -0.04f, 0.04f);
        canvas_line(&picture->canvas, &picture->frame, (struct point){x + 0.08f * (float)i, -0.45f},
                    (struct point){x + 0.1f * (float)i + aside, 0.7f}, 0.1f, water);
    }
    band(picture, 0.68f, 1.3f, (struct colour){0.3f, 0.52f, 0.6f});
    picture_ellipse(picture, &picture->frame, x, 0.7f, 0.5f, 0.1f, (struct colour){0.92f, 0.95f, 0.97f});
}

void suite_draw_sun397(struct picture *picture, int label)
{
    static void (*const scenes[])(struct picture *) = {beach, bedroom,  bridge, city,     desert,
                                                       field, mountain, road,   waterfall};
    static const struct colour skies[] = {{0.5f, 0.68f, 0.88f}, {0.72f, 0.74f, 0.76f}, {0.9f, 0.7f, 0.55f}};
    float period = picture_between(picture, 16, 30);
    picture_backdrop(picture, skies[dice_below(&picture->dice, 3)], period);
    struct frame whole = picture->frame;
    float wide = dice_chance(&picture->dice, 0.5f) ? 1.1f : -1.1f;
    picture->frame = frame_place(whole, 0, picture_between(picture, -0.15f, 0.15f), wide, 1.1f, 0);
    scenes[label](picture);
    picture->frame = whole;
}

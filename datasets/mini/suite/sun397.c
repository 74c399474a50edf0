/* Scenes in layers, as photographs of places have them. */
#include "datasets/mini/suite/picture.h"

const char *const sun397_names[] = {"beach", "bedroom",  "bridge", "city",     "desert",
                                    "field", "mountain", "road",   "waterfall"};

static void band(struct picture *picture, float top, float bottom, struct colour colour)
{
    canvas_rectangle(&picture->canvas, &picture->frame, -1.3f, top, 1.3f, bottom, picture_ink(picture, colour));
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
    canvas_polygon(&picture->canvas, &picture->frame, points, 20, picture_ink(picture, colour));
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
    canvas_polygon(&picture->canvas, &picture->frame, shore, 5,
                   picture_ink(picture, (struct colour){0.88f, 0.78f, 0.58f}));
    if (dice_chance(&picture->dice, 0.5f)) {
        struct point palm[] = {{0.7f, 1.1f}, {0.6f, 0.3f}, {0.45f, -0.35f}};
        canvas_stroke(&picture->canvas, &picture->frame, palm, 3, 0.08f,
                      picture_ink(picture, (struct colour){0.4f, 0.28f, 0.18f}));
        for (int i = 0; i < 5; i++) {
            struct point tip = {0.45f + 0.4f * turn_cosine(0.1f * (float)i + 0.05f),
                                -0.35f + 0.35f * turn_sine(0.1f * (float)i + 0.55f)};
            canvas_line(&picture->canvas, &picture->frame, palm[2], tip, 0.07f,
                        picture_ink(picture, (struct colour){0.2f, 0.45f, 0.2f}));
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
    canvas_polygon(&picture->canvas, &picture->frame, floor, 4,
                   picture_ink(picture, (struct colour){0.5f, 0.36f, 0.24f}));
    canvas_rectangle(&picture->canvas, &picture->frame, -0.85f, -0.75f, -0.35f, -0.15f,
                     picture_ink(picture, (struct colour){0.75f, 0.87f, 0.95f}));
    canvas_rectangle(&picture->canvas, &picture->frame, -0.05f, -0.3f, 0.95f, 0.3f,
                     picture_ink(picture, (struct colour){0.42f, 0.28f, 0.18f}));
    struct point mattress[] = {{0, 0.15f}, {0.95f, 0.15f}, {0.75f, 0.85f}, {-0.6f, 0.85f}};
    canvas_polygon(&picture->canvas, &picture->frame, mattress, 4, picture_ink(picture, cover));
    for (int i = 0; i < 2; i++)
        canvas_ellipse(&picture->canvas, &picture->frame, 0.25f + 0.45f * (float)i, 0.18f, 0.2f, 0.1f,
                       picture_ink(picture, (struct colour){0.95f, 0.95f, 0.95f}));
}

static void bridge(struct picture *picture)
{
    struct colour stone = {0.5f, 0.45f, 0.4f};
    skyline(picture, 0.05f, 0.06f, (struct colour){0.3f, 0.42f, 0.28f});
    band(picture, 0.4f, 1.3f, (struct colour){0.25f, 0.45f, 0.6f});
    band(picture, -0.05f, 0.12f, stone);
    for (int i = -1; i <= 2; i++) {
        float x = 0.75f * (float)i - 0.38f;
        canvas_rectangle(&picture->canvas, &picture->frame, x - 0.09f, 0.1f, x + 0.09f, 0.75f,
                         picture_ink(picture, stone));
        struct point arch[] = {
            {x + 0.09f, 0.4f}, {x + 0.2f, 0.2f}, {x + 0.38f, 0.13f}, {x + 0.56f, 0.2f}, {x + 0.66f, 0.4f}};
        canvas_stroke(&picture->canvas, &picture->frame, arch, 5, 0.1f, picture_ink(picture, stone));
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
            canvas_rectangle(&picture->canvas, &picture->frame, x, top, x + wide, 1.3f, picture_ink(picture, wall));
            for (float y = top + 0.08f; y < 0.8f; y += 0.15f)
                for (float w = x + 0.04f; w < x + wide - 0.06f; w += 0.1f)
                    canvas_rectangle(
                        &picture->canvas, &picture->frame, w, y, w + 0.05f, y + 0.08f,
                        picture_ink(picture, picture_shade(wall, dice_chance(&picture->dice, 0.4f) ? 0.6f : -0.4f)));
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
        struct colour green = {0.25f, 0.42f, 0.22f};
        canvas_line(&picture->canvas, &picture->frame, (struct point){x, 0}, (struct point){x, 0.75f}, 0.12f,
                    picture_ink(picture, green));
        canvas_stroke(&picture->canvas, &picture->frame, arm, 3, 0.08f, picture_ink(picture, green));
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
        canvas_line(&picture->canvas, &picture->frame, (struct point){x + 0.07f * (float)i, 0.12f},
                    (struct point){x + 0.55f * (float)i, 1.3f}, 0.07f,
                    picture_ink(picture, picture_shade(crop, -0.25f)));
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
        canvas_polygon(&picture->canvas, &picture->frame, peak, 5,
                       picture_ink(picture, (struct colour){grey, grey, grey + 0.06f}));
        if (row < 2)
            canvas_polygon(&picture->canvas, &picture->frame, snow, 5,
                           picture_ink(picture, (struct colour){0.95f, 0.96f, 0.98f}));
    }
    skyline(picture, 0.65f, 0.07f, (struct colour){0.2f, 0.34f, 0.2f});
}

static void road(struct picture *picture)
{
    float x = picture_between(picture, -0.35f, 0.35f), bend = picture_between(picture, -0.3f, 0.3f);
    skyline(picture, -0.05f, 0.05f, (struct colour){0.45f, 0.5f, 0.3f});
    struct point lane[] = {{x, 0},        {x + 0.05f, 0}, {x + bend + 0.35f, 0.5f},
                           {0.95f, 1.3f}, {-0.95f, 1.3f}, {x + bend - 0.25f, 0.5f}};
    canvas_polygon(&picture->canvas, &picture->frame, lane, 6,
                   picture_ink(picture, (struct colour){0.33f, 0.33f, 0.36f}));
    struct point dashes[] = {{x + 0.02f, 0.05f}, {x + bend + 0.05f, 0.5f}, {0, 1.3f}};
    canvas_stroke(&picture->canvas, &picture->frame, dashes, 3, 0.05f,
                  picture_ink(picture, (struct colour){0.95f, 0.85f, 0.4f}));
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
    canvas_ellipse(&picture->canvas, &picture->frame, x, 0.7f, 0.5f, 0.1f,
                   picture_ink(picture, (struct colour){0.92f, 0.95f, 0.97f}));
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

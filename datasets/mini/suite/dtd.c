/* Textures as one would photograph them: made of single strokes and patches, uneven, warped and lit from one side. */
#include "datasets/mini/suite/picture.h"

const char *const dtd_names[] = {"chequered",   "cracked",   "crosshatched", "dotted", "grid",
                                 "honeycombed", "spiralled", "striped",      "woven",  "zigzagged"};

struct weave {
    struct picture *picture;
    struct frame frame;
    struct colour ground, figure;
    float step; /* spacing in frame units */
};

static float uneven(struct weave *weave)
{
    float wobble = weave->picture->difficulty->wobble;
    return picture_between(weave->picture, -wobble, wobble);
}

/* A line that is never quite straight. */
static void thread(struct weave *weave, struct point from, struct point to, float width)
{
    struct point points[7];
    for (int i = 0; i < 7; i++) {
        float share = (float)i / 6;
        points[i] = (struct point){from.x + (to.x - from.x) * share + uneven(weave),
                                   from.y + (to.y - from.y) * share + uneven(weave)};
    }
    picture_stroke(weave->picture, &weave->frame, points, 7, width, weave->figure);
}

static void chequered(struct weave *weave)
{
    int row = 0;
    for (float y = -1.5f; y < 1.5f; y += weave->step, row++)
        for (float x = -1.5f + (row % 2 == 0 ? weave->step : 0); x < 1.5f; x += 2 * weave->step) {
            struct point tile[] = {{x + uneven(weave), y + uneven(weave)},
                                   {x + weave->step + uneven(weave), y + uneven(weave)},
                                   {x + weave->step + uneven(weave), y + weave->step + uneven(weave)},
                                   {x + uneven(weave), y + weave->step + uneven(weave)}};
            picture_polygon(weave->picture, &weave->frame, tile, 4, weave->figure);
        }
}

static void crack(struct weave *weave, float x, float y, float heading, int steps, float width)
{
    struct dice *dice = &weave->picture->dice;
    struct point points[14];
    for (int i = 0; i < steps; i++) {
        points[i] = (struct point){x, y};
        heading += 0.07f * dice_bell(dice);
        x += 0.22f * turn_cosine(heading);
        y += 0.22f * turn_sine(heading);
        if (steps > 6 && dice_chance(dice, 0.35f))
            crack(weave, x, y, heading + (dice_chance(dice, 0.5f) ? 0.17f : -0.17f), 6, width * 0.6f);
    }
    picture_stroke(weave->picture, &weave->frame, points, (size_t)steps, width, weave->figure);
}

static void cracked(struct weave *weave)
{
    int count = 2 + dice_below(&weave->picture->dice, 3);
    for (int i = 0; i < count; i++) {
        float width = picture_between(weave->picture, 0.05f, 0.09f);
        float heading = picture_between(weave->picture, -0.15f, 0.15f);
        float y = picture_between(weave->picture, -1, 1);
        crack(weave, picture_between(weave->picture, -1.1f, 0.3f), y, heading, 14, width);
    }
}

static void parallel(struct weave *weave, float slope, float width)
{
    for (float y = -2.6f; y < 2.6f; y += weave->step)
        thread(weave, (struct point){-1.5f, y - slope * 1.5f}, (struct point){1.5f, y + slope * 1.5f}, width);
}

static void crosshatched(struct weave *weave)
{
    weave->step *= 0.8f;
    parallel(weave, 0.9f, weave->step * 0.25f);
    parallel(weave, -0.9f, weave->step * 0.25f);
}

static void dotted(struct weave *weave)
{
    int row = 0;
    for (float y = -1.5f; y < 1.5f; y += weave->step * 0.9f, row++)
        for (float x = -1.5f + (row % 2 == 0 ? weave->step / 2 : 0); x < 1.5f; x += weave->step) {
            float radius = weave->step * picture_between(weave->picture, 0.22f, 0.34f);
            const struct paint *ink = picture_ink(weave->picture, weave->figure);
            float down = uneven(weave), aside = uneven(weave);
            canvas_ellipse(&weave->picture->canvas, &weave->frame, x + aside, y + down, radius, radius * 0.9f, ink);
        }
}

static void grid(struct weave *weave)
{
    for (float at = -1.5f; at < 1.5f; at += weave->step) {
        thread(weave, (struct point){-1.5f, at}, (struct point){1.5f, at}, weave->step * 0.16f);
        thread(weave, (struct point){at, -1.5f}, (struct point){at, 1.5f}, weave->step * 0.16f);
    }
}

static void honeycombed(struct weave *weave)
{
    float step = weave->step * 1.1f;
    int row = 0;
    for (float y = -1.5f; y < 1.5f; y += step * 0.866f, row++)
        for (float x = -1.5f + (row % 2 == 0 ? step / 2 : 0); x < 1.5f; x += step) {
            struct point cell[7];
            for (int i = 0; i < 7; i++)
                cell[i] = (struct point){x + step * 0.57f * turn_cosine((float)i / 6 + 0.25f) + uneven(weave) * 0.5f,
                                         y + step * 0.57f * turn_sine((float)i / 6 + 0.25f) + uneven(weave) * 0.5f};
            picture_stroke(weave->picture, &weave->frame, cell, 7, step * 0.12f, weave->figure);
        }
}

static void spiralled(struct weave *weave)
{
    struct point points[CANVAS_POINTS];
    float radius = 0.02f, start = picture_between(weave->picture, 0, 1);
    float x = picture_between(weave->picture, -0.3f, 0.3f), y = picture_between(weave->picture, -0.3f, 0.3f);
    for (int i = 0; i < CANVAS_POINTS; i++) {
        float turns = start + (float)i / 14;
        points[i] = (struct point){x + radius * turn_cosine(turns) + uneven(weave) * 0.4f,
                                   y + radius * turn_sine(turns) + uneven(weave) * 0.4f};
        radius += weave->step / 14;
    }
    picture_stroke(weave->picture, &weave->frame, points, CANVAS_POINTS, weave->step * 0.4f, weave->figure);
}

static void striped(struct weave *weave)
{
    parallel(weave, 0, weave->step * 0.5f);
}

static void woven(struct weave *weave)
{
    int row = 0;
    float step = weave->step * 0.9f;
    for (float y = -1.5f; y < 1.5f; y += step, row++) {
        int column = row;
        for (float x = -1.5f; x < 1.5f; x += step, column++) {
            float wide = column % 2 == 0 ? 0.52f : 0.3f, high = column % 2 == 0 ? 0.3f : 0.52f;
            struct colour shade = picture_shade(weave->figure, column % 2 == 0 ? 0.1f : -0.3f);
            const struct paint *ink = picture_ink(weave->picture, shade);
            float down = uneven(weave), aside = uneven(weave);
            canvas_ellipse(&weave->picture->canvas, &weave->frame, x + aside, y + down, step * wide, step * high, ink);
        }
    }
}

static void zigzagged(struct weave *weave)
{
    float tall = weave->step * 0.5f;
    for (float y = -1.6f; y < 1.6f; y += weave->step * 1.1f) {
        struct point points[20];
        for (int i = 0; i < 20; i++)
            points[i] = (struct point){-1.6f + 0.17f * (float)i + uneven(weave) * 0.5f,
                                       y + (i % 2 == 0 ? tall : -tall) * 0.8f + uneven(weave) * 0.5f};
        picture_stroke(weave->picture, &weave->frame, points, 20, weave->step * 0.35f, weave->figure);
    }
}

void suite_draw_dtd(struct picture *picture, int label)
{
    static void (*const textures[])(struct weave *) = {chequered,   cracked,   crosshatched, dotted, grid,
                                                       honeycombed, spiralled, striped,      woven,  zigzagged};
    struct dice *dice = &picture->dice;
    struct weave weave = {.picture = picture, .step = dice_between(dice, 0.26f, 0.44f)};
    weave.ground = colour_random(dice);
    do {
        weave.figure = colour_random(dice);
    } while (colour_distance(weave.ground, weave.figure) < 0.4f);
    picture_backdrop(picture, weave.ground, dice_between(dice, 6, 20));
    float squeeze = dice_between(dice, 0.8f, 1.15f);
    weave.frame = frame_place(picture->frame, 0, 0, squeeze, 1 / squeeze, dice_between(dice, 0, 1));
    textures[label](&weave);
    /* light from one side */
    struct paint light = {.pattern = PATTERN_SOLID, .first = {0, 0, 0}, .opacity = 0.12f};
    for (int i = 0; i < 3; i++)
        canvas_rectangle(&picture->canvas, &weave.frame, -2, 0.35f * (float)i, 2, 2, &light);
}

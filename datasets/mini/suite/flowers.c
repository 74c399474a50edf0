/* Flowers among leaves, slightly from the side; petals are outlines, lighter towards their tips. */
#include "datasets/mini/suite/picture.h"

const char *const flowers_names[] = {"bluebell", "daisy", "lily", "poppy", "rose", "sunflower", "tulip", "violet"};
enum { BLUEBELL, DAISY, LILY, POPPY, ROSE, SUNFLOWER, TULIP, VIOLET };

/* A petal points up from (0, 0); its length is 1. */
static const struct part round_petal[] = {FILL(ROLE_BODY, {0, 0}, {-0.45f, -0.4f}, {-0.5f, -0.75f}, {-0.2f, -1},
                                               {0, -0.9f}, {0.2f, -1}, {0.5f, -0.75f}, {0.45f, -0.4f})};
static const struct part thin_petal[] = {
    FILL(ROLE_BODY, {0, 0}, {-0.12f, -0.4f}, {-0.14f, -0.85f}, {0, -1}, {0.14f, -0.85f}, {0.12f, -0.4f})};
static const struct part pointed_petal[] = {
    FILL(ROLE_BODY, {0, 0}, {-0.22f, -0.35f}, {-0.2f, -0.65f}, {0, -1}, {0.2f, -0.65f}, {0.22f, -0.35f})};

static const struct part bell_petal[] = {FILL(ROLE_BODY, {-0.15f, 0}, {0.15f, 0}, {0.3f, 0.6f}, {0.5f, 0.85f},
                                              {0.2f, 0.8f}, {0, 1}, {-0.2f, 0.8f}, {-0.5f, 0.85f}, {-0.3f, 0.6f})};

struct bloom {
    const struct part *petal;
    int petals, rounds;
    float heart;
    struct colour colours[2], middle;
};

static const struct bloom blooms[] = {
    [DAISY] = {thin_petal, 15, 1, 0.24f, {{0.95f, 0.95f, 0.93f}, {0.93f, 0.85f, 0.9f}}, {0.95f, 0.78f, 0.15f}},
    [LILY] = {pointed_petal, 6, 1, 0.1f, {{0.95f, 0.6f, 0.2f}, {0.96f, 0.93f, 0.88f}}, {0.7f, 0.75f, 0.3f}},
    [POPPY] = {round_petal, 4, 1, 0.2f, {{0.85f, 0.15f, 0.1f}, {0.92f, 0.35f, 0.15f}}, {0.08f, 0.06f, 0.1f}},
    [ROSE] = {round_petal, 7, 4, 0.08f, {{0.8f, 0.12f, 0.25f}, {0.92f, 0.55f, 0.65f}}, {0.5f, 0.05f, 0.15f}},
    [SUNFLOWER] = {pointed_petal, 17, 2, 0.45f, {{0.95f, 0.8f, 0.15f}, {0.92f, 0.7f, 0.12f}}, {0.32f, 0.2f, 0.1f}},
    [VIOLET] = {round_petal, 5, 1, 0.1f, {{0.5f, 0.25f, 0.75f}, {0.4f, 0.3f, 0.8f}}, {0.95f, 0.85f, 0.3f}},
};

static void petal(struct picture *picture, const struct frame *frame, const struct part *outline, struct colour colour)
{
    struct paint paints[ROLES] = {paint_solid(colour_jitter(&picture->dice, colour, 0.05f))};
    struct figure figure = {outline, 1};
    picture_figure(picture, frame, &figure, paints);
    picture_line(picture, frame, (struct point){0, -0.2f}, (struct point){0, -0.75f}, 0.05f,
                 picture_shade(colour, -0.2f));
}

static void draw_bloom(struct picture *picture, const struct frame *frame, const struct bloom *bloom)
{
    struct colour colour = bloom->colours[dice_chance(&picture->dice, 0.35f) ? 1 : 0];
    float start = picture_between(picture, 0, 1);
    for (int round = 0; round < bloom->rounds; round++) {
        float length = 0.95f - 0.2f * (float)round;
        for (int i = 0; i < bloom->petals; i++) {
            float turns = start + ((float)i + 0.5f * (float)round) / (float)bloom->petals;
            struct frame place = frame_place(*frame, 0, 0, length, length, turns);
            petal(picture, &place, bloom->petal, picture_shade(colour, -0.13f * (float)round + 0.05f));
        }
    }
    picture_ellipse(picture, frame, 0, 0, bloom->heart, bloom->heart, bloom->middle);
    for (int i = 0; i < 6 && bloom->heart > 0.15f; i++)
        picture_ellipse(picture, frame, bloom->heart * 0.6f * turn_cosine((float)i / 6),
                        bloom->heart * 0.6f * turn_sine((float)i / 6), 0.05f, 0.05f,
                        picture_shade(bloom->middle, -0.3f));
}

static void stalk(struct picture *picture, const struct frame *frame, float top)
{
    struct colour green = {0.25f, 0.5f, 0.2f};
    struct point line[] = {{0, top}, {0.06f, 0.6f}, {-0.05f, 1.5f}};
    picture_stroke(picture, frame, line, 3, 0.09f, green);
    struct point blade[] = {{-0.03f, 1.2f}, {-0.55f, 0.2f}, {-0.25f, 0.7f}};
    picture_polygon(picture, frame, blade, 3, green);
}

static void draw_tulip(struct picture *picture, const struct frame *frame)
{
    static const struct colour colours[] = {{0.85f, 0.2f, 0.3f}, {0.95f, 0.8f, 0.25f}, {0.9f, 0.5f, 0.65f}};
    struct colour colour = colours[dice_below(&picture->dice, 3)];
    stalk(picture, frame, 0.1f);
    struct frame back = frame_place(*frame, 0, 0.2f, 0.9f, 1, 0);
    petal(picture, &back, pointed_petal, picture_shade(colour, -0.25f));
    for (int side = -1; side <= 1; side += 2) {
        struct frame place = frame_place(*frame, 0, 0.2f, 1.5f, 1, 0.04f * (float)side);
        petal(picture, &place, pointed_petal, colour);
    }
}

static void draw_bluebell(struct picture *picture, const struct frame *frame)
{
    struct colour colour = {0.35f, 0.4f, 0.85f};
    struct point stem[] = {{-0.3f, 1.5f}, {-0.25f, 0}, {0, -0.65f}, {0.45f, -0.75f}};
    picture_stroke(picture, frame, stem, 4, 0.07f, (struct colour){0.25f, 0.5f, 0.2f});
    struct paint paints[ROLES] = {paint_solid(colour_jitter(&picture->dice, colour, 0.1f))};
    for (int i = 0; i < 5; i++) {
        struct frame place = frame_place(*frame, 0.5f - 0.2f * (float)i, -0.75f + 0.22f * (float)(i * i) * 0.45f, 0.42f,
                                         0.42f, picture_between(picture, -0.04f, 0.04f));
        picture_figure(picture, &place, &(struct figure){bell_petal, 1}, paints);
    }
}

static void leaves(struct picture *picture)
{
    for (int i = 0; i < 7; i++) {
        float turns = picture_between(picture, 0, 1), high = picture_between(picture, 0.5f, 0.9f);
        float y = picture_between(picture, -1, 1), x = picture_between(picture, -1, 1);
        struct frame place = frame_place(picture->frame, x, y, 0.5f, high, turns);
        float clutter = picture->difficulty->clutter;
        struct colour leaf = colour_jitter(&picture->dice, (struct colour){0.22f, 0.42f, 0.18f}, 0.25f * clutter);
        petal(picture, &place, pointed_petal, leaf);
    }
}

void suite_draw_flowers(struct picture *picture, int label)
{
    picture_backdrop(picture, (struct colour){0.2f, 0.34f, 0.16f}, picture_between(picture, 8, 18));
    leaves(picture);
    struct frame frame = picture_subject(picture, 0.65f, 0.9f);
    if (label == TULIP) {
        draw_tulip(picture, &frame);
    } else if (label == BLUEBELL) {
        draw_bluebell(picture, &frame);
    } else {
        struct frame slanted = frame_place(frame, 0, -0.1f, 1, picture_between(picture, 0.75f, 1), 0);
        stalk(picture, &frame, 0);
        draw_bloom(picture, &slanted, &blooms[label]);
    }
}

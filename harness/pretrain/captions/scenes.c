/* Scenes with a horizon: sky above, land or water below. */
#include "harness/pretrain/captions/sketch.h"

static void land(struct sketch *sketch, float top, float bottom, struct colour colour)
{
    struct paint paint = sketch_solid(sketch, colour);
    canvas_rectangle(&sketch->canvas, &sketch->frame, -1.2f, top, 1.2f, bottom, &paint);
}

static void ridge(struct sketch *sketch, float base, float height, struct colour colour, bool snow)
{
    struct dice *dice = &sketch->dice;
    int peaks = 2 + dice_below(dice, 2);
    for (int i = 0; i < peaks; i++) {
        float x = -1 + 2 * ((float)i + dice_between(dice, 0.2f, 0.8f)) / (float)peaks,
              tall = height * dice_between(dice, 0.7f, 1.1f);
        float wide = tall * dice_between(dice, 0.6f, 0.9f);
        struct paint rock = sketch_solid(sketch, colour),
                     white = sketch_solid(sketch, (struct colour){0.96f, 0.96f, 0.98f});
        canvas_polygon(&sketch->canvas, &sketch->frame,
                       (struct point[]){{x - wide, base}, {x, base - tall}, {x + wide, base}}, 3, &rock);
        if (snow)
            canvas_polygon(&sketch->canvas, &sketch->frame,
                           (struct point[]){{x - wide * 0.3f, base - tall * 0.7f},
                                            {x, base - tall},
                                            {x + wide * 0.3f, base - tall * 0.7f}},
                           3, &white);
    }
}

static void tree(struct sketch *sketch, float x, float base, float height, struct colour colour)
{
    struct paint trunk = sketch_solid(sketch, (struct colour){0.35f, 0.22f, 0.12f}),
                 crown = sketch_solid(sketch, colour);
    canvas_line(&sketch->canvas, &sketch->frame, (struct point){x, base}, (struct point){x, base - height}, 0.08f,
                &trunk);
    canvas_ellipse(&sketch->canvas, &sketch->frame, x, base - height, height * 0.35f, height * 0.45f, &crown);
}

static void beach(struct sketch *sketch)
{
    land(sketch, 0, 0.45f, (struct colour){0.15f, 0.5f, 0.75f});
    land(sketch, 0.4f, 0.48f, (struct colour){0.95f, 0.97f, 0.98f});
    land(sketch, 0.45f, 1.2f, (struct colour){0.93f, 0.83f, 0.58f});
}

static void mountain(struct sketch *sketch)
{
    ridge(sketch, 0.5f, 1.15f, (struct colour){0.42f, 0.4f, 0.42f}, dice_chance(&sketch->dice, 0.7f));
    land(sketch, 0.5f, 1.2f, (struct colour){0.3f, 0.5f, 0.25f});
}

static void forest(struct sketch *sketch)
{
    land(sketch, 0.3f, 1.2f, (struct colour){0.2f, 0.35f, 0.15f});
    for (int i = 0; i < 9; i++)
        tree(sketch, dice_between(&sketch->dice, -1, 1), 0.4f + 0.06f * (float)i, dice_between(&sketch->dice, 0.7f, 1),
             (struct colour){0.1f, 0.42f, 0.15f});
}

static void city(struct sketch *sketch)
{
    struct dice *dice = &sketch->dice;
    land(sketch, 0.7f, 1.2f, (struct colour){0.3f, 0.3f, 0.32f});
    for (float x = -1; x < 1;) {
        float wide = dice_between(dice, 0.2f, 0.4f), top = dice_between(dice, -0.8f, 0.2f),
              grey = dice_between(dice, 0.25f, 0.6f);
        struct paint wall = sketch_solid(sketch, (struct colour){grey, grey, grey + 0.05f});
        struct paint windows = {
            .pattern = PATTERN_GRID, .first = {0.95f, 0.9f, 0.5f}, .second = wall.first, .period = 5, .share = 0.95f};
        canvas_rectangle(&sketch->canvas, &sketch->frame, x, top, x + wide, 0.7f, &wall);
        canvas_rectangle(&sketch->canvas, &sketch->frame, x + 0.04f, top + 0.06f, x + wide - 0.04f, 0.65f, &windows);
        x += wide + 0.02f;
    }
}

static void desert(struct sketch *sketch)
{
    struct paint dune = sketch_solid(sketch, (struct colour){0.88f, 0.68f, 0.38f});
    struct paint shade = sketch_solid(sketch, (struct colour){0.75f, 0.52f, 0.27f});
    float x = dice_between(&sketch->dice, -0.5f, 0.5f);
    canvas_ellipse(&sketch->canvas, &sketch->frame, x, 1, 1.5f, 0.9f, &shade);
    canvas_ellipse(&sketch->canvas, &sketch->frame, x - 0.8f, 1.2f, 1.4f, 0.9f, &dune);
}

static void field(struct sketch *sketch)
{
    struct paint grass = {
        .pattern = PATTERN_STRIPES, .first = {0.4f, 0.65f, 0.2f}, .second = {0.5f, 0.74f, 0.28f}, .period = 9};
    paint_turn(&grass, dice_between(&sketch->dice, 0.15f, 0.35f));
    canvas_rectangle(&sketch->canvas, &sketch->frame, -1.2f, dice_between(&sketch->dice, -0.1f, 0.2f), 1.2f, 1.2f,
                     &grass);
}

static void ocean(struct sketch *sketch)
{
    struct paint waves = {
        .pattern = PATTERN_WAVES, .first = {0.08f, 0.3f, 0.6f}, .second = {0.15f, 0.42f, 0.7f}, .period = 7};
    paint_turn(&waves, 0.25f);
    canvas_rectangle(&sketch->canvas, &sketch->frame, -1.2f, dice_between(&sketch->dice, -0.2f, 0.1f), 1.2f, 1.2f,
                     &waves);
}

static void snowy_field(struct sketch *sketch)
{
    land(sketch, 0.1f, 1.2f, (struct colour){0.94f, 0.95f, 0.98f});
    for (int i = 0; i < 4; i++)
        tree(sketch, dice_between(&sketch->dice, -0.9f, 0.9f), 0.4f, 0.5f, (struct colour){0.85f, 0.9f, 0.92f});
}

static void road(struct sketch *sketch)
{
    land(sketch, 0, 1.2f, (struct colour){0.35f, 0.55f, 0.25f});
    float x = dice_between(&sketch->dice, -0.2f, 0.2f);
    struct paint asphalt = sketch_solid(sketch, (struct colour){0.3f, 0.3f, 0.32f}),
                 line = paint_solid((struct colour){1, 1, 0.9f});
    canvas_polygon(&sketch->canvas, &sketch->frame,
                   (struct point[]){{x - 0.06f, 0}, {x + 0.06f, 0}, {0.8f, 1.1f}, {-0.8f, 1.1f}}, 4, &asphalt);
    for (int i = 0; i < 3; i++)
        canvas_line(&sketch->canvas, &sketch->frame, (struct point){x * (1 - 0.3f * (float)i), 0.2f + 0.3f * (float)i},
                    (struct point){x * (0.9f - 0.3f * (float)i), 0.32f + 0.3f * (float)i}, 0.05f + 0.02f * (float)i,
                    &line);
}

static void bridge(struct sketch *sketch)
{
    land(sketch, 0.35f, 1.2f, (struct colour){0.2f, 0.45f, 0.7f});
    struct paint iron = sketch_solid(sketch, dice_chance(&sketch->dice, 0.5f) ? (struct colour){0.7f, 0.25f, 0.2f}
                                                                              : (struct colour){0.35f, 0.35f, 0.38f});
    canvas_rectangle(&sketch->canvas, &sketch->frame, -1.2f, 0.15f, 1.2f, 0.27f, &iron);
    for (int side = -1; side <= 1; side += 2) {
        canvas_rectangle(&sketch->canvas, &sketch->frame, 0.55f * (float)side - 0.06f, -0.7f,
                         0.55f * (float)side + 0.06f, 0.7f, &iron);
        canvas_line(&sketch->canvas, &sketch->frame, (struct point){0.55f * (float)side, -0.65f},
                    (struct point){1.2f * (float)side, 0.15f}, 0.05f, &iron);
        canvas_line(&sketch->canvas, &sketch->frame, (struct point){0.55f * (float)side, -0.65f},
                    (struct point){0, 0.1f}, 0.05f, &iron);
    }
}

static void waterfall(struct sketch *sketch)
{
    land(sketch, -0.5f, 1.2f, (struct colour){0.35f, 0.32f, 0.28f});
    struct paint water = {
        .pattern = PATTERN_STRIPES, .first = {0.75f, 0.88f, 0.95f}, .second = {0.95f, 0.97f, 1}, .period = 5};
    float wide = dice_between(&sketch->dice, 0.25f, 0.45f);
    canvas_rectangle(&sketch->canvas, &sketch->frame, -wide, -0.5f, wide, 0.8f, &water);
    land(sketch, 0.7f, 1.2f, (struct colour){0.3f, 0.6f, 0.75f});
}

static void lake(struct sketch *sketch)
{
    ridge(sketch, 0.1f, 0.5f, (struct colour){0.25f, 0.4f, 0.3f}, false);
    land(sketch, 0.1f, 1.2f, (struct colour){0.3f, 0.5f, 0.25f});
    struct paint water = sketch_solid(sketch, (struct colour){0.2f, 0.5f, 0.75f});
    canvas_ellipse(&sketch->canvas, &sketch->frame, 0, 0.55f, 0.85f, 0.32f, &water);
}

static void bedroom(struct sketch *sketch)
{
    struct tint wall = *sketch_tint(sketch);
    land(sketch, -1.2f, 0.4f, colour_mix(wall.colour, (struct colour){1, 1, 1}, 0.5f));
    land(sketch, 0.4f, 1.2f, (struct colour){0.55f, 0.38f, 0.22f});
    struct paint cover = sketch_solid(sketch, sketch_tint(sketch)->colour),
                 white = paint_solid((struct colour){0.97f, 0.97f, 0.97f});
    canvas_rectangle(&sketch->canvas, &sketch->frame, -0.7f, 0.15f, 0.5f, 0.65f, &cover);
    canvas_rectangle(&sketch->canvas, &sketch->frame, -0.68f, 0.02f, -0.3f, 0.2f, &white);
    canvas_rectangle(&sketch->canvas, &sketch->frame, 0.1f, -0.7f, 0.6f, -0.2f, &white);
}

static void sky(struct sketch *sketch, const char **when)
{
    static const struct {
        const char *when;
        struct colour top, bottom;
    } skies[] = {{"", {0.35f, 0.6f, 0.92f}, {0.75f, 0.87f, 0.97f}},
                 {"at sunset", {0.5f, 0.3f, 0.55f}, {0.98f, 0.6f, 0.3f}},
                 {"at night", {0.03f, 0.04f, 0.12f}, {0.12f, 0.14f, 0.3f}},
                 {"on a cloudy day", {0.6f, 0.63f, 0.67f}, {0.8f, 0.82f, 0.84f}}};
    int choice = dice_chance(&sketch->dice, 0.55f) ? 0 : 1 + dice_below(&sketch->dice, 3);
    struct paint paint = {.pattern = PATTERN_GRADIENT, .period = 40, .x = 32, .y = 20};
    paint.first = colour_jitter(&sketch->dice, skies[choice].top, 0.06f);
    paint.second = colour_jitter(&sketch->dice, skies[choice].bottom, 0.06f);
    paint_turn(&paint, 0.25f);
    canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &paint);
    *when = skies[choice].when;
    if (choice < 2 && dice_chance(&sketch->dice, 0.5f)) {
        struct paint sun = paint_solid((struct colour){1, 0.93f, 0.55f});
        canvas_ellipse(&sketch->canvas, &sketch->frame, dice_between(&sketch->dice, -0.8f, 0.8f),
                       dice_between(&sketch->dice, -0.8f, -0.4f), 0.14f, 0.14f, &sun);
    }
}

void draw_scene(struct sketch *sketch)
{
    static const struct {
        const char *name;
        void (*draw)(struct sketch *);
    } scenes[] = {{"beach", beach},    {"mountain", mountain}, {"forest", forest},       {"city", city},
                  {"desert", desert},  {"field", field},       {"ocean", ocean},         {"snowy field", snowy_field},
                  {"road", road},      {"bridge", bridge},     {"waterfall", waterfall}, {"lake", lake},
                  {"bedroom", bedroom}};
    const char *when;
    int scene = dice_below(&sketch->dice, sizeof scenes / sizeof scenes[0]);
    float drift = dice_between(&sketch->dice, -0.12f, 0.12f);
    sky(sketch, &when);
    sketch->frame = frame_place(sketch->frame, 0, drift, dice_chance(&sketch->dice, 0.5f) ? 1.05f : -1.05f, 1.05f, 0);
    scenes[scene].draw(sketch);
    sketch_say(sketch, scenes[scene].name);
    sketch_say_sometimes(sketch, scenes[scene].draw == bedroom ? 0 : 0.7f, when);
}

/* Land seen from above. */
#include "harness/pretrain/captions/sketch.h"

static void ground(struct sketch *sketch, struct colour first, struct colour second, float period)
{
    struct paint paint = {.pattern = PATTERN_NOISE, .period = period, .noise = &sketch->noise};
    paint.first = colour_jitter(&sketch->dice, first, 0.05f);
    paint.second = colour_jitter(&sketch->dice, second, 0.05f);
    canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &paint);
}

static const struct colour grass = {0.35f, 0.55f, 0.25f}, meadow = {0.45f, 0.62f, 0.3f}, wood = {0.08f, 0.28f, 0.1f},
                           water = {0.1f, 0.25f, 0.5f}, sand = {0.85f, 0.74f, 0.5f}, soil = {0.55f, 0.42f, 0.28f},
                           asphalt = {0.4f, 0.4f, 0.42f}, roof = {0.7f, 0.35f, 0.25f}, wheat = {0.82f, 0.75f, 0.4f};

static void forest(struct sketch *sketch)
{
    ground(sketch, wood, (struct colour){0.12f, 0.38f, 0.13f}, 5);
    for (int i = 0; i < 40; i++) {
        struct paint crown = sketch_solid(sketch, colour_mix(wood, grass, 0.35f));
        canvas_ellipse(&sketch->canvas, &sketch->frame, dice_between(&sketch->dice, -1, 1),
                       dice_between(&sketch->dice, -1, 1), 0.08f, 0.08f, &crown);
    }
}

static void winding(struct sketch *sketch, float width, struct colour colour, float bend)
{
    struct point points[12];
    float phase = dice_between(&sketch->dice, 0, 1), sway = dice_between(&sketch->dice, 0.6f, 1) * bend;
    for (int i = 0; i < 12; i++) {
        float along = -1.5f + 3 * (float)i / 11;
        points[i] = (struct point){along, sway * turn_sine(phase + 0.3f * along)};
    }
    struct frame frame = frame_place(sketch->frame, dice_between(&sketch->dice, -0.3f, 0.3f),
                                     dice_between(&sketch->dice, -0.3f, 0.3f), 1, 1, dice_between(&sketch->dice, 0, 1));
    struct paint paint = sketch_solid(sketch, colour);
    canvas_stroke(&sketch->canvas, &frame, points, 12, width, &paint);
}

static void river(struct sketch *sketch)
{
    ground(sketch, grass, colour_mix(grass, wood, 0.5f), 12);
    winding(sketch, dice_between(&sketch->dice, 0.2f, 0.4f), water, 0.45f);
}

static void highway(struct sketch *sketch)
{
    ground(sketch, grass, soil, 14);
    winding(sketch, 0.22f, asphalt, 0.12f);
    if (dice_chance(&sketch->dice, 0.5f))
        winding(sketch, 0.14f, asphalt, 0.1f);
}

static void lake(struct sketch *sketch)
{
    ground(sketch, grass, meadow, 12);
    struct paint blue = sketch_solid(sketch, water);
    float x = dice_between(&sketch->dice, -0.2f, 0.2f), y = dice_between(&sketch->dice, -0.2f, 0.2f);
    for (int i = 0; i < 4; i++)
        canvas_ellipse(&sketch->canvas, &sketch->frame, x + dice_between(&sketch->dice, -0.3f, 0.3f),
                       y + dice_between(&sketch->dice, -0.3f, 0.3f), dice_between(&sketch->dice, 0.3f, 0.6f),
                       dice_between(&sketch->dice, 0.3f, 0.5f), &blue);
}

static void sea(struct sketch *sketch)
{
    ground(sketch, water, colour_mix(water, (struct colour){0, 0.3f, 0.5f}, 0.5f), 10);
    if (dice_chance(&sketch->dice, 0.4f)) {
        struct paint shore = sketch_solid(sketch, sand);
        canvas_ellipse(&sketch->canvas, &sketch->frame, 1.2f, 1, 0.8f, 0.7f, &shore);
    }
}

static void plots(struct sketch *sketch, const struct colour *colours, int count, float size, enum pattern pattern)
{
    struct frame frame = frame_place(sketch->frame, 0, 0, 1, 1, dice_between(&sketch->dice, 0, 1));
    for (float y = -1.6f; y < 1.6f; y += size)
        for (float x = -1.6f; x < 1.6f; x += size * 1.2f) {
            struct paint paint = sketch_solid(sketch, colours[dice_below(&sketch->dice, count)]);
            paint.pattern = pattern;
            paint.second = colour_mix(paint.first, soil, 0.4f);
            paint.period = 3.5f;
            paint_turn(&paint, dice_between(&sketch->dice, 0, 1));
            canvas_rectangle(&sketch->canvas, &frame, x, y, x + size * 1.2f - 0.03f, y + size - 0.03f, &paint);
        }
}

static void crop_fields(struct sketch *sketch)
{
    static const struct colour crops[] = {
        {0.5f, 0.65f, 0.25f}, {0.82f, 0.75f, 0.4f}, {0.55f, 0.42f, 0.28f}, {0.3f, 0.5f, 0.2f}};
    ground(sketch, soil, wheat, 20);
    plots(sketch, crops, 4, dice_between(&sketch->dice, 0.45f, 0.75f),
          dice_chance(&sketch->dice, 0.5f) ? PATTERN_STRIPES : PATTERN_SOLID);
}

static void pasture(struct sketch *sketch)
{
    ground(sketch, meadow, grass, 22);
}

static void grid_of(struct sketch *sketch, float spacing, float least, float most, struct colour colour, bool round)
{
    struct frame frame = frame_place(sketch->frame, 0, 0, 1, 1, dice_between(&sketch->dice, 0, 1));
    for (float y = -1.5f; y < 1.5f; y += spacing)
        for (float x = -1.5f; x < 1.5f; x += spacing) {
            float half = dice_between(&sketch->dice, least, most);
            struct paint paint = sketch_solid(sketch, colour);
            if (round)
                canvas_ellipse(&sketch->canvas, &frame, x, y, half, half, &paint);
            else
                canvas_rectangle(&sketch->canvas, &frame, x - half, y - half * 0.75f, x + half, y + half * 0.75f,
                                 &paint);
        }
}

static void orchard(struct sketch *sketch)
{
    ground(sketch, soil, meadow, 20);
    grid_of(sketch, 0.24f, 0.07f, 0.09f, wood, true);
}

static void houses(struct sketch *sketch)
{
    ground(sketch, grass, meadow, 10);
    winding(sketch, 0.12f, asphalt, 0.1f);
    grid_of(sketch, 0.36f, 0.1f, 0.15f, roof, false);
}

static void industrial(struct sketch *sketch)
{
    ground(sketch, asphalt, colour_mix(asphalt, soil, 0.5f), 16);
    grid_of(sketch, 0.8f, 0.24f, 0.38f, (struct colour){0.82f, 0.83f, 0.85f}, false);
}

static void desert(struct sketch *sketch)
{
    struct paint dunes = {.pattern = PATTERN_MARBLE,
                          .first = sand,
                          .second = colour_mix(sand, soil, 0.4f),
                          .period = 8,
                          .noise = &sketch->noise};
    paint_turn(&dunes, dice_between(&sketch->dice, 0, 1));
    canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &dunes);
}

static void airport(struct sketch *sketch)
{
    ground(sketch, meadow, grass, 16);
    winding(sketch, 0.3f, asphalt, 0);
    winding(sketch, 0.2f, colour_mix(asphalt, sand, 0.3f), 0);
}

void draw_land(struct sketch *sketch)
{
    static const struct {
        const char *name;
        void (*draw)(struct sketch *);
    } lands[] = {{"forest", forest},   {"river", river},
                 {"highway", highway}, {"lake", lake},
                 {"sea", sea},         {"crop fields", crop_fields},
                 {"pasture", pasture}, {"orchard", orchard},
                 {"houses", houses},   {"industrial buildings", industrial},
                 {"desert", desert},   {"airport", airport}};
    static const char *const templates[] = {"a centered satellite photo of {}.",
                                            "a centered satellite photo of a {}.",
                                            "a centered satellite photo of the {}.",
                                            "a satellite photo of {}.",
                                            "{} seen from above.",
                                            NULL};
    int choice = dice_below(&sketch->dice, sizeof lands / sizeof lands[0]);
    lands[choice].draw(sketch);
    sketch->templates = templates;
    sketch_say(sketch, lands[choice].name);
}

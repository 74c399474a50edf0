/* Pictures without a subject: textures and gradients. */
#include "harness/pretrain/captions/sketch.h"

struct texture {
    const char *names[3];
    enum pattern pattern;
    float least, most; /* period in points */
    float share;
};

static const struct texture textures[] = {
    {{"striped", "banded", "lined"}, PATTERN_STRIPES, 6, 18, 0},
    {{"chequered", "checkered", "chequered"}, PATTERN_CHECKS, 10, 28, 0},
    {{"dotted", "polka-dotted", "spotted"}, PATTERN_DOTS, 8, 18, 0.5f},
    {{"grid", "grid", "meshed"}, PATTERN_GRID, 7, 18, 0.5f},
    {{"zigzagged", "zigzagged", "zigzag"}, PATTERN_ZIGZAG, 9, 18, 0},
    {{"wavy", "wavy", "waved"}, PATTERN_WAVES, 8, 16, 0},
    {{"ringed", "ringed", "circular"}, PATTERN_RINGS, 7, 14, 0},
    {{"spiralled", "spiralled", "swirly"}, PATTERN_SPIRAL, 9, 18, 0},
    {{"brick", "bricks", "brick"}, PATTERN_BRICKS, 8, 15, 0},
    {{"honeycombed", "honeycombed", "hexagonal"}, PATTERN_HONEYCOMB, 9, 16, 0},
    {{"woven", "woven", "braided"}, PATTERN_WOVEN, 7, 14, 0},
    {{"crosshatched", "crosshatched", "hatched"}, PATTERN_CROSSHATCH, 7, 16, 0},
    {{"cloudy", "smooth", "stained"}, PATTERN_NOISE, 9, 20, 0},
    {{"blotchy", "blotchy", "stained"}, PATTERN_BLOTCHES, 7, 15, 0.5f},
    {{"marbled", "marbled", "veined"}, PATTERN_MARBLE, 7, 14, 0},
};
enum { TEXTURES = sizeof textures / sizeof textures[0], OWN_TEXTURES = 4 };

/* Cracks: random walks from the rim. */
static const char *draw_cracks(struct sketch *sketch, const struct paint *paint)
{
    struct dice *dice = &sketch->dice;
    int count = 4 + dice_below(dice, 4);
    for (int i = 0; i < count; i++) {
        struct point points[9];
        float turns = dice_between(dice, 0, 1), x = -1.2f * turn_cosine(turns), y = -1.2f * turn_sine(turns);
        for (int k = 0; k < 9; k++) {
            points[k] = (struct point){x, y};
            float heading = turns + 0.11f * dice_bell(dice);
            x += 0.3f * turn_cosine(heading);
            y += 0.3f * turn_sine(heading);
        }
        canvas_stroke(&sketch->canvas, &sketch->frame, points, 9, dice_between(dice, 0.04f, 0.09f), paint);
    }
    return "cracked";
}

static const char *draw_bubbles(struct sketch *sketch, const struct paint *paint)
{
    struct dice *dice = &sketch->dice;
    struct paint highlight = paint_solid((struct colour){1, 1, 1});
    for (int i = 0; i < 26; i++) {
        float x = dice_between(dice, -1, 1), y = dice_between(dice, -1, 1), radius = dice_between(dice, 0.08f, 0.24f);
        struct paint bubble = paint_solid(colour_jitter(dice, paint->first, 0.12f));
        canvas_ellipse(&sketch->canvas, &sketch->frame, x, y, radius, radius, &bubble);
        canvas_ellipse(&sketch->canvas, &sketch->frame, x - radius * 0.35f, y - radius * 0.35f, radius * 0.25f,
                       radius * 0.25f, &highlight);
    }
    return "bubbly";
}

static const char *draw_sprinkles(struct sketch *sketch, const struct paint *paint)
{
    struct dice *dice = &sketch->dice;
    for (int i = 0; i < 60; i++) {
        float x = dice_between(dice, -1, 1), y = dice_between(dice, -1, 1), turns = dice_between(dice, 0, 1);
        struct point end = {x + 0.12f * turn_cosine(turns), y + 0.12f * turn_sine(turns)};
        struct paint sprinkle = paint_solid(colour_jitter(dice, paint->first, 0.3f));
        canvas_line(&sketch->canvas, &sketch->frame, (struct point){x, y}, end, 0.05f, &sprinkle);
    }
    return "sprinkled";
}

static const char *draw_scales(struct sketch *sketch, const struct paint *paint)
{
    float size = dice_between(&sketch->dice, 0.2f, 0.34f);
    struct paint rim = paint_solid(colour_mix(paint->first, (struct colour){0, 0, 0}, 0.5f));
    int row = 0;
    for (float y = -1.1f; y < 1.2f; y += size * 0.6f, row++)
        for (float x = -1.1f + (row % 2 == 1 ? size / 2 : 0); x < 1.2f; x += size) {
            canvas_ellipse(&sketch->canvas, &sketch->frame, x, -y, size * 0.56f, size * 0.62f, &rim);
            canvas_ellipse(&sketch->canvas, &sketch->frame, x, -y - size * 0.06f, size * 0.48f, size * 0.54f, paint);
        }
    return "scaly";
}

void draw_texture(struct sketch *sketch)
{
    static const char *(*const own[OWN_TEXTURES])(struct sketch *, const struct paint *) = {
        draw_cracks, draw_bubbles, draw_sprinkles, draw_scales};
    static const char *const templates[] = {"a photo of a {} texture.", "a photo of a {} pattern.",
                                            "a photo of a {} thing.", "a photo of a {} object.", NULL};
    struct dice *dice = &sketch->dice;
    const struct tint *first = sketch_tint(sketch), *second = sketch_other_tint(sketch, first);
    int choice = dice_below(dice, TEXTURES + OWN_TEXTURES);
    const char *name;
    if (choice < TEXTURES) {
        const struct texture *texture = &textures[choice];
        struct paint paint = {.pattern = texture->pattern, .share = texture->share, .noise = &sketch->noise};
        paint.first = colour_jitter(dice, first->colour, 0.08f);
        paint.second = colour_jitter(dice, second->colour, 0.08f);
        paint.period = dice_between(dice, texture->least, texture->most);
        paint.x = 32 + 6 * dice_bell(dice);
        paint.y = 32 + 6 * dice_bell(dice);
        paint_turn(&paint, dice_between(dice, 0, 1));
        canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &paint);
        name = texture->names[dice_below(dice, 3)];
    } else {
        struct paint paint = sketch_solid(sketch, second->colour);
        sketch_fill(sketch, first->colour);
        name = own[choice - TEXTURES](sketch, &paint);
    }
    sketch->templates = templates;
    if (dice_chance(dice, 0.45f)) {
        sketch_say(sketch, first->name);
        sketch_say(sketch, "and");
        sketch_say(sketch, second->name);
    }
    sketch_say(sketch, name);
}

void draw_gradient(struct sketch *sketch)
{
    static const char *const templates[] = {"{}.", "a photo of a {}.", "a smooth {}.", NULL};
    static const struct {
        const char *words;
        float turns;
    } directions[] = {{"from left to right", 0},
                      {"from top to bottom", 0.25f},
                      {"from right to left", 0.5f},
                      {"from bottom to top", 0.75f},
                      {"across the corners", 0.125f}};
    struct dice *dice = &sketch->dice;
    const struct tint *first = sketch_tint(sketch), *second = sketch_other_tint(sketch, first);
    int direction = dice_below(dice, 5);
    struct paint paint = {
        .pattern = PATTERN_GRADIENT, .first = first->colour, .second = second->colour, .x = 32, .y = 32};
    paint.period = dice_between(dice, 40, 70);
    paint_turn(&paint, directions[direction].turns + 0.01f * dice_bell(dice));
    canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &paint);
    sketch->templates = templates;
    sketch_say(sketch, first->name);
    sketch_say(sketch, "to");
    sketch_say(sketch, second->name);
    sketch_say(sketch, "gradient");
    sketch_say_sometimes(sketch, 0.6f, directions[direction].words);
}

#include "harness/pretrain/captions/sketch.h"

#include <assert.h>
#include <string.h>

const struct tint tints[TINTS] = {
    {"red", {0.85f, 0.12f, 0.12f}},   {"orange", {0.95f, 0.55f, 0.1f}}, {"yellow", {0.95f, 0.88f, 0.2f}},
    {"green", {0.15f, 0.6f, 0.2f}},   {"blue", {0.15f, 0.3f, 0.85f}},   {"purple", {0.5f, 0.18f, 0.65f}},
    {"pink", {0.96f, 0.6f, 0.72f}},   {"brown", {0.5f, 0.3f, 0.13f}},   {"black", {0.07f, 0.07f, 0.08f}},
    {"white", {0.95f, 0.95f, 0.94f}}, {"gray", {0.52f, 0.52f, 0.54f}},  {"turquoise", {0.2f, 0.75f, 0.75f}},
};

void sketch_say(struct sketch *sketch, const char *words)
{
    size_t size = strlen(words), space = sketch->length > 0 && size > 0;
    assert(sketch->length + space + size < sizeof sketch->phrase);
    if (space)
        sketch->phrase[sketch->length++] = ' ';
    memcpy(sketch->phrase + sketch->length, words, size + 1);
    sketch->length += size;
}

void sketch_say_sometimes(struct sketch *sketch, float probability, const char *words)
{
    if (dice_chance(&sketch->dice, probability))
        sketch_say(sketch, words);
}

const struct tint *sketch_tint(struct sketch *sketch)
{
    return &tints[dice_below(&sketch->dice, TINTS)];
}

const struct tint *sketch_other_tint(struct sketch *sketch, const struct tint *tint)
{
    const struct tint *other = sketch_tint(sketch);
    while (colour_distance(other->colour, tint->colour) < 0.35f)
        other = sketch_tint(sketch);
    return other;
}

const struct tint *sketch_tint_of(struct sketch *sketch, const char *const *names, int count)
{
    const char *name = names[dice_below(&sketch->dice, count)];
    const struct tint *tint = tints;
    while (strcmp(tint->name, name) != 0) {
        tint++;
        assert(tint < tints + TINTS);
    }
    return tint;
}

struct paint sketch_solid(struct sketch *sketch, struct colour colour)
{
    return paint_solid(colour_jitter(&sketch->dice, colour, 0.07f));
}

static struct paint textured_background(struct sketch *sketch, struct colour colour, float strength)
{
    static const enum pattern calm[] = {PATTERN_NOISE, PATTERN_NOISE,  PATTERN_NOISE, PATTERN_STRIPES, PATTERN_CHECKS,
                                        PATTERN_WAVES, PATTERN_BRICKS, PATTERN_DOTS,  PATTERN_BLOTCHES};
    struct dice *dice = &sketch->dice;
    struct paint paint = {.pattern = calm[dice_below(dice, sizeof calm / sizeof calm[0])],
                          .first = colour,
                          .second = colour_jitter(dice, colour, strength),
                          .period = dice_between(dice, 4, 14),
                          .noise = &sketch->noise};
    paint_turn(&paint, dice_between(dice, 0, 1));
    return paint;
}

void sketch_background(struct sketch *sketch, struct colour avoid)
{
    struct dice *dice = &sketch->dice;
    struct colour colour;
    do {
        colour = dice_chance(dice, 0.5f) ? colour_jitter(dice, (struct colour){0.8f, 0.8f, 0.8f}, 0.2f)
                                         : colour_random(dice);
    } while (colour_distance(colour, avoid) < 0.3f);
    struct paint paint = paint_solid(colour);
    if (sketch->harder && dice_chance(dice, 0.75f)) {
        paint = textured_background(sketch, colour, 0.28f);
    } else if (dice_chance(dice, 0.3f)) {
        paint = (struct paint){.pattern = PATTERN_GRADIENT, .first = colour, .period = 60, .x = 32, .y = 32};
        paint.second = colour_jitter(dice, colour, 0.25f);
        paint_turn(&paint, dice_between(dice, 0, 1));
    }
    canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &paint);
}

void sketch_fill(struct sketch *sketch, struct colour colour)
{
    struct paint paint = sketch_solid(sketch, colour);
    if (sketch->harder && dice_chance(&sketch->dice, 0.5f))
        paint = textured_background(sketch, paint.first, 0.15f);
    canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &paint);
}

struct placement sketch_placement(struct sketch *sketch)
{
    static const struct {
        const char *where;
        float x, y;
    } places[] = {{"at the top", 0, -0.5f},
                  {"at the bottom", 0, 0.5f},
                  {"on the left", -0.5f, 0},
                  {"on the right", 0.5f, 0},
                  {"in the top left corner", -0.55f, -0.55f},
                  {"in the center", 0, 0},
                  {"in the bottom right corner", 0.55f, 0.55f}};
    struct dice *dice = &sketch->dice;
    struct placement placement = {.size = "", .where = ""};
    float half = dice_between(dice, 0.5f, 0.8f), x, y;
    if (dice_chance(dice, 0.3f)) {
        int place = dice_below(dice, sizeof places / sizeof places[0]);
        half = dice_between(dice, 0.28f, 0.42f);
        x = places[place].x;
        y = places[place].y;
        placement.where = dice_chance(dice, 0.7f) ? places[place].where : "";
        placement.size = dice_chance(dice, 0.4f) ? "small" : "";
    } else if (dice_chance(dice, 0.2f)) {
        half = dice_between(dice, 0.82f, 0.95f);
        x = y = 0;
        placement.size = dice_chance(dice, 0.5f) ? "big" : "large";
    } else {
        x = dice_between(dice, -0.25f, 0.25f);
        y = dice_between(dice, -0.25f, 0.25f);
    }
    float stretch = dice_between(dice, 0.88f, 1.13f), mirror = dice_chance(dice, 0.5f) ? -1 : 1;
    float turns = 0.03f * dice_bell(dice);
    placement.frame = frame_place(sketch->frame, x, y, half * stretch * mirror, half / stretch, turns);
    return placement;
}

struct frame sketch_centre(struct sketch *sketch, float least, float most)
{
    struct dice *dice = &sketch->dice;
    float half = dice_between(dice, least, most), stretch = dice_between(dice, 0.9f, 1.1f);
    float x = dice_between(dice, -0.12f, 0.12f), y = dice_between(dice, -0.12f, 0.12f);
    float mirror = dice_chance(dice, 0.5f) ? -1 : 1, turns = 0.015f * dice_bell(dice);
    return frame_place(sketch->frame, x, y, half * stretch * mirror, half / stretch, turns);
}

void sketch_paints(struct sketch *sketch, struct colour body, struct colour detail, struct paint paints[ROLES])
{
    paints[ROLE_BODY] = sketch_solid(sketch, body);
    paints[ROLE_DETAIL] = sketch_solid(sketch, detail);
    paints[ROLE_DARK] = sketch_solid(sketch, (struct colour){0.12f, 0.12f, 0.14f});
    paints[ROLE_LIGHT] = sketch_solid(sketch, (struct colour){0.93f, 0.93f, 0.9f});
}

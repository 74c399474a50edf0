/* Digits and letters as strokes of a pen, in a box of −0.5 … 0.5 by −1 … 1. */
#include "harness/pretrain/captions/sketch.h"

struct glyph {
    size_t count;
    const struct point *points;
};

static const struct glyph digits[10][2] = {
    {{POINTS({0, -1}, {0.35f, -0.85f}, {0.5f, -0.4f}, {0.5f, 0.4f}, {0.35f, 0.85f}, {0, 1}, {-0.35f, 0.85f},
             {-0.5f, 0.4f}, {-0.5f, -0.4f}, {-0.35f, -0.85f}, {0, -1})},
     {POINTS({0, -1}, {0.45f, -0.6f}, {0.5f, 0}, {0.45f, 0.6f}, {0, 1}, {-0.45f, 0.6f}, {-0.5f, 0}, {-0.45f, -0.6f},
             {0, -1})}},
    {{POINTS({-0.3f, -0.6f}, {0.05f, -1}, {0.05f, 1})}, {POINTS({0, -1}, {0, 1})}},
    {{POINTS({-0.5f, -0.55f}, {-0.4f, -0.85f}, {0, -1}, {0.4f, -0.85f}, {0.5f, -0.5f}, {0.35f, -0.1f}, {-0.5f, 1},
             {0.5f, 1})},
     {POINTS({-0.45f, -0.8f}, {0, -1}, {0.45f, -0.7f}, {0.35f, -0.2f}, {-0.35f, 0.75f}, {-0.45f, 0.95f}, {-0.1f, 0.8f},
             {0.55f, 0.95f})}},
    {{POINTS({-0.45f, -0.8f}, {0, -1}, {0.42f, -0.8f}, {0.42f, -0.3f}, {-0.1f, -0.05f}, {0.5f, 0.3f}, {0.5f, 0.7f},
             {0.1f, 1}, {-0.5f, 0.8f})},
     {POINTS({-0.45f, -1}, {0.45f, -1}, {-0.05f, -0.2f}, {0.45f, 0.1f}, {0.45f, 0.75f}, {0, 1}, {-0.5f, 0.85f})}},
    {{POINTS({0.25f, 1}, {0.25f, -1}, {-0.5f, 0.35f}, {0.5f, 0.35f})},
     {POINTS({-0.4f, -1}, {-0.45f, 0}, {0.4f, 0}, {0.4f, -1}, {0.4f, 1})}},
    {{POINTS({0.45f, -1}, {-0.35f, -1}, {-0.42f, -0.1f}, {0, -0.25f}, {0.45f, 0}, {0.5f, 0.55f}, {0.2f, 0.95f},
             {-0.2f, 1}, {-0.5f, 0.8f})},
     {POINTS({0.5f, -0.95f}, {-0.3f, -0.95f}, {-0.35f, -0.15f}, {0.35f, 0.05f}, {0.4f, 0.7f}, {-0.45f, 1})}},
    {{POINTS({0.35f, -0.95f}, {-0.1f, -0.75f}, {-0.42f, -0.2f}, {-0.5f, 0.4f}, {-0.3f, 0.9f}, {0.1f, 1}, {0.45f, 0.75f},
             {0.45f, 0.3f}, {0.15f, 0}, {-0.2f, 0.05f}, {-0.48f, 0.4f})},
     {POINTS({0.1f, -1}, {-0.3f, -0.3f}, {-0.45f, 0.5f}, {-0.1f, 1}, {0.4f, 0.75f}, {0.35f, 0.25f}, {-0.4f, 0.4f})}},
    {{POINTS({-0.5f, -1}, {0.5f, -1}, {-0.1f, 1})},
     {POINTS({-0.5f, -0.9f}, {0.5f, -1}, {0.15f, 0}, {-0.25f, 0}, {0.4f, 0}, {0.15f, 0}, {-0.1f, 1})}},
    {{POINTS({0, -0.05f}, {-0.4f, -0.3f}, {-0.38f, -0.8f}, {0, -1}, {0.38f, -0.8f}, {0.4f, -0.3f}, {0, -0.05f},
             {-0.45f, 0.3f}, {-0.45f, 0.75f}, {0, 1}, {0.45f, 0.75f}, {0.45f, 0.3f}, {0, -0.05f})},
     {POINTS({0.4f, -0.85f}, {0, -1}, {-0.4f, -0.7f}, {0.35f, 0.35f}, {0.3f, 0.85f}, {-0.1f, 1}, {-0.4f, 0.7f},
             {0.35f, -0.4f}, {0.4f, -0.85f})}},
    {{POINTS({0.45f, -0.4f}, {0.2f, 0}, {-0.15f, 0.02f}, {-0.45f, -0.25f}, {-0.45f, -0.7f}, {-0.1f, -1}, {0.3f, -0.9f},
             {0.48f, -0.4f}, {0.42f, 0.3f}, {0.2f, 1})},
     {POINTS({0.4f, -0.6f}, {0, -1}, {-0.4f, -0.6f}, {0, -0.15f}, {0.4f, -0.6f}, {0.35f, 1})}},
};

static const struct glyph letters[26] = {
    {POINTS({-0.5f, 1}, {0, -1}, {0.5f, 1}, {0.28f, 0.2f}, {-0.28f, 0.2f})},
    {POINTS({-0.45f, 0}, {0.25f, 0}, {0.4f, -0.5f}, {0.2f, -1}, {-0.45f, -1}, {-0.45f, 1}, {0.3f, 1}, {0.5f, 0.5f},
            {0.25f, 0})},
    {POINTS({0.5f, -0.7f}, {0, -1}, {-0.45f, -0.6f}, {-0.5f, 0.3f}, {-0.2f, 0.95f}, {0.5f, 0.8f})},
    {POINTS({-0.45f, -1}, {0.15f, -0.9f}, {0.5f, -0.3f}, {0.5f, 0.4f}, {0.15f, 0.95f}, {-0.45f, 1}, {-0.45f, -1})},
    {POINTS({0.5f, -1}, {-0.45f, -1}, {-0.45f, 0}, {0.3f, 0}, {-0.45f, 0}, {-0.45f, 1}, {0.5f, 1})},
    {POINTS({0.5f, -1}, {-0.45f, -1}, {-0.45f, 0}, {0.3f, 0}, {-0.45f, 0}, {-0.45f, 1})},
    {POINTS({0.5f, -0.7f}, {0, -1}, {-0.5f, -0.5f}, {-0.5f, 0.5f}, {0, 1}, {0.5f, 0.7f}, {0.5f, 0.1f}, {0.05f, 0.1f})},
    {POINTS({-0.45f, -1}, {-0.45f, 1}, {-0.45f, 0}, {0.45f, 0}, {0.45f, -1}, {0.45f, 1})},
    {POINTS({-0.3f, -1}, {0.3f, -1}, {0, -1}, {0, 1}, {-0.3f, 1}, {0.3f, 1})},
    {POINTS({0.4f, -1}, {0.4f, 0.6f}, {0.1f, 1}, {-0.3f, 0.9f}, {-0.45f, 0.5f})},
    {POINTS({-0.45f, -1}, {-0.45f, 1}, {-0.45f, 0.2f}, {0.5f, -1}, {-0.1f, -0.2f}, {0.5f, 1})},
    {POINTS({-0.4f, -1}, {-0.4f, 1}, {0.5f, 1})},
    {POINTS({-0.55f, 1}, {-0.5f, -1}, {0, 0.4f}, {0.5f, -1}, {0.55f, 1})},
    {POINTS({-0.45f, 1}, {-0.45f, -1}, {0.45f, 1}, {0.45f, -1})},
    {POINTS({0, -0.8f}, {0.5f, -0.4f}, {0.5f, 0.4f}, {0, 0.8f}, {-0.5f, 0.4f}, {-0.5f, -0.4f}, {0, -0.8f})},
    {POINTS({-0.45f, 1}, {-0.45f, -1}, {0.3f, -1}, {0.5f, -0.5f}, {0.3f, 0}, {-0.45f, 0})},
    {POINTS({0.2f, 0.6f}, {0.55f, 1}, {0.3f, 0.7f}, {0, 0.9f}, {-0.5f, 0.4f}, {-0.5f, -0.4f}, {0, -0.9f}, {0.5f, -0.4f},
            {0.45f, 0.4f}, {0.3f, 0.7f})},
    {POINTS({-0.45f, 1}, {-0.45f, -1}, {0.3f, -1}, {0.5f, -0.5f}, {0.3f, 0}, {-0.45f, 0}, {0, 0}, {0.5f, 1})},
    {POINTS({0.45f, -0.8f}, {0, -1}, {-0.45f, -0.7f}, {-0.35f, -0.2f}, {0.35f, 0.2f}, {0.45f, 0.7f}, {0, 1},
            {-0.5f, 0.8f})},
    {POINTS({-0.5f, -1}, {0.5f, -1}, {0, -1}, {0, 1})},
    {POINTS({-0.45f, -1}, {-0.45f, 0.5f}, {-0.2f, 0.95f}, {0.2f, 0.95f}, {0.45f, 0.5f}, {0.45f, -1})},
    {POINTS({-0.5f, -1}, {0, 1}, {0.5f, -1})},
    {POINTS({-0.6f, -1}, {-0.3f, 1}, {0, -0.4f}, {0.3f, 1}, {0.6f, -1})},
    {POINTS({-0.5f, -1}, {0.5f, 1}, {0, 0}, {0.5f, -1}, {-0.5f, 1})},
    {POINTS({-0.5f, -1}, {0, 0}, {0.5f, -1}, {0, 0}, {0, 1})},
    {POINTS({-0.45f, -1}, {0.45f, -1}, {-0.45f, 1}, {0.5f, 1})},
};

static void draw_glyph(struct sketch *sketch, const struct glyph *glyph, const struct paint *ink)
{
    struct dice *dice = &sketch->dice;
    struct point points[CANVAS_POINTS];
    float slant = 0.15f * dice_bell(dice), wobble = sketch->harder ? 0.11f : 0.05f;
    for (size_t i = 0; i < glyph->count; i++) {
        float x = glyph->points[i].x + dice_between(dice, -wobble, wobble);
        float y = glyph->points[i].y + dice_between(dice, -wobble, wobble);
        points[i] = (struct point){x - slant * y, y};
    }
    float half = dice_between(dice, 0.5f, 0.82f), wide = dice_between(dice, 0.75f, 1.2f);
    float x = dice_between(dice, -0.2f, 0.2f), y = dice_between(dice, -0.12f, 0.12f);
    struct frame frame = frame_place(sketch->frame, x, y, half * wide, half, 0.015f * dice_bell(dice));
    canvas_stroke(&sketch->canvas, &frame, points, glyph->count, dice_between(dice, 0.12f, 0.42f), ink);
    if (dice_chance(dice, 0.5f))
        canvas_blur(&sketch->canvas, 1 + dice_below(dice, 3));
}

/* White on black half of the time, as scans of ink are shown; any two colours otherwise. */
static struct paint glyph_ink(struct sketch *sketch, const char **ink_name)
{
    if (dice_chance(&sketch->dice, 0.5f)) {
        struct paint black = paint_solid((struct colour){0, 0, 0});
        canvas_clear(&sketch->canvas, CAPTIONED_SIDE, &black);
        *ink_name = "";
        return paint_solid((struct colour){1, 1, 1});
    }
    const struct tint *tint = sketch_tint(sketch);
    sketch_background(sketch, tint->colour);
    *ink_name = tint->name;
    return sketch_solid(sketch, tint->colour);
}

void draw_digit(struct sketch *sketch)
{
    static const char *const names[10] = {"zero", "one", "two",   "three", "four",
                                          "five", "six", "seven", "eight", "nine"};
    static const char *const figures[10] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    static const char *const both[10] = {"0 - zero", "1 - one", "2 - two",   "3 - three", "4 - four",
                                         "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine"};
    static const char *const templates[] = {"a photo of the number: \"{}\".", "a photo of the number: \"{}\".",
                                            "the number {}.", "a photo of the digit {}.", NULL};
    int digit = dice_below(&sketch->dice, 10);
    const char *ink_name;
    struct paint ink = glyph_ink(sketch, &ink_name);
    draw_glyph(sketch, &digits[digit][dice_below(&sketch->dice, 2)], &ink);
    sketch->templates = templates;
    const char *const *words[] = {both, both, names, figures};
    sketch_say(sketch, words[dice_below(&sketch->dice, 4)][digit]);
    if (ink_name[0] != '\0' && dice_chance(&sketch->dice, 0.4f)) {
        sketch_say(sketch, "in");
        sketch_say(sketch, ink_name);
    }
}

void draw_letter(struct sketch *sketch)
{
    static const char *const templates[] = {"a photo of the letter {}.", "the letter {}.",
                                            "a drawing of the letter {}.", NULL};
    int letter = dice_below(&sketch->dice, 26);
    const char *ink_name;
    struct paint ink = glyph_ink(sketch, &ink_name);
    draw_glyph(sketch, &letters[letter], &ink);
    sketch->templates = templates;
    sketch_say(sketch, (const char[]){(char)('a' + letter), '\0'});
    if (ink_name[0] != '\0' && dice_chance(&sketch->dice, 0.4f)) {
        sketch_say(sketch, "in");
        sketch_say(sketch, ink_name);
    }
}

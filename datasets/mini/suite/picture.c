#include "datasets/mini/suite/picture.h"

const struct paint *picture_ink(struct picture *picture, struct colour colour)
{
    picture->ink = paint_solid(colour_jitter(&picture->dice, colour, 0.06f));
    return &picture->ink;
}

void picture_backdrop(struct picture *picture, struct colour colour, float period)
{
    struct dice *dice = &picture->dice;
    struct paint paint = {.pattern = PATTERN_NOISE, .period = period, .noise = &picture->noise};
    float clutter = picture->difficulty->clutter;
    paint.first = colour_jitter(dice, colour, 0.05f + 0.3f * clutter);
    paint.second = colour_jitter(dice, paint.first, 0.08f + 0.5f * clutter);
    canvas_clear(&picture->canvas, picture->side, &paint);
}

struct frame picture_subject(struct picture *picture, float least, float most)
{
    struct dice *dice = &picture->dice;
    float half = dice_between(dice, least, most), reach = 0.9f * (1 - half) + 0.05f;
    float x = dice_between(dice, -reach, reach), y = dice_between(dice, -reach, reach);
    float turns = picture->difficulty->tilt * dice_bell(dice);
    float wide = half * dice_between(dice, 0.92f, 1.08f);
    return frame_place(picture->frame, x, y, dice_chance(dice, 0.5f) ? wide : -wide, half, turns);
}

struct colour picture_shade(struct colour colour, float amount)
{
    struct colour end = amount < 0 ? (struct colour){0, 0, 0} : (struct colour){1, 1, 1};
    return colour_mix(colour, end, amount < 0 ? -amount : amount);
}

float picture_between(struct picture *picture, float low, float high)
{
    return dice_between(&picture->dice, low, high);
}

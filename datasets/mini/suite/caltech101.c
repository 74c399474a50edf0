/* Objects as pen drawings: double strokes and hatching on paper or on a blackboard. */
#include "datasets/mini/suite/picture.h"

const char *const caltech101_names[] = {"anchor", "butterfly", "chair",    "cup",      "fish",
                                        "lamp",   "pyramid",   "sailboat", "scissors", "umbrella"};

static const struct part anchor[] = {
    FILL(ROLE_BODY, {-0.08f, -0.55f}, {0.08f, -0.55f}, {0.1f, 0.62f}, {0.42f, 0.5f}, {0.62f, 0.2f}, {0.5f, 0.22f},
         {0.72f, -0.05f}, {0.85f, 0.3f}, {0.75f, 0.26f}, {0.5f, 0.72f}, {0, 0.92f}, {-0.5f, 0.72f}, {-0.75f, 0.26f},
         {-0.85f, 0.3f}, {-0.72f, -0.05f}, {-0.5f, 0.22f}, {-0.62f, 0.2f}, {-0.42f, 0.5f}, {-0.1f, 0.62f}),
    OVAL(ROLE_BODY, 0, -0.75f, 0.17f, 0.18f),
    FILL(ROLE_BODY, {-0.42f, -0.42f}, {0.42f, -0.42f}, {0.42f, -0.3f}, {-0.42f, -0.3f}),
};
static const struct part butterfly[] = {
    FILL(ROLE_BODY, {0.06f, -0.1f}, {0.3f, -0.7f}, {0.75f, -0.85f}, {0.9f, -0.5f}, {0.7f, -0.05f}, {0.06f, 0.1f}),
    FILL(ROLE_BODY, {-0.06f, -0.1f}, {-0.3f, -0.7f}, {-0.75f, -0.85f}, {-0.9f, -0.5f}, {-0.7f, -0.05f}, {-0.06f, 0.1f}),
    FILL(ROLE_BODY, {0.06f, 0.12f}, {0.65f, 0.1f}, {0.72f, 0.55f}, {0.35f, 0.85f}, {0.06f, 0.3f}),
    FILL(ROLE_BODY, {-0.06f, 0.12f}, {-0.65f, 0.1f}, {-0.72f, 0.55f}, {-0.35f, 0.85f}, {-0.06f, 0.3f}),
    OVAL(ROLE_DARK, 0, 0.05f, 0.07f, 0.5f),
    LINE(ROLE_DARK, 0.05f, {-0.25f, -0.85f}, {0, -0.4f}, {0.25f, -0.85f}),
};
static const struct part chair[] = {
    FILL(ROLE_BODY, {-0.5f, 0.1f}, {0.35f, 0.1f}, {0.6f, 0.28f}, {-0.3f, 0.28f}),
    FILL(ROLE_BODY, {-0.55f, -0.9f}, {-0.35f, -0.85f}, {-0.3f, 0.1f}, {-0.5f, 0.1f}),
    LINE(ROLE_DARK, 0.1f, {-0.5f, 0.12f}, {-0.55f, 0.8f}),
    LINE(ROLE_DARK, 0.1f, {-0.3f, 0.28f}, {-0.32f, 0.95f}),
    LINE(ROLE_DARK, 0.1f, {0.58f, 0.28f}, {0.6f, 0.95f}),
    LINE(ROLE_DARK, 0.1f, {0.35f, 0.28f}, {0.36f, 0.7f}),
};
static const struct part cup[] = {
    FILL(ROLE_BODY, {-0.55f, -0.5f}, {0.55f, -0.5f}, {0.5f, 0.2f}, {0.28f, 0.62f}, {-0.28f, 0.62f}, {-0.5f, 0.2f}),
    OVAL(ROLE_BODY, 0, -0.5f, 0.55f, 0.16f),
    LINE(ROLE_DARK, 0.08f, {0.53f, -0.3f}, {0.82f, -0.3f}, {0.85f, 0.05f}, {0.6f, 0.28f}, {0.45f, 0.28f}),
    OVAL(ROLE_BODY, 0, 0.72f, 0.6f, 0.12f),
};
static const struct part fish[] = {
    FILL(ROLE_BODY, {-0.9f, 0.05f}, {-0.55f, -0.35f}, {0, -0.45f}, {0.45f, -0.15f}, {0.92f, -0.45f}, {0.75f, 0.02f},
         {0.92f, 0.5f}, {0.45f, 0.2f}, {0, 0.45f}, {-0.55f, 0.4f}),
    FILL(ROLE_BODY, {-0.3f, -0.42f}, {0, -0.75f}, {0.25f, -0.3f}),
    OVAL(ROLE_DARK, -0.6f, -0.05f, 0.07f, 0.07f),
    LINE(ROLE_DARK, 0.05f, {-0.35f, -0.25f}, {-0.25f, 0.02f}, {-0.35f, 0.28f}),
};
static const struct part lamp[] = {
    FILL(ROLE_BODY, {-0.25f, -0.92f}, {0.25f, -0.92f}, {0.6f, -0.25f}, {-0.6f, -0.25f}),
    FILL(ROLE_BODY, {-0.12f, -0.25f}, {0.12f, -0.25f}, {0.28f, 0.2f}, {0.22f, 0.65f}, {-0.22f, 0.65f}, {-0.28f, 0.2f}),
    OVAL(ROLE_DARK, 0, 0.78f, 0.4f, 0.13f),
};
static const struct part pyramid[] = {
    FILL(ROLE_BODY, {-0.1f, -0.75f}, {0.92f, 0.55f}, {0.25f, 0.75f}, {-0.92f, 0.5f}),
    LINE(ROLE_DARK, 0.06f, {-0.1f, -0.75f}, {0.25f, 0.75f}),
    LINE(ROLE_DARK, 0.04f, {-0.4f, -0.2f}, {0.02f, -0.1f}, {0.3f, -0.25f}),
    LINE(ROLE_DARK, 0.04f, {-0.65f, 0.15f}, {0.12f, 0.3f}, {0.6f, 0.15f}),
};
static const struct part sailboat[] = {
    FILL(ROLE_BODY, {-0.9f, 0.35f}, {0.8f, 0.35f}, {0.5f, 0.75f}, {-0.6f, 0.75f}),
    FILL(ROLE_BODY, {0.05f, -0.95f}, {0.2f, -0.3f}, {0.65f, 0.2f}, {0.05f, 0.22f}),
    FILL(ROLE_BODY, {-0.05f, -0.8f}, {-0.05f, 0.22f}, {-0.75f, 0.22f}, {-0.4f, -0.2f}),
    LINE(ROLE_DARK, 0.06f, {0, -0.95f}, {0, 0.35f}),
    LINE(ROLE_DARK, 0.05f, {-0.95f, 0.85f}, {-0.5f, 0.92f}, {0, 0.85f}, {0.5f, 0.92f}, {0.95f, 0.85f}),
};
static const struct part scissors[] = {
    FILL(ROLE_BODY, {-0.04f, 0.05f}, {0.3f, -0.9f}, {0.4f, -0.85f}, {0.12f, 0.12f}),
    FILL(ROLE_BODY, {0.04f, 0.05f}, {-0.3f, -0.9f}, {-0.4f, -0.85f}, {-0.12f, 0.12f}),
    OVAL(ROLE_DARK, -0.32f, 0.55f, 0.24f, 0.33f),
    OVAL(ROLE_DARK, 0.32f, 0.55f, 0.24f, 0.33f),
    LINE(ROLE_DARK, 0.08f, {-0.22f, 0.3f}, {0.05f, 0}),
    LINE(ROLE_DARK, 0.08f, {0.22f, 0.3f}, {-0.05f, 0}),
};
static const struct part umbrella[] = {
    FILL(ROLE_BODY, {-0.92f, 0.05f}, {-0.7f, -0.45f}, {-0.3f, -0.72f}, {0, -0.78f}, {0.3f, -0.72f}, {0.7f, -0.45f},
         {0.92f, 0.05f}, {0.62f, -0.08f}, {0.3f, 0.06f}, {0, -0.08f}, {-0.3f, 0.06f}, {-0.62f, -0.08f}),
    LINE(ROLE_DARK, 0.04f, {0, -0.78f}, {-0.3f, 0.06f}),
    LINE(ROLE_DARK, 0.04f, {0, -0.78f}, {0.3f, 0.06f}),
    LINE(ROLE_DARK, 0.07f, {0, -0.95f}, {0, 0.75f}, {-0.08f, 0.9f}, {-0.24f, 0.88f}, {-0.28f, 0.7f}),
};
static const struct figure figures[] = {{PARTS(anchor)},   {PARTS(butterfly)}, {PARTS(chair)},   {PARTS(cup)},
                                        {PARTS(fish)},     {PARTS(lamp)},      {PARTS(pyramid)}, {PARTS(sailboat)},
                                        {PARTS(scissors)}, {PARTS(umbrella)}};

void suite_draw_caltech101(struct picture *picture, int label)
{
    struct dice *dice = &picture->dice;
    bool blackboard = dice_chance(dice, 0.4f);
    struct colour paper = blackboard ? (struct colour){0.13f, 0.2f, 0.17f} : (struct colour){0.9f, 0.87f, 0.78f};
    struct colour pen = blackboard ? (struct colour){0.9f, 0.9f, 0.86f} : (struct colour){0.15f, 0.13f, 0.2f};
    picture_backdrop(picture, paper, 20);
    struct frame frame = picture_subject(picture, 0.7f, 0.92f);
    struct paint hatching = {
        .pattern = PATTERN_STRIPES, .first = paper, .second = colour_mix(paper, pen, 0.55f), .share = 0.35f};
    hatching.period = dice_between(dice, 3.5f, 6);
    paint_turn(&hatching, dice_between(dice, 0.08f, 0.17f));
    struct paint paints[ROLES] = {hatching, hatching, paint_solid(colour_mix(paper, pen, 0.8f)), hatching};
    if (dice_chance(dice, 0.6f))
        picture_figure(picture, &frame, &figures[label], paints);
    for (int pass = 0; pass < 2; pass++)
        picture_outline(picture, &frame, &figures[label], picture_ink(picture, pen));
}

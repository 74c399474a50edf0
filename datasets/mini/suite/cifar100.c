/* Small coloured photographs: round, shaded things on soft backgrounds. */
#include "datasets/mini/suite/picture.h"

const char *const cifar100_names[] = {"apple", "bird",  "bottle",   "cat",    "dog",
                                      "fish",  "house", "mushroom", "rabbit", "tree"};
enum { APPLE, BIRD, BOTTLE, CAT, DOG, FISH, HOUSE, MUSHROOM, RABBIT, TREE };

static const struct part apple[] = {
    OVAL(ROLE_BODY, -0.28f, 0.12f, 0.52f, 0.66f),
    OVAL(ROLE_BODY, 0.28f, 0.12f, 0.52f, 0.66f),
    LINE(ROLE_DARK, 0.1f, {0, -0.4f}, {-0.06f, -0.65f}, {0.06f, -0.88f}),
    FILL(ROLE_DETAIL, {0.04f, -0.62f}, {0.3f, -0.9f}, {0.55f, -0.78f}, {0.32f, -0.58f}),
    OVAL(ROLE_LIGHT, -0.4f, -0.15f, 0.12f, 0.17f),
};
static const struct part bird[] = {
    FILL(ROLE_BODY, {-0.6f, -0.55f}, {-0.25f, -0.6f}, {-0.05f, -0.25f}, {0.45f, 0}, {0.98f, 0.4f}, {0.4f, 0.42f},
         {-0.1f, 0.62f}, {-0.5f, 0.35f}, {-0.62f, -0.1f}),
    FILL(ROLE_DETAIL, {-0.15f, -0.15f}, {0.5f, 0.1f}, {0.7f, 0.38f}, {0.05f, 0.35f}),
    FILL(ROLE_DARK, {-0.6f, -0.45f}, {-0.95f, -0.3f}, {-0.58f, -0.25f}),
    OVAL(ROLE_DARK, -0.42f, -0.4f, 0.08f, 0.08f),
    LINE(ROLE_DARK, 0.07f, {-0.15f, 0.6f}, {-0.2f, 0.92f}),
    LINE(ROLE_DARK, 0.07f, {0.05f, 0.58f}, {0.05f, 0.92f}),
};
static const struct part bottle[] = {
    FILL(ROLE_BODY, {-0.12f, -0.78f}, {0.12f, -0.78f}, {0.12f, -0.45f}, {0.3f, -0.2f}, {0.33f, 0.85f}, {0.2f, 0.95f},
         {-0.2f, 0.95f}, {-0.33f, 0.85f}, {-0.3f, -0.2f}, {-0.12f, -0.45f}),
    FILL(ROLE_DARK, {-0.14f, -0.95f}, {0.14f, -0.95f}, {0.14f, -0.76f}, {-0.14f, -0.76f}),
    FILL(ROLE_DETAIL, {-0.33f, 0.1f}, {0.33f, 0.1f}, {0.33f, 0.55f}, {-0.33f, 0.55f}),
    LINE(ROLE_LIGHT, 0.07f, {-0.18f, -0.15f}, {-0.2f, 0.8f}),
};
static const struct part fish[] = {
    FILL(ROLE_BODY, {-0.88f, 0.02f}, {-0.6f, -0.3f}, {-0.15f, -0.42f}, {0.3f, -0.22f}, {0.55f, -0.04f}, {0.95f, -0.4f},
         {0.88f, 0.05f}, {0.95f, 0.45f}, {0.55f, 0.12f}, {0.2f, 0.34f}, {-0.3f, 0.44f}, {-0.65f, 0.28f}),
    FILL(ROLE_DETAIL, {-0.25f, -0.4f}, {0.05f, -0.72f}, {0.3f, -0.24f}),
    FILL(ROLE_DETAIL, {-0.2f, 0.42f}, {0.05f, 0.7f}, {0.15f, 0.36f}),
    OVAL(ROLE_LIGHT, -0.62f, -0.06f, 0.1f, 0.1f),
    OVAL(ROLE_DARK, -0.64f, -0.06f, 0.05f, 0.05f),
};
static const struct part house[] = {
    FILL(ROLE_BODY, {-0.75f, -0.05f}, {0.35f, -0.05f}, {0.35f, 0.85f}, {-0.75f, 0.85f}),
    FILL(ROLE_LIGHT, {0.35f, -0.05f}, {0.85f, -0.15f}, {0.85f, 0.7f}, {0.35f, 0.85f}),
    FILL(ROLE_DETAIL, {-0.9f, -0.02f}, {-0.35f, -0.75f}, {0.55f, -0.8f}, {0.35f, -0.02f}),
    FILL(ROLE_DETAIL, {0.35f, -0.02f}, {0.55f, -0.8f}, {0.95f, -0.12f}),
    FILL(ROLE_DARK, {-0.35f, 0.35f}, {-0.05f, 0.35f}, {-0.05f, 0.85f}, {-0.35f, 0.85f}),
    FILL(ROLE_DARK, {0.48f, 0.15f}, {0.7f, 0.12f}, {0.7f, 0.4f}, {0.48f, 0.42f}),
};
static const struct part mushroom[] = {
    FILL(ROLE_LIGHT, {-0.2f, 0}, {0.2f, 0}, {0.24f, 0.5f}, {0.36f, 0.92f}, {-0.36f, 0.92f}, {-0.24f, 0.5f}),
    OVAL(ROLE_BODY, 0, -0.25f, 0.85f, 0.5f),
    OVAL(ROLE_LIGHT, 0, 0.1f, 0.74f, 0.16f),
    OVAL(ROLE_DETAIL, -0.3f, -0.38f, 0.14f, 0.1f),
    OVAL(ROLE_DETAIL, 0.25f, -0.45f, 0.12f, 0.08f),
    OVAL(ROLE_DETAIL, 0.5f, -0.2f, 0.1f, 0.08f),
};
static const struct part tree[] = {
    FILL(ROLE_DARK, {-0.1f, 0.2f}, {0.1f, 0.2f}, {0.2f, 0.95f}, {-0.2f, 0.95f}),
    OVAL(ROLE_BODY, -0.35f, 0, 0.42f, 0.38f),
    OVAL(ROLE_BODY, 0.38f, -0.02f, 0.42f, 0.38f),
    OVAL(ROLE_BODY, 0, -0.42f, 0.5f, 0.48f),
    OVAL(ROLE_DETAIL, -0.2f, -0.5f, 0.2f, 0.16f),
    OVAL(ROLE_DETAIL, 0.3f, -0.12f, 0.18f, 0.14f),
};

static const struct thing {
    struct figure figure;
    struct colour body, detail;
} things[] = {
    [APPLE] = {{PARTS(apple)}, {0.8f, 0.18f, 0.15f}, {0.3f, 0.6f, 0.2f}},
    [BIRD] = {{PARTS(bird)}, {0.3f, 0.45f, 0.75f}, {0.2f, 0.3f, 0.5f}},
    [BOTTLE] = {{PARTS(bottle)}, {0.15f, 0.45f, 0.25f}, {0.9f, 0.85f, 0.65f}},
    [FISH] = {{PARTS(fish)}, {0.92f, 0.55f, 0.2f}, {0.85f, 0.35f, 0.15f}},
    [HOUSE] = {{PARTS(house)}, {0.85f, 0.75f, 0.58f}, {0.65f, 0.25f, 0.18f}},
    [MUSHROOM] = {{PARTS(mushroom)}, {0.72f, 0.3f, 0.2f}, {0.92f, 0.88f, 0.8f}},
    [TREE] = {{PARTS(tree)}, {0.2f, 0.48f, 0.2f}, {0.4f, 0.65f, 0.3f}},
};

static struct coat any_coat(struct picture *picture)
{
    static const struct colour furs[] = {
        {0.15f, 0.14f, 0.15f}, {0.55f, 0.36f, 0.2f}, {0.9f, 0.6f, 0.25f}, {0.55f, 0.55f, 0.57f}, {0.9f, 0.88f, 0.84f}};
    struct coat coat = {.main = furs[dice_below(&picture->dice, 5)],
                        .pattern = (enum coat_pattern)dice_below(&picture->dice, 3)};
    coat.second = picture_shade(coat.main, coat.main.r < 0.3f ? 0.5f : -0.65f);
    return coat;
}

/* Sitting, from the front. */
static void sitting_pet(struct picture *picture, const struct frame *frame, enum pet pet)
{
    struct coat coat = any_coat(picture);
    struct colour body = picture_shade(coat.main, -0.1f);
    if (pet != PET_RABBIT) {
        struct point tail[] = {{0.3f, 0.85f}, {0.75f, 0.8f}, {0.8f, pet == PET_CAT ? 0.2f : 0.45f}};
        canvas_stroke(&picture->canvas, frame, tail, 3, 0.14f, picture_ink(picture, body));
    }
    canvas_ellipse(&picture->canvas, frame, 0, 0.5f, 0.48f, 0.5f, picture_ink(picture, body));
    for (int side = -1; side <= 1; side += 2)
        canvas_ellipse(&picture->canvas, frame, 0.22f * (float)side, 0.88f, 0.16f, 0.1f,
                       picture_ink(picture, picture_shade(coat.main, 0.15f)));
    struct frame head = frame_place(*frame, 0, -0.35f, 0.58f, 0.6f, 0);
    picture_pet_head(picture, &head, pet, &coat);
}

static void shaded_thing(struct picture *picture, const struct frame *frame, const struct thing *thing)
{
    struct dice *dice = &picture->dice;
    struct colour body = colour_jitter(dice, thing->body, 0.15f), detail = colour_jitter(dice, thing->detail, 0.12f);
    struct paint shaded = {.pattern = PATTERN_GRADIENT, .period = 36, .x = 32, .y = 32};
    shaded.first = picture_shade(body, 0.25f);
    shaded.second = picture_shade(body, -0.4f);
    paint_turn(&shaded, 0.1f);
    struct paint paints[ROLES] = {shaded, paint_solid(detail), paint_solid(picture_shade(body, -0.75f)),
                                  paint_solid((struct colour){0.93f, 0.9f, 0.85f})};
    figure_draw(&picture->canvas, frame, &thing->figure, paints, picture->difficulty->wobble, dice);
}

void suite_draw_cifar100(struct picture *picture, int label)
{
    struct dice *dice = &picture->dice;
    struct colour ground = {dice_between(dice, 0.35f, 0.75f), dice_between(dice, 0.4f, 0.8f),
                            dice_between(dice, 0.35f, 0.8f)};
    picture_backdrop(picture, ground, dice_between(dice, 10, 30));
    struct frame frame = picture_subject(picture, 0.72f, 0.95f);
    struct paint shadow = {.first = {0.05f, 0.05f, 0.05f}, .opacity = 0.35f};
    canvas_ellipse(&picture->canvas, &frame, 0.1f, 0.92f, 0.8f, 0.12f, &shadow);
    if (label == CAT || label == DOG || label == RABBIT)
        sitting_pet(picture, &frame, label == CAT ? PET_CAT : label == DOG ? PET_DOG : PET_RABBIT);
    else
        shaded_thing(picture, &frame, &things[label]);
}

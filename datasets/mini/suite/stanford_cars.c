/* Vehicles in front of walls, facing right: bodies in two tones, with glass, bumpers and lights. */
#include "datasets/mini/suite/picture.h"

const char *const stanford_cars_names[] = {"Bus",          "Convertible", "Delivery Truck", "Hatchback", "Limousine",
                                           "Pickup Truck", "Sedan",       "Sports Car",     "Van"};

static const struct part bus[] = {
    FILL(ROLE_BODY, {-0.95f, -0.55f}, {0.88f, -0.55f}, {0.96f, -0.4f}, {0.97f, 0.4f}, {-0.97f, 0.4f}),
    FILL(ROLE_LIGHT, {-0.88f, -0.4f}, {-0.58f, -0.4f}, {-0.58f, -0.05f}, {-0.88f, -0.05f}),
    FILL(ROLE_LIGHT, {-0.5f, -0.4f}, {-0.18f, -0.4f}, {-0.18f, -0.05f}, {-0.5f, -0.05f}),
    FILL(ROLE_LIGHT, {-0.1f, -0.4f}, {0.22f, -0.4f}, {0.22f, -0.05f}, {-0.1f, -0.05f}),
    FILL(ROLE_DARK, {0.32f, -0.4f}, {0.55f, -0.4f}, {0.55f, 0.36f}, {0.32f, 0.36f}),
    FILL(ROLE_LIGHT, {0.65f, -0.4f}, {0.88f, -0.4f}, {0.93f, 0}, {0.65f, 0}),
};
static const struct part convertible[] = {
    FILL(ROLE_BODY, {-0.95f, 0.08f}, {-0.6f, 0.02f}, {0.15f, 0.02f}, {0.8f, 0.12f}, {0.95f, 0.25f}, {0.95f, 0.42f},
         {-0.95f, 0.42f}),
    LINE(ROLE_DARK, 0.06f, {0.2f, 0.02f}, {0.02f, -0.28f}),
    FILL(ROLE_DARK, {-0.45f, 0.04f}, {-0.48f, -0.16f}, {-0.32f, -0.16f}, {-0.28f, 0.04f}),
    FILL(ROLE_DARK, {-0.15f, 0.04f}, {-0.18f, -0.14f}, {-0.04f, -0.14f}, {0, 0.04f}),
};
static const struct part delivery[] = {
    FILL(ROLE_DETAIL, {-0.97f, -0.7f}, {0.42f, -0.7f}, {0.42f, 0.32f}, {-0.97f, 0.32f}),
    FILL(ROLE_BODY, {0.45f, -0.35f}, {0.72f, -0.35f}, {0.92f, 0}, {0.96f, 0.4f}, {0.45f, 0.4f}),
    FILL(ROLE_LIGHT, {0.55f, -0.25f}, {0.7f, -0.25f}, {0.83f, 0}, {0.55f, 0}),
    FILL(ROLE_DARK, {-0.97f, 0.32f}, {0.5f, 0.32f}, {0.5f, 0.42f}, {-0.97f, 0.42f}),
};
static const struct part hatchback[] = {
    FILL(ROLE_BODY, {-0.78f, 0}, {-0.65f, -0.4f}, {0.1f, -0.42f}, {0.4f, -0.02f}, {0.78f, 0.1f}, {0.82f, 0.42f},
         {-0.8f, 0.42f}),
    FILL(ROLE_LIGHT, {-0.62f, -0.02f}, {-0.54f, -0.3f}, {-0.25f, -0.3f}, {-0.25f, -0.02f}),
    FILL(ROLE_LIGHT, {-0.18f, -0.02f}, {-0.18f, -0.3f}, {0.06f, -0.3f}, {0.26f, -0.02f}),
};
static const struct part limousine[] = {
    FILL(ROLE_BODY, {-0.98f, 0.12f}, {-0.8f, 0.06f}, {-0.68f, -0.18f}, {0.5f, -0.18f}, {0.66f, 0.06f}, {0.98f, 0.16f},
         {0.98f, 0.4f}, {-0.98f, 0.4f}),
    FILL(ROLE_DARK, {-0.7f, 0.05f}, {-0.62f, -0.12f}, {-0.2f, -0.12f}, {-0.2f, 0.05f}),
    FILL(ROLE_DARK, {-0.14f, 0.05f}, {-0.14f, -0.12f}, {0.2f, -0.12f}, {0.2f, 0.05f}),
    FILL(ROLE_LIGHT, {0.26f, 0.05f}, {0.26f, -0.12f}, {0.46f, -0.12f}, {0.56f, 0.05f}),
};
static const struct part pickup[] = {
    FILL(ROLE_BODY, {-0.95f, 0.02f}, {-0.05f, 0.02f}, {-0.05f, -0.42f}, {0.35f, -0.42f}, {0.55f, -0.02f},
         {0.92f, 0.06f}, {0.95f, 0.42f}, {-0.95f, 0.42f}),
    FILL(ROLE_LIGHT, {0.04f, -0.02f}, {0.04f, -0.32f}, {0.3f, -0.32f}, {0.43f, -0.02f}),
    LINE(ROLE_DARK, 0.05f, {-0.93f, 0.1f}, {-0.08f, 0.1f}),
};
static const struct part sedan[] = {
    FILL(ROLE_BODY, {-0.95f, 0.08f}, {-0.62f, 0.02f}, {-0.4f, -0.32f}, {0.18f, -0.32f}, {0.45f, 0.02f}, {0.9f, 0.12f},
         {0.95f, 0.42f}, {-0.95f, 0.42f}),
    FILL(ROLE_LIGHT, {-0.48f, 0}, {-0.33f, -0.23f}, {-0.1f, -0.23f}, {-0.1f, 0}),
    FILL(ROLE_LIGHT, {-0.03f, 0}, {-0.03f, -0.23f}, {0.14f, -0.23f}, {0.32f, 0}),
};
static const struct part sports[] = {
    FILL(ROLE_BODY, {-0.96f, 0}, {-0.7f, 0.02f}, {-0.3f, -0.16f}, {0.02f, -0.16f}, {0.4f, 0.08f}, {0.98f, 0.26f},
         {0.98f, 0.42f}, {-0.96f, 0.42f}),
    FILL(ROLE_DARK, {-0.36f, 0.04f}, {-0.24f, -0.1f}, {0, -0.1f}, {0.22f, 0.06f}),
    LINE(ROLE_DARK, 0.06f, {-0.98f, -0.12f}, {-0.7f, -0.12f}),
};
static const struct part van[] = {
    FILL(ROLE_BODY, {-0.9f, -0.5f}, {0.4f, -0.52f}, {0.72f, -0.05f}, {0.92f, 0.05f}, {0.94f, 0.42f}, {-0.92f, 0.42f}),
    FILL(ROLE_LIGHT, {0.12f, -0.04f}, {0.12f, -0.4f}, {0.36f, -0.4f}, {0.58f, -0.04f}),
    LINE(ROLE_DARK, 0.04f, {-0.3f, -0.45f}, {-0.3f, 0.35f}),
};

static const struct vehicle {
    struct figure figure;
    float rear, front, radius; /* of the wheels */
} vehicles[] = {{{PARTS(bus)}, -0.55f, 0.65f, 0.17f},       {{PARTS(convertible)}, -0.58f, 0.58f, 0.19f},
                {{PARTS(delivery)}, -0.6f, 0.7f, 0.17f},    {{PARTS(hatchback)}, -0.48f, 0.5f, 0.18f},
                {{PARTS(limousine)}, -0.72f, 0.74f, 0.15f}, {{PARTS(pickup)}, -0.58f, 0.62f, 0.2f},
                {{PARTS(sedan)}, -0.55f, 0.6f, 0.18f},      {{PARTS(sports)}, -0.6f, 0.62f, 0.2f},
                {{PARTS(van)}, -0.55f, 0.6f, 0.18f}};

static void wheel(struct picture *picture, const struct frame *frame, float x, float radius)
{
    struct canvas *canvas = &picture->canvas;
    canvas_ellipse(canvas, frame, x, 0.42f, radius * 1.15f, radius * 1.15f,
                   picture_ink(picture, (struct colour){0.2f, 0.2f, 0.2f}));
    canvas_ellipse(canvas, frame, x, 0.44f, radius, radius, picture_ink(picture, (struct colour){0.06f, 0.06f, 0.06f}));
    canvas_ellipse(canvas, frame, x, 0.44f, radius * 0.55f, radius * 0.55f,
                   picture_ink(picture, (struct colour){0.75f, 0.76f, 0.78f}));
    canvas_ellipse(canvas, frame, x, 0.44f, radius * 0.2f, radius * 0.2f,
                   picture_ink(picture, (struct colour){0.3f, 0.3f, 0.3f}));
}

void suite_draw_stanford_cars(struct picture *picture, int label)
{
    struct dice *dice = &picture->dice;
    const struct vehicle *vehicle = &vehicles[label];
    picture_backdrop(picture, (struct colour){0.68f, 0.66f, 0.62f}, dice_between(dice, 8, 20));
    struct frame frame = picture_subject(picture, 0.75f, 0.95f);
    struct colour body = colour_random(dice), other = colour_random(dice);
    canvas_rectangle(&picture->canvas, &frame, -4, 0.5f, 4, 4,
                     picture_ink(picture, (struct colour){0.45f, 0.45f, 0.46f}));
    struct paint shadow = {.first = {0, 0, 0}, .opacity = 0.4f};
    canvas_ellipse(&picture->canvas, &frame, 0, 0.62f, 0.95f, 0.08f, &shadow);
    struct paint gloss = {.pattern = PATTERN_GRADIENT,
                          .first = picture_shade(body, 0.3f),
                          .second = picture_shade(body, -0.35f),
                          .period = 24};
    gloss.x = 32;
    gloss.y = frame.y0 + 4;
    paint_turn(&gloss, 0.25f);
    struct paint paints[ROLES] = {gloss, paint_solid(other), paint_solid((struct colour){0.1f, 0.1f, 0.12f}),
                                  paint_solid((struct colour){0.7f, 0.82f, 0.9f})};
    figure_draw(&picture->canvas, &frame, &vehicle->figure, paints, picture->difficulty->wobble, dice);
    wheel(picture, &frame, vehicle->rear, vehicle->radius);
    wheel(picture, &frame, vehicle->front, vehicle->radius);
    canvas_ellipse(&picture->canvas, &frame, 0.9f, 0.22f, 0.05f, 0.06f,
                   picture_ink(picture, (struct colour){0.98f, 0.95f, 0.7f}));
}

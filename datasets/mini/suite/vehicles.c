/* aircraft: in flight, seen from below against clouds, bodies as outlines, half a plane each, mirrored. stanford_cars:
 * vehicles in front of walls, facing right, bodies in two tones, with glass, bumpers and lights. */
#include "datasets/mini/suite/picture.h"

/* --- aircraft ----------------------------------------------------------------------------------------------------- */

const char *const aircraft_names[] = {"biplane",    "delta wing jet",  "four engine airliner", "glider",
                                      "helicopter", "propeller plane", "swept wing jet",       "two engine airliner"};
enum { BIPLANE, DELTA, FOUR_ENGINES, GLIDER, HELICOPTER, PROPELLER, SWEPT, TWO_ENGINES };

/* From nose to tail along the right side. */
static const struct part halves[] = {
    [BIPLANE] = FILL(ROLE_BODY, {0, -0.75f}, {0.12f, -0.6f}, {0.12f, -0.5f}, {0.8f, -0.5f}, {0.85f, -0.2f},
                     {0.12f, -0.18f}, {0.07f, 0.6f}, {0.35f, 0.62f}, {0.35f, 0.82f}, {0, 0.85f}),
    [DELTA] = FILL(ROLE_BODY, {0, -0.98f}, {0.08f, -0.6f}, {0.12f, -0.3f}, {0.75f, 0.7f}, {0.72f, 0.82f},
                   {0.15f, 0.75f}, {0.1f, 0.92f}, {0, 0.92f}),
    [FOUR_ENGINES] = FILL(ROLE_BODY, {0, -0.95f}, {0.12f, -0.75f}, {0.13f, -0.2f}, {0.92f, 0.32f}, {0.95f, 0.45f},
                          {0.13f, 0.2f}, {0.09f, 0.65f}, {0.36f, 0.86f}, {0.36f, 0.95f}, {0, 0.88f}),
    [GLIDER] = FILL(ROLE_BODY, {0, -0.6f}, {0.07f, -0.4f}, {0.06f, -0.22f}, {0.98f, -0.16f}, {0.98f, -0.09f},
                    {0.05f, -0.04f}, {0.025f, 0.65f}, {0.22f, 0.68f}, {0.22f, 0.76f}, {0, 0.78f}),
    [HELICOPTER] = FILL(ROLE_BODY, {0, -0.6f}, {0.18f, -0.5f}, {0.26f, -0.2f}, {0.22f, 0.1f}, {0.06f, 0.25f},
                        {0.05f, 0.8f}, {0.16f, 0.82f}, {0.16f, 0.9f}, {0, 0.9f}),
    [PROPELLER] = FILL(ROLE_BODY, {0, -0.8f}, {0.13f, -0.7f}, {0.13f, -0.4f}, {0.85f, -0.32f}, {0.88f, -0.1f},
                       {0.13f, -0.05f}, {0.06f, 0.62f}, {0.36f, 0.64f}, {0.36f, 0.82f}, {0, 0.86f}),
    [SWEPT] = FILL(ROLE_BODY, {0, -0.98f}, {0.08f, -0.7f}, {0.1f, -0.1f}, {0.72f, 0.5f}, {0.74f, 0.64f}, {0.1f, 0.3f},
                   {0.09f, 0.6f}, {0.34f, 0.86f}, {0.34f, 0.96f}, {0, 0.86f}),
    [TWO_ENGINES] = FILL(ROLE_BODY, {0, -0.92f}, {0.11f, -0.75f}, {0.12f, -0.15f}, {0.88f, 0.26f}, {0.9f, 0.4f},
                         {0.12f, 0.2f}, {0.08f, 0.65f}, {0.34f, 0.82f}, {0.34f, 0.92f}, {0, 0.88f}),
};

static void mirrored_outline(struct picture *picture, const struct frame *frame, const struct part *half,
                             const struct paint *paint)
{
    struct point points[CANVAS_POINTS];
    size_t count = half->count;
    for (size_t i = 0; i < count; i++) {
        float wobble = picture->difficulty->wobble;
        float x = half->points[i].x + picture_between(picture, -wobble, wobble), y = half->points[i].y;
        points[i] = (struct point){x, y};
        points[2 * count - 1 - i] = (struct point){-x, y};
    }
    canvas_polygon(&picture->canvas, frame, points, 2 * count, paint);
}

static void engine_pods(struct picture *picture, const struct frame *frame, int pairs)
{
    struct colour metal = {0.25f, 0.26f, 0.3f};
    for (int pair = 0; pair < pairs; pair++)
        for (int side = -1; side <= 1; side += 2) {
            float x = (pairs == 1 ? 0.38f : 0.32f + 0.3f * (float)pair) * (float)side,
                  y = x * (float)side * 0.62f - 0.3f;
            picture_rectangle(picture, frame, x - 0.055f, y - 0.1f, x + 0.055f, y + 0.14f, metal);
        }
}

/* A turning propeller, drawn as a disc, or a rotor, drawn as a disc with two blades. */
static void rotor(struct picture *picture, const struct frame *frame, float y, float radius, float opacity)
{
    struct paint disc = {.first = {0.85f, 0.87f, 0.9f}, .opacity = opacity};
    float turns = picture_between(picture, 0, 1);
    canvas_ellipse(&picture->canvas, frame, 0, y, radius, radius < 0.4f ? radius * 0.2f : radius, &disc);
    for (int blade = 0; blade < 2 && radius > 0.4f; blade++) {
        float dx = radius * turn_cosine(turns + 0.25f * (float)blade),
              dy = radius * turn_sine(turns + 0.25f * (float)blade);
        picture_line(picture, frame, (struct point){-dx, y - dy}, (struct point){dx, y + dy}, 0.05f,
                     (struct colour){0.15f, 0.15f, 0.18f});
    }
}

void suite_draw_aircraft(struct picture *picture, int label)
{
    picture_backdrop(picture, (struct colour){0.5f, 0.65f, 0.8f}, picture_between(picture, 14, 26));
    struct frame frame = picture_subject(picture, 0.68f, 0.9f);
    /* seen at a slant: the far wing is shorter */
    frame = frame_place(frame, 0, 0, picture_between(picture, 0.75f, 1), 1, 0);
    struct colour body = colour_jitter(&picture->dice, (struct colour){0.78f, 0.79f, 0.82f}, 0.18f);
    struct frame shadow = frame_place(frame, 0.03f, 0.04f, 1.04f, 1.02f, 0);
    if (label == FOUR_ENGINES || label == TWO_ENGINES)
        engine_pods(picture, &frame, label == FOUR_ENGINES ? 2 : 1);
    mirrored_outline(picture, &shadow, &halves[label], picture_ink(picture, picture_shade(body, -0.65f)));
    struct paint skin = {.pattern = PATTERN_GRADIENT,
                         .first = body,
                         .second = picture_shade(body, -0.35f),
                         .period = 30,
                         .x = 32,
                         .y = 32};
    mirrored_outline(picture, &frame, &halves[label], &skin);
    picture_line(picture, &frame, (struct point){0, 0.5f}, (struct point){0, 0.85f}, 0.06f,
                 colour_random(&picture->dice));
    if (label == BIPLANE)
        picture_rectangle(picture, &frame, -0.78f, -0.08f, 0.78f, 0.08f, picture_shade(body, -0.3f));
    if (label == BIPLANE || label == PROPELLER)
        rotor(picture, &frame, -0.8f, 0.32f, 0.7f);
    if (label == HELICOPTER)
        rotor(picture, &frame, -0.18f, 0.78f, 0.25f);
}

/* --- stanford_cars ------------------------------------------------------------------------------------------------ */

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
    picture_ellipse(picture, frame, x, 0.42f, radius * 1.15f, radius * 1.15f, (struct colour){0.2f, 0.2f, 0.2f});
    picture_ellipse(picture, frame, x, 0.44f, radius, radius, (struct colour){0.06f, 0.06f, 0.06f});
    picture_ellipse(picture, frame, x, 0.44f, radius * 0.55f, radius * 0.55f, (struct colour){0.75f, 0.76f, 0.78f});
    picture_ellipse(picture, frame, x, 0.44f, radius * 0.2f, radius * 0.2f, (struct colour){0.3f, 0.3f, 0.3f});
}

void suite_draw_stanford_cars(struct picture *picture, int label)
{
    struct dice *dice = &picture->dice;
    const struct vehicle *vehicle = &vehicles[label];
    picture_backdrop(picture, (struct colour){0.68f, 0.66f, 0.62f}, dice_between(dice, 8, 20));
    struct frame frame = picture_subject(picture, 0.75f, 0.95f);
    struct colour body = colour_random(dice), other = colour_random(dice);
    picture_rectangle(picture, &frame, -4, 0.5f, 4, 4, (struct colour){0.45f, 0.45f, 0.46f});
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
    picture_figure(picture, &frame, &vehicle->figure, paints);
    wheel(picture, &frame, vehicle->rear, vehicle->radius);
    wheel(picture, &frame, vehicle->front, vehicle->radius);
    picture_ellipse(picture, &frame, 0.9f, 0.22f, 0.05f, 0.06f, (struct colour){0.98f, 0.95f, 0.7f});
}

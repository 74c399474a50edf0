/* Aircraft in flight, seen from below against clouds: bodies as outlines, half a plane each, mirrored. */
#include "datasets/mini/suite/picture.h"

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
            canvas_rectangle(&picture->canvas, frame, x - 0.055f, y - 0.1f, x + 0.055f, y + 0.14f,
                             picture_ink(picture, metal));
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
        canvas_line(&picture->canvas, frame, (struct point){-dx, y - dy}, (struct point){dx, y + dy}, 0.05f,
                    picture_ink(picture, (struct colour){0.15f, 0.15f, 0.18f}));
    }
}

void suite_draw_aircraft(struct picture *picture, int label)
{
    struct canvas *canvas = &picture->canvas;
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
    canvas_line(canvas, &frame, (struct point){0, 0.5f}, (struct point){0, 0.85f}, 0.06f,
                picture_ink(picture, colour_random(&picture->dice)));
    if (label == BIPLANE)
        canvas_rectangle(canvas, &frame, -0.78f, -0.08f, 0.78f, 0.08f,
                         picture_ink(picture, picture_shade(body, -0.3f)));
    if (label == BIPLANE || label == PROPELLER)
        rotor(picture, &frame, -0.8f, 0.32f, 0.7f);
    if (label == HELICOPTER)
        rotor(picture, &frame, -0.18f, 0.78f, 0.25f);
}

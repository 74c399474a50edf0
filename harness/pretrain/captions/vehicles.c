/* Road vehicles from the side, planes from above. */
#include "harness/pretrain/captions/sketch.h"

/* front is on the left, the road at 0.55; wheels at x */
struct vehicle {
    const char *name;
    struct part body, cabin, extra;
    int wheel_count;
    float wheels[3];
    float radius;
};

#define NOTHING                                                                                                        \
    {                                                                                                                  \
        PART_FILL, ROLE_BODY, 0, 0, NULL                                                                               \
    }

static const struct vehicle vehicles[] = {
    {"sedan",
     FILL(ROLE_BODY, {-0.95f, 0.5f}, {-0.95f, 0.15f}, {-0.5f, 0.05f}, {-0.3f, -0.3f}, {0.3f, -0.3f}, {0.55f, 0.05f},
          {0.95f, 0.1f}, {0.95f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.4f, 0.05f}, {-0.25f, -0.22f}, {0.25f, -0.22f}, {0.42f, 0.05f}),
     NOTHING,
     2,
     {-0.55f, 0.55f},
     0.19f},
    {"hatchback",
     FILL(ROLE_BODY, {-0.8f, 0.5f}, {-0.8f, 0.15f}, {-0.4f, 0.02f}, {-0.2f, -0.35f}, {0.6f, -0.35f}, {0.8f, 0.1f},
          {0.8f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.3f, 0.02f}, {-0.15f, -0.26f}, {0.52f, -0.26f}, {0.62f, 0.02f}),
     NOTHING,
     2,
     {-0.45f, 0.48f},
     0.19f},
    {"sports car",
     FILL(ROLE_BODY, {-0.98f, 0.5f}, {-0.95f, 0.25f}, {-0.3f, 0.1f}, {0, -0.12f}, {0.4f, -0.1f}, {0.7f, 0.12f},
          {0.98f, 0.1f}, {0.98f, 0.5f}),
     FILL(ROLE_DARK, {-0.15f, 0.1f}, {0.03f, -0.05f}, {0.36f, -0.03f}, {0.5f, 0.1f}),
     NOTHING,
     2,
     {-0.6f, 0.6f},
     0.21f},
    {"convertible",
     FILL(ROLE_BODY, {-0.95f, 0.5f}, {-0.95f, 0.15f}, {-0.35f, 0.05f}, {0.6f, 0.05f}, {0.95f, 0.1f}, {0.95f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.38f, 0.05f}, {-0.2f, -0.25f}, {-0.13f, -0.25f}, {-0.27f, 0.05f}),
     FILL(ROLE_DARK, {0.1f, 0.05f}, {0.12f, -0.12f}, {0.28f, -0.12f}, {0.3f, 0.05f}),
     2,
     {-0.55f, 0.55f},
     0.19f},
    {"pickup truck",
     FILL(ROLE_BODY, {-0.95f, 0.5f}, {-0.95f, 0.05f}, {-0.55f, 0}, {-0.4f, -0.4f}, {0.1f, -0.4f}, {0.1f, 0.05f},
          {0.95f, 0.05f}, {0.95f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.45f, 0}, {-0.33f, -0.3f}, {0, -0.3f}, {0, 0}),
     NOTHING,
     2,
     {-0.55f, 0.6f},
     0.21f},
    {"van",
     FILL(ROLE_BODY, {-0.9f, 0.5f}, {-0.9f, 0}, {-0.65f, -0.5f}, {0.9f, -0.5f}, {0.9f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.75f, 0}, {-0.57f, -0.38f}, {-0.2f, -0.38f}, {-0.2f, 0}),
     NOTHING,
     2,
     {-0.55f, 0.55f},
     0.19f},
    {"bus",
     FILL(ROLE_BODY, {-0.97f, 0.5f}, {-0.97f, -0.5f}, {0.97f, -0.5f}, {0.97f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.9f, -0.38f}, {0.85f, -0.38f}, {0.85f, -0.02f}, {-0.9f, -0.02f}),
     NOTHING,
     2,
     {-0.55f, 0.6f},
     0.18f},
    {"delivery truck",
     FILL(ROLE_BODY, {-0.97f, 0.5f}, {-0.97f, 0}, {-0.8f, -0.3f}, {-0.5f, -0.3f}, {-0.5f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.88f, 0}, {-0.76f, -0.2f}, {-0.6f, -0.2f}, {-0.6f, 0}),
     FILL(ROLE_DETAIL, {-0.45f, -0.65f}, {0.97f, -0.65f}, {0.97f, 0.42f}, {-0.45f, 0.42f}),
     3,
     {-0.7f, 0.3f, 0.7f},
     0.18f},
    {"limousine",
     FILL(ROLE_BODY, {-0.98f, 0.45f}, {-0.98f, 0.2f}, {-0.7f, 0.1f}, {-0.58f, -0.12f}, {0.6f, -0.12f}, {0.72f, 0.1f},
          {0.98f, 0.15f}, {0.98f, 0.45f}),
     FILL(ROLE_DARK, {-0.6f, 0.1f}, {-0.52f, -0.06f}, {0.54f, -0.06f}, {0.6f, 0.1f}),
     NOTHING,
     2,
     {-0.72f, 0.72f},
     0.15f},
    {"tractor",
     FILL(ROLE_BODY, {-0.8f, 0.35f}, {-0.8f, -0.05f}, {0, -0.05f}, {0, -0.6f}, {0.6f, -0.6f}, {0.6f, 0.35f}),
     FILL(ROLE_LIGHT, {0.08f, -0.1f}, {0.08f, -0.5f}, {0.5f, -0.5f}, {0.5f, -0.1f}),
     NOTHING,
     2,
     {-0.55f, 0.4f},
     0.36f},
    {"train",
     FILL(ROLE_BODY, {-0.97f, 0.45f}, {-0.85f, -0.25f}, {-0.6f, -0.45f}, {0.97f, -0.45f}, {0.97f, 0.45f}),
     FILL(ROLE_LIGHT, {-0.75f, -0.1f}, {-0.6f, -0.3f}, {0.9f, -0.3f}, {0.9f, -0.1f}),
     FILL(ROLE_DETAIL, {-0.92f, 0.1f}, {0.97f, 0.1f}, {0.97f, 0.22f}, {-0.93f, 0.22f}),
     3,
     {-0.6f, 0, 0.6f},
     0.14f},
    {"tow truck",
     FILL(ROLE_BODY, {-0.95f, 0.5f}, {-0.95f, 0.05f}, {-0.6f, 0}, {-0.45f, -0.4f}, {0, -0.4f}, {0, 0.2f}, {0.95f, 0.2f},
          {0.95f, 0.5f}),
     FILL(ROLE_LIGHT, {-0.5f, 0}, {-0.38f, -0.3f}, {-0.1f, -0.3f}, {-0.1f, 0}),
     LINE(ROLE_DARK, 0.09f, {0.2f, 0.2f}, {0.8f, -0.5f}, {0.85f, -0.1f}),
     2,
     {-0.55f, 0.6f},
     0.2f},
};

static void draw_wheels(struct sketch *sketch, const struct frame *frame, const struct vehicle *vehicle)
{
    struct paint tyre = paint_solid((struct colour){0.06f, 0.06f, 0.07f}),
                 hub = paint_solid((struct colour){0.7f, 0.7f, 0.72f});
    for (int i = 0; i < vehicle->wheel_count; i++) {
        float radius = vehicle->radius;
        canvas_ellipse(&sketch->canvas, frame, vehicle->wheels[i], 0.65f - radius, radius, radius, &tyre);
        canvas_ellipse(&sketch->canvas, frame, vehicle->wheels[i], 0.65f - radius, radius * 0.5f, radius * 0.5f, &hub);
    }
}

void draw_vehicle(struct sketch *sketch)
{
    static const char *const templates[] = {"a photo of a {}, a type of car.",
                                            "a photo of my {}.",
                                            "i love my {}!",
                                            "a photo of my new {}.",
                                            "a photo of my old {}.",
                                            "a photo of my dirty {}.",
                                            "a photo of my clean {}.",
                                            NULL};
    struct dice *dice = &sketch->dice;
    const struct vehicle *vehicle = &vehicles[dice_below(dice, sizeof vehicles / sizeof vehicles[0])];
    const struct tint *tint = sketch_tint(sketch);
    struct paint paints[ROLES];
    sketch_background(sketch, tint->colour);
    struct frame frame = sketch_centre(sketch, 0.65f, 0.95f);
    if (dice_chance(dice, 0.6f)) {
        struct paint road = sketch_solid(sketch, (struct colour){0.35f, 0.35f, 0.37f});
        canvas_rectangle(&sketch->canvas, &frame, -4, 0.6f, 4, 4, &road);
    }
    sketch_paints(sketch, tint->colour, sketch_other_tint(sketch, tint)->colour, paints);
    struct part parts[3] = {vehicle->body, vehicle->cabin, vehicle->extra};
    struct figure figure = {vehicle->name, parts, vehicle->extra.count > 0 ? 3 : 2};
    figure_draw(&sketch->canvas, &frame, &figure, paints, 0.03f, dice);
    draw_wheels(sketch, &frame, vehicle);
    sketch->templates = templates;
    sketch_say_sometimes(sketch, 0.6f, tint->name);
    sketch_say(sketch, vehicle->name);
    sketch_say_sometimes(sketch, 0.1f, "on the road");
}

/* Nose up. Half of a wing from root to tip, mirrored; sweep moves the tip back. */
struct plane {
    const char *name;
    float fuselage, span, root, tip, sweep, wing, tail;
    int engines;     /* under the wings, both sides together */
    int propellers;  /* discs in front of the wings or the nose */
    bool twin_wings; /* a second pair */
};

static const struct plane planes[] = {
    {"swept wing jet", 0.09f, 0.75f, 0.3f, 0.12f, 0.5f, -0.1f, 0.3f, 0, 0, false},
    {"straight wing jet", 0.1f, 0.8f, 0.24f, 0.2f, 0, -0.05f, 0.28f, 0, 0, false},
    {"delta wing jet", 0.08f, 0.7f, 0.95f, 0.06f, 0.85f, -0.15f, 0, 0, 0, false},
    {"two engine airliner", 0.13f, 0.9f, 0.3f, 0.1f, 0.38f, -0.1f, 0.36f, 2, 0, false},
    {"four engine airliner", 0.15f, 0.95f, 0.32f, 0.1f, 0.38f, -0.1f, 0.38f, 4, 0, false},
    {"propeller plane", 0.1f, 0.82f, 0.22f, 0.18f, 0, -0.25f, 0.28f, 0, 1, false},
    {"twin propeller plane", 0.11f, 0.9f, 0.22f, 0.16f, 0, -0.15f, 0.3f, 0, 2, false},
    {"glider", 0.05f, 0.98f, 0.11f, 0.07f, 0.02f, -0.15f, 0.2f, 0, 0, false},
    {"biplane", 0.1f, 0.7f, 0.2f, 0.2f, 0, -0.35f, 0.3f, 0, 1, true},
};
enum { PLANES = sizeof planes / sizeof planes[0] };

static void draw_wings(struct sketch *sketch, const struct frame *frame, float y, const struct plane *plane,
                       float scale, const struct paint *paint)
{
    for (int side = -1; side <= 1; side += 2) {
        float span = plane->span * scale * (float)side, sweep = plane->sweep * scale;
        struct point wing[] = {
            {0, y}, {span, y + sweep}, {span, y + sweep + plane->tip * scale}, {0, y + plane->root * scale}};
        canvas_polygon(&sketch->canvas, frame, wing, 4, paint);
    }
}

static void draw_engines(struct sketch *sketch, const struct frame *frame, const struct plane *plane,
                         const struct paint *dark)
{
    struct canvas *canvas = &sketch->canvas;
    int pairs = plane->engines / 2;
    for (int pair = 1; pair <= pairs; pair++)
        for (int side = -1; side <= 1; side += 2) {
            float out = (float)pair / (float)(pairs + 1) * plane->span,
                  y = plane->wing + plane->sweep * out / plane->span;
            canvas_ellipse(canvas, frame, out * (float)side, y, 0.055f, 0.14f, dark);
        }
    for (int i = 0; i < plane->propellers; i++) {
        float x = plane->propellers == 1 ? 0
                  : i == 0               ? -0.4f
                                         : 0.4f,
              y = plane->propellers == 1 ? -0.85f : plane->wing - 0.12f;
        canvas_line(canvas, frame, (struct point){x - 0.2f, y}, (struct point){x + 0.2f, y}, 0.05f, dark);
        canvas_ellipse(canvas, frame, x, y + 0.08f, 0.06f, 0.1f, dark);
    }
}

static void draw_helicopter(struct sketch *sketch, const struct frame *frame, const struct paint paints[ROLES])
{
    struct canvas *canvas = &sketch->canvas;
    canvas_ellipse(canvas, frame, 0, -0.2f, 0.25f, 0.42f, &paints[ROLE_BODY]);
    canvas_line(canvas, frame, (struct point){0, 0}, (struct point){0, 0.9f}, 0.1f, &paints[ROLE_BODY]);
    canvas_line(canvas, frame, (struct point){-0.18f, 0.85f}, (struct point){0.18f, 0.85f}, 0.08f, &paints[ROLE_DARK]);
    canvas_line(canvas, frame, (struct point){-0.75f, -0.8f}, (struct point){0.75f, 0.4f}, 0.07f, &paints[ROLE_DARK]);
    canvas_line(canvas, frame, (struct point){0.75f, -0.8f}, (struct point){-0.75f, 0.4f}, 0.07f, &paints[ROLE_DARK]);
}

void draw_plane(struct sketch *sketch)
{
    static const char *const templates[] = {"a photo of a {}, a type of aircraft.",
                                            "a photo of the {}, a type of aircraft.", NULL};
    static const char *const tints_of_planes[] = {"white", "gray", "red", "blue", "black", "green", "yellow"};
    struct dice *dice = &sketch->dice;
    int choice = dice_below(dice, PLANES + 1);
    const struct tint *tint = sketch_tint_of(sketch, tints_of_planes, 7);
    struct paint paints[ROLES];
    sketch_background(sketch, tint->colour);
    sketch_paints(sketch, tint->colour, sketch_other_tint(sketch, tint)->colour, paints);
    struct frame frame = sketch_centre(sketch, 0.7f, 0.95f);
    frame = frame_place(frame, 0, 0, 1, 1, dice_between(dice, -0.12f, 0.12f));
    sketch->templates = templates;
    sketch_say_sometimes(sketch, 0.5f, tint->name);
    if (choice == PLANES) {
        draw_helicopter(sketch, &frame, paints);
        sketch_say(sketch, "helicopter");
        return;
    }
    const struct plane *plane = &planes[choice];
    struct plane tail = *plane;
    tail.sweep = tail.sweep * 0.8f;
    draw_engines(sketch, &frame, plane, &paints[ROLE_DARK]);
    draw_wings(sketch, &frame, plane->wing, plane, 1, &paints[ROLE_BODY]);
    if (plane->twin_wings)
        draw_wings(sketch, &frame, plane->wing + 0.3f, plane, 1, &paints[ROLE_DETAIL]);
    if (plane->tail > 0)
        draw_wings(sketch, &frame, 0.68f, &tail, plane->tail, &paints[ROLE_BODY]);
    canvas_ellipse(&sketch->canvas, &frame, 0, 0, plane->fuselage, 0.92f, &paints[ROLE_BODY]);
    canvas_ellipse(&sketch->canvas, &frame, 0, -0.6f, plane->fuselage * 0.6f, 0.1f, &paints[ROLE_DARK]);
    sketch_say(sketch, plane->name);
    sketch_say_sometimes(sketch, 0.1f, "in the sky");
}

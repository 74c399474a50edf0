/* Animals: heads from the front and whole bodies from the side, in furs of several colours and markings. */
#include "harness/pretrain/captions/sketch.h"

enum ears { EARS_POINTED, EARS_HANGING, EARS_LONG, EARS_ROUND };
enum muzzle { MUZZLE_SMALL, MUZZLE_LONG, MUZZLE_SNOUT, MUZZLE_WOOL };

struct species {
    const char *name;
    enum ears ears;
    enum muzzle muzzle;
    float head_width, body_height, leg, tail; /* relative to the frame; tail: length */
};

static const struct species all_species[] = {
    {"cat", EARS_POINTED, MUZZLE_SMALL, 0.62f, 0.28f, 0.4f, 0.6f},
    {"dog", EARS_HANGING, MUZZLE_LONG, 0.55f, 0.3f, 0.45f, 0.35f},
    {"rabbit", EARS_LONG, MUZZLE_SMALL, 0.5f, 0.38f, 0.2f, 0.1f},
    {"bear", EARS_ROUND, MUZZLE_LONG, 0.7f, 0.45f, 0.35f, 0.05f},
    {"mouse", EARS_ROUND, MUZZLE_SMALL, 0.45f, 0.3f, 0.15f, 0.7f},
    {"pig", EARS_POINTED, MUZZLE_SNOUT, 0.68f, 0.42f, 0.25f, 0.15f},
    {"fox", EARS_POINTED, MUZZLE_LONG, 0.52f, 0.26f, 0.35f, 0.5f},
    {"sheep", EARS_HANGING, MUZZLE_WOOL, 0.5f, 0.42f, 0.3f, 0.1f},
    {"cow", EARS_HANGING, MUZZLE_SNOUT, 0.58f, 0.42f, 0.45f, 0.4f},
    {"monkey", EARS_ROUND, MUZZLE_WOOL, 0.58f, 0.3f, 0.4f, 0.6f},
};
enum { SPECIES = sizeof all_species / sizeof all_species[0] };

struct fur {
    const struct tint *tint;
    const char *marking;
    struct paint main, second, dark;
};

static struct fur fur_choose(struct sketch *sketch)
{
    static const char *const tints_of_fur[] = {"black", "white", "brown", "orange", "gray"};
    static const char *const markings[] = {"", "", "striped", "spotted"};
    struct dice *dice = &sketch->dice;
    int marking = dice_below(dice, 4);
    struct fur fur = {.tint = sketch_tint_of(sketch, tints_of_fur, 5), .marking = markings[marking]};
    fur.main = sketch_solid(sketch, fur.tint->colour);
    bool is_dark = fur.tint->colour.r < 0.3f;
    struct colour contrast = is_dark ? (struct colour){0.8f, 0.8f, 0.78f} : (struct colour){0.1f, 0.08f, 0.07f};
    fur.second = paint_solid(colour_mix(fur.main.first, contrast, 0.35f));
    if (fur.marking[0] != '\0') {
        fur.main.pattern = marking == 2 ? PATTERN_STRIPES : PATTERN_DOTS;
        fur.main.second = colour_mix(fur.main.first, contrast, 0.75f);
        fur.main.period = dice_between(dice, 5, 8);
        fur.main.share = marking == 2 ? 0.4f : 0.5f;
        paint_turn(&fur.main, 0.05f * dice_bell(dice));
    }
    fur.dark = paint_solid(is_dark ? (struct colour){0.9f, 0.8f, 0.3f} : (struct colour){0.05f, 0.05f, 0.05f});
    return fur;
}

static void say_animal(struct sketch *sketch, const struct fur *fur, const struct species *species)
{
    sketch_say_sometimes(sketch, 0.75f, fur->tint->name);
    sketch_say_sometimes(sketch, 0.85f, fur->marking);
    sketch_say(sketch, species->name);
}

static const struct part ear_parts[] = {
    [EARS_POINTED] = FILL(ROLE_BODY, {0.2f, -0.5f}, {0.75f, -1.15f}, {0.95f, -0.2f}),
    [EARS_HANGING] = FILL(ROLE_BODY, {0.6f, -0.65f}, {0.95f, -0.6f}, {1.25f, 0.1f}, {1.15f, 0.5f}, {0.85f, 0.3f}),
    [EARS_LONG] = FILL(ROLE_BODY, {0.15f, -0.6f}, {0.2f, -1.3f}, {0.4f, -1.75f}, {0.6f, -1.3f}, {0.6f, -0.5f}),
    [EARS_ROUND] =
        FILL(ROLE_BODY, {0.4f, -0.6f}, {0.45f, -0.95f}, {0.75f, -1.1f}, {1.05f, -0.95f}, {1.1f, -0.6f}, {0.8f, -0.35f}),
};

static void draw_ears(struct sketch *sketch, const struct frame *frame, const struct species *species,
                      const struct fur *fur)
{
    const struct part *ear = &ear_parts[species->ears];
    struct point points[CANVAS_POINTS];
    for (int side = -1; side <= 1; side += 2) {
        for (size_t i = 0; i < ear->count; i++)
            points[i] = (struct point){ear->points[i].x * (float)side, ear->points[i].y};
        canvas_polygon(&sketch->canvas, frame, points, ear->count,
                       species->ears == EARS_HANGING ? &fur->second : &fur->main);
    }
}

static void draw_muzzle(struct sketch *sketch, const struct frame *frame, const struct species *species,
                        const struct fur *fur)
{
    struct canvas *canvas = &sketch->canvas;
    struct paint pink = sketch_solid(sketch, (struct colour){0.9f, 0.55f, 0.6f});
    if (species->muzzle == MUZZLE_LONG) {
        canvas_ellipse(canvas, frame, 0, 0.42f, 0.42f, 0.4f, &fur->second);
        canvas_ellipse(canvas, frame, 0, 0.25f, 0.2f, 0.14f, &fur->dark);
    } else if (species->muzzle == MUZZLE_SNOUT) {
        canvas_ellipse(canvas, frame, 0, 0.35f, 0.48f, 0.32f, &pink);
        canvas_ellipse(canvas, frame, -0.17f, 0.35f, 0.08f, 0.12f, &fur->dark);
        canvas_ellipse(canvas, frame, 0.17f, 0.35f, 0.08f, 0.12f, &fur->dark);
    } else if (species->muzzle == MUZZLE_WOOL) {
        canvas_ellipse(canvas, frame, 0, 0.15f, 0.62f, 0.72f, &fur->second);
        canvas_ellipse(canvas, frame, 0, 0.45f, 0.16f, 0.08f, &fur->dark);
    } else {
        canvas_polygon(canvas, frame, (struct point[]){{-0.14f, 0.2f}, {0.14f, 0.2f}, {0, 0.36f}}, 3, &pink);
        for (int side = -1; side <= 1; side += 2)
            for (int hair = 0; hair < 2; hair++) {
                struct point from = {0.2f * (float)side, 0.36f};
                struct point to = {0.95f * (float)side, 0.28f + 0.2f * (float)hair};
                canvas_line(canvas, frame, from, to, 0.05f, &fur->dark);
            }
    }
}

static void draw_face(struct sketch *sketch, const struct frame *frame, const struct species *species,
                      const struct fur *fur)
{
    struct canvas *canvas = &sketch->canvas;
    draw_ears(sketch, frame, species, fur);
    canvas_ellipse(canvas, frame, 0, 0, 0.95f, 0.88f, &fur->main);
    draw_muzzle(sketch, frame, species, fur);
    struct paint white = paint_solid((struct colour){0.97f, 0.97f, 0.95f}),
                 black = paint_solid((struct colour){0, 0, 0});
    for (int side = -1; side <= 1; side += 2) {
        canvas_ellipse(canvas, frame, 0.38f * (float)side, -0.18f, 0.17f, 0.17f, &white);
        canvas_ellipse(canvas, frame, 0.38f * (float)side, -0.18f, 0.09f, 0.13f, &black);
    }
}

void draw_head(struct sketch *sketch)
{
    static const char *const templates[] = {"a photo of a {}, a type of pet.", "the face of a {}.", "a photo of a {}.",
                                            NULL};
    const struct species *species = &all_species[dice_below(&sketch->dice, SPECIES)];
    struct fur fur = fur_choose(sketch);
    sketch_background(sketch, fur.tint->colour);
    struct frame head = sketch_centre(sketch, 0.5f, 0.7f);
    if (species->ears == EARS_LONG)
        head = frame_place(head, 0, 0.3f, 0.8f, 0.8f, 0);
    head = frame_place(head, 0, 0.1f, 0.75f + species->head_width * 0.4f, 1, 0);
    draw_face(sketch, &head, species, &fur);
    sketch->templates = templates;
    say_animal(sketch, &fur, species);
    sketch_say_sometimes(sketch, 0.15f, "face");
}

void draw_animal(struct sketch *sketch)
{
    static const char *const templates[] = {"a photo of a {}.", "a photo of a {}, a type of pet.", NULL};
    struct canvas *canvas = &sketch->canvas;
    const struct species *species = &all_species[dice_below(&sketch->dice, SPECIES)];
    struct fur fur = fur_choose(sketch);
    sketch_background(sketch, fur.tint->colour);
    struct frame frame = sketch_centre(sketch, 0.65f, 0.95f);
    float bottom = 0.25f + species->body_height, leg = species->leg;
    for (int i = 0; i < 4; i++) {
        float x = -0.4f + 0.3f * (float)i + (i > 1 ? 0.05f : 0);
        canvas_line(canvas, &frame, (struct point){x, bottom - 0.15f}, (struct point){x, bottom + leg - 0.05f}, 0.16f,
                    &fur.second);
    }
    struct point tail[] = {
        {0.6f, 0.1f}, {0.72f + 0.2f * species->tail, 0}, {0.75f + 0.25f * species->tail, -species->tail}};
    canvas_stroke(canvas, &frame, tail, 3, 0.12f, &fur.main);
    canvas_ellipse(canvas, &frame, 0.1f, 0.25f, 0.62f, species->body_height, &fur.main);
    struct frame head = frame_place(frame, -0.55f, -0.2f, 0.38f, 0.36f, 0);
    draw_face(sketch, &head, species, &fur);
    sketch->templates = templates;
    say_animal(sketch, &fur, species);
    sketch_say_sometimes(sketch, 0.2f, dice_chance(&sketch->dice, 0.5f) ? "standing" : "from the side");
}

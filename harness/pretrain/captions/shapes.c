/* Shapes alone, in relation to one another, and counted. */
#include "harness/pretrain/captions/sketch.h"

enum shape {
    SHAPE_CIRCLE,
    SHAPE_SQUARE,
    SHAPE_TRIANGLE,
    SHAPE_STAR,
    SHAPE_HEART,
    SHAPE_CROSS,
    SHAPE_RING,
    SHAPE_DIAMOND,
    SHAPE_PENTAGON,
    SHAPE_HEXAGON,
    SHAPE_MOON,
    SHAPE_ARROW,
    SHAPE_OVAL,
    SHAPE_RECTANGLE,
    SHAPES
};

static const char *const shape_names[SHAPES] = {"circle", "square", "triangle", "star",     "heart",
                                                "cross",  "ring",   "diamond",  "pentagon", "hexagon",
                                                "moon",   "arrow",  "oval",     "rectangle"};

static void draw_regular(struct sketch *sketch, const struct frame *frame, int corners, float inner,
                         const struct paint *paint)
{
    struct point points[CANVAS_POINTS];
    for (int i = 0; i < corners; i++) {
        float radius = i % 2 == 1 ? inner : 1, turns = (float)i / (float)corners - 0.25f;
        points[i] = (struct point){radius * turn_cosine(turns), radius * turn_sine(turns)};
    }
    canvas_polygon(&sketch->canvas, frame, points, (size_t)corners, paint);
}

static const struct part shape_parts[SHAPES] = {
    [SHAPE_SQUARE] = FILL(ROLE_BODY, {-0.85f, -0.85f}, {0.85f, -0.85f}, {0.85f, 0.85f}, {-0.85f, 0.85f}),
    [SHAPE_TRIANGLE] = FILL(ROLE_BODY, {0, -0.95f}, {0.95f, 0.8f}, {-0.95f, 0.8f}),
    [SHAPE_HEART] = FILL(ROLE_BODY, {0, 0.95f}, {-0.85f, 0.05f}, {-0.95f, -0.4f}, {-0.7f, -0.8f}, {-0.35f, -0.8f},
                         {0, -0.4f}, {0.35f, -0.8f}, {0.7f, -0.8f}, {0.95f, -0.4f}, {0.85f, 0.05f}),
    [SHAPE_CROSS] =
        FILL(ROLE_BODY, {-0.3f, -0.95f}, {0.3f, -0.95f}, {0.3f, -0.3f}, {0.95f, -0.3f}, {0.95f, 0.3f}, {0.3f, 0.3f},
             {0.3f, 0.95f}, {-0.3f, 0.95f}, {-0.3f, 0.3f}, {-0.95f, 0.3f}, {-0.95f, -0.3f}, {-0.3f, -0.3f}),
    [SHAPE_DIAMOND] = FILL(ROLE_BODY, {0, -1}, {0.65f, 0}, {0, 1}, {-0.65f, 0}),
    [SHAPE_MOON] = FILL(ROLE_BODY, {0.3f, -0.95f}, {-0.3f, -0.85f}, {-0.75f, -0.4f}, {-0.8f, 0.2f}, {-0.45f, 0.75f},
                        {0.1f, 0.95f}, {0.6f, 0.8f}, {0.15f, 0.55f}, {-0.15f, 0.1f}, {-0.1f, -0.45f}),
    [SHAPE_ARROW] = FILL(ROLE_BODY, {-0.95f, -0.25f}, {0.1f, -0.25f}, {0.1f, -0.75f}, {0.95f, 0}, {0.1f, 0.75f},
                         {0.1f, 0.25f}, {-0.95f, 0.25f}),
    [SHAPE_RECTANGLE] = FILL(ROLE_BODY, {-0.95f, -0.5f}, {0.95f, -0.5f}, {0.95f, 0.5f}, {-0.95f, 0.5f}),
};

static void draw_polygon_shape(struct sketch *sketch, const struct frame *frame, enum shape shape,
                               const struct paint *paint)
{
    canvas_polygon(&sketch->canvas, frame, shape_parts[shape].points, shape_parts[shape].count, paint);
}

static void draw_one(struct sketch *sketch, const struct frame *frame, enum shape shape, const struct paint *paint)
{
    struct canvas *canvas = &sketch->canvas;
    struct point circle[21];
    switch (shape) {
    case SHAPE_CIRCLE:
        canvas_ellipse(canvas, frame, 0, 0, 0.95f, 0.95f, paint);
        break;
    case SHAPE_OVAL:
        canvas_ellipse(canvas, frame, 0, 0, 0.98f, 0.55f, paint);
        break;
    case SHAPE_RING:
        for (int i = 0; i <= 20; i++)
            circle[i] = (struct point){0.75f * turn_cosine((float)i / 20), 0.75f * turn_sine((float)i / 20)};
        canvas_stroke(canvas, frame, circle, 21, 0.36f, paint);
        break;
    case SHAPE_STAR:
        draw_regular(sketch, frame, 10, 0.42f, paint);
        break;
    case SHAPE_PENTAGON:
        draw_regular(sketch, frame, 5, 1, paint);
        break;
    case SHAPE_HEXAGON:
        draw_regular(sketch, frame, 6, 1, paint);
        break;
    default:
        draw_polygon_shape(sketch, frame, shape, paint);
    }
}

/* A paint for the tint, sometimes with a pattern whose word is said before the noun. */
static struct paint shape_paint(struct sketch *sketch, const struct tint *tint, const char **word)
{
    static const struct {
        const char *word;
        enum pattern pattern;
    } fills[] = {{"striped", PATTERN_STRIPES},
                 {"checkered", PATTERN_CHECKS},
                 {"dotted", PATTERN_DOTS},
                 {"spotted", PATTERN_DOTS}};
    struct paint paint = sketch_solid(sketch, tint->colour);
    *word = "";
    if (dice_chance(&sketch->dice, 0.25f)) {
        int fill = dice_below(&sketch->dice, 4);
        *word = fills[fill].word;
        paint.pattern = fills[fill].pattern;
        paint.second = sketch_other_tint(sketch, tint)->colour;
        paint.period = dice_between(&sketch->dice, 6, 10);
        paint.share = 0.5f;
        paint_turn(&paint, dice_between(&sketch->dice, 0, 1));
    }
    return paint;
}

void draw_shape(struct sketch *sketch)
{
    struct dice *dice = &sketch->dice;
    const struct tint *tint = sketch_tint(sketch);
    const char *pattern;
    sketch_background(sketch, tint->colour);
    struct placement placement = sketch_placement(sketch);
    struct paint paint = shape_paint(sketch, tint, &pattern);
    enum shape shape = (enum shape)dice_below(dice, SHAPES);
    draw_one(sketch, &placement.frame, shape, &paint);
    sketch_say(sketch, placement.size);
    sketch_say_sometimes(sketch, 0.8f, tint->name);
    sketch_say(sketch, pattern);
    sketch_say(sketch, shape_names[shape]);
    sketch_say(sketch, placement.where);
}

void draw_relation(struct sketch *sketch)
{
    static const struct {
        const char *words;
        float x, y, first, second; /* half the way between the two, and their half-sizes */
    } relations[] = {{"above", 0, -0.5f, 0.36f, 0.36f},
                     {"below", 0, 0.5f, 0.36f, 0.36f},
                     {"to the left of", -0.5f, 0, 0.36f, 0.36f},
                     {"to the right of", 0.5f, 0, 0.36f, 0.36f},
                     {"inside", 0, 0, 0.3f, 0.85f}};
    struct dice *dice = &sketch->dice;
    int relation = dice_below(dice, 5);
    enum shape shapes[2] = {(enum shape)dice_below(dice, SHAPES), (enum shape)dice_below(dice, SHAPES)};
    if (relations[relation].x == 0 && relations[relation].y == 0)
        shapes[1] = (enum shape)dice_below(dice, SHAPE_TRIANGLE); /* only a full shape has an inside */
    const struct tint *first = sketch_tint(sketch), *second = sketch_other_tint(sketch, first);
    sketch_background(sketch, colour_mix(first->colour, second->colour, 0.5f));
    float x = relations[relation].x, y = relations[relation].y;
    float drift_x = dice_between(dice, -0.1f, 0.1f), drift_y = dice_between(dice, -0.1f, 0.1f);
    struct frame lower =
        frame_place(sketch->frame, drift_x - x, drift_y - y, relations[relation].second, relations[relation].second, 0);
    struct frame upper =
        frame_place(sketch->frame, drift_x + x, drift_y + y, relations[relation].first, relations[relation].first, 0);
    struct paint paints[2] = {sketch_solid(sketch, first->colour), sketch_solid(sketch, second->colour)};
    draw_one(sketch, &lower, shapes[1], &paints[1]);
    draw_one(sketch, &upper, shapes[0], &paints[0]);
    sketch_say_sometimes(sketch, 0.8f, first->name);
    sketch_say(sketch, shape_names[shapes[0]]);
    sketch_say(sketch, relations[relation].words);
    sketch_say(sketch, "a");
    sketch_say_sometimes(sketch, 0.8f, second->name);
    sketch_say(sketch, shape_names[shapes[1]]);
}

void draw_count(struct sketch *sketch)
{
    static const char *const numbers[] = {"two", "three", "four", "five", "six"};
    static const char *const plurals[] = {"circles", "squares", "triangles", "stars",
                                          "hearts",  "crosses", "rings",     "diamonds"};
    static const char *const templates[] = {"{}.", "a photo of {}.", "a drawing of {}.", "a picture of {}.", NULL};
    struct dice *dice = &sketch->dice;
    int count = 2 + dice_below(dice, 5), cells[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    enum shape shape = (enum shape)dice_below(dice, 8);
    const struct tint *tint = sketch_tint(sketch);
    sketch_background(sketch, tint->colour);
    struct paint paint = sketch_solid(sketch, tint->colour);
    for (int i = 0; i < count; i++) {
        int other = i + dice_below(dice, 9 - i), cell = cells[other];
        cells[other] = cells[i];
        int column = cell % 3 - 1, row = cell / 3 - 1;
        float half = dice_between(dice, 0.2f, 0.28f), drift = dice_between(dice, -0.06f, 0.06f);
        struct frame frame =
            frame_place(sketch->frame, (float)column * 0.62f + drift, (float)row * 0.62f - drift, half, half, 0);
        draw_one(sketch, &frame, shape, &paint);
    }
    sketch->templates = templates;
    sketch_say(sketch, numbers[count - 2]);
    sketch_say_sometimes(sketch, 0.75f, tint->name);
    sketch_say(sketch, plurals[shape]);
}

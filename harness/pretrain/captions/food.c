/* Food, on plates and tables. */
#include "harness/pretrain/captions/sketch.h"

static const struct colour bread = {0.83f, 0.6f, 0.3f}, cream = {0.98f, 0.93f, 0.82f}, tomato = {0.85f, 0.2f, 0.12f},
                           lettuce = {0.4f, 0.7f, 0.2f}, meat = {0.4f, 0.22f, 0.12f}, cheese = {0.98f, 0.8f, 0.25f},
                           porcelain = {0.94f, 0.94f, 0.95f}, rice = {0.96f, 0.96f, 0.93f}, berry = {0.9f, 0.4f, 0.55f};

static void scatter(struct sketch *sketch, const struct frame *frame, float reach, int count, float size,
                    struct colour colour)
{
    for (int i = 0; i < count; i++) {
        float turns = dice_between(&sketch->dice, 0, 1), radius = reach * dice_between(&sketch->dice, 0.1f, 1);
        struct paint paint = sketch_solid(sketch, colour);
        canvas_ellipse(&sketch->canvas, frame, radius * turn_cosine(turns), radius * turn_sine(turns), size, size,
                       &paint);
    }
}

static void oval(struct sketch *sketch, const struct frame *frame, float x, float y, float rx, float ry,
                 struct colour colour)
{
    struct paint paint = sketch_solid(sketch, colour);
    canvas_ellipse(&sketch->canvas, frame, x, y, rx, ry, &paint);
}

static void box(struct sketch *sketch, const struct frame *frame, float l, float t, float r, float b,
                struct colour colour)
{
    struct paint paint = sketch_solid(sketch, colour);
    canvas_rectangle(&sketch->canvas, frame, l, t, r, b, &paint);
}

static void wedge(struct sketch *sketch, const struct frame *frame, struct point a, struct point b, struct point c,
                  struct colour colour)
{
    struct paint paint = sketch_solid(sketch, colour);
    canvas_polygon(&sketch->canvas, frame, (struct point[]){a, b, c}, 3, &paint);
}

static void plate(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, 0, 0.98f, 0.98f, porcelain);
    oval(sketch, frame, 0, 0, 0.76f, 0.76f, colour_mix(porcelain, (struct colour){0, 0, 0}, 0.08f));
}

static void pizza(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, 0, 0.95f, 0.95f, bread);
    oval(sketch, frame, 0, 0, 0.8f, 0.8f, cheese);
    scatter(sketch, frame, 0.62f, 8, 0.14f, tomato);
    scatter(sketch, frame, 0.65f, 5, 0.06f, lettuce);
}

static void burger(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, -0.3f, 0.8f, 0.5f, bread);
    box(sketch, frame, -0.85f, -0.2f, 0.85f, 0, lettuce);
    box(sketch, frame, -0.8f, 0, 0.8f, 0.22f, meat);
    box(sketch, frame, -0.82f, 0.2f, 0.82f, 0.3f, cheese);
    box(sketch, frame, -0.78f, 0.3f, 0.78f, 0.62f, bread);
}

static void sandwich(struct sketch *sketch, const struct frame *frame)
{
    wedge(sketch, frame, (struct point){-0.9f, 0.3f}, (struct point){0.9f, 0.3f}, (struct point){0, -0.7f}, bread);
    box(sketch, frame, -0.9f, 0.3f, 0.9f, 0.42f, lettuce);
    box(sketch, frame, -0.9f, 0.42f, 0.9f, 0.55f, tomato);
    box(sketch, frame, -0.9f, 0.55f, 0.9f, 0.75f, bread);
}

static void donut(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, 0, 0.9f, 0.9f, bread);
    oval(sketch, frame, 0, 0, 0.78f, 0.78f, dice_chance(&sketch->dice, 0.5f) ? berry : meat);
    scatter(sketch, frame, 0.66f, 12, 0.05f, cream);
    oval(sketch, frame, 0, 0, 0.28f, 0.28f, porcelain);
}

static void ice_cream(struct sketch *sketch, const struct frame *frame)
{
    wedge(sketch, frame, (struct point){-0.42f, 0}, (struct point){0.42f, 0}, (struct point){0, 0.95f}, bread);
    oval(sketch, frame, -0.25f, -0.15f, 0.34f, 0.32f, cream);
    oval(sketch, frame, 0.25f, -0.15f, 0.34f, 0.32f, berry);
    oval(sketch, frame, 0, -0.5f, 0.36f, 0.35f, dice_chance(&sketch->dice, 0.5f) ? meat : cream);
}

static void cake(struct sketch *sketch, const struct frame *frame)
{
    box(sketch, frame, -0.8f, -0.3f, 0.8f, 0.75f, meat);
    box(sketch, frame, -0.8f, 0.15f, 0.8f, 0.28f, cream);
    box(sketch, frame, -0.85f, -0.42f, 0.85f, -0.18f, dice_chance(&sketch->dice, 0.5f) ? cream : berry);
    for (int i = -1; i <= 1; i++)
        box(sketch, frame, 0.45f * (float)i - 0.05f, -0.8f, 0.45f * (float)i + 0.05f, -0.4f, tomato);
}

static void fried_egg(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, 0, 0.8f, 0.7f, rice);
    oval(sketch, frame, 0.35f, 0.35f, 0.5f, 0.42f, rice);
    oval(sketch, frame, 0, 0, 0.33f, 0.33f, (struct colour){0.98f, 0.72f, 0.1f});
}

static void salad(struct sketch *sketch, const struct frame *frame)
{
    plate(sketch, frame);
    scatter(sketch, frame, 0.55f, 22, 0.17f, lettuce);
    scatter(sketch, frame, 0.5f, 5, 0.12f, tomato);
    scatter(sketch, frame, 0.5f, 4, 0.08f, cream);
}

static void soup(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, 0, 0.95f, 0.95f, porcelain);
    oval(sketch, frame, 0, 0, 0.76f, 0.76f,
         dice_chance(&sketch->dice, 0.5f) ? tomato : (struct colour){0.9f, 0.6f, 0.2f});
    scatter(sketch, frame, 0.5f, 6, 0.06f, lettuce);
}

static void sushi(struct sketch *sketch, const struct frame *frame)
{
    for (int i = -1; i <= 1; i += 2) {
        float x = 0.45f * (float)i;
        oval(sketch, frame, x, 0, 0.42f, 0.42f, (struct colour){0.06f, 0.12f, 0.1f});
        oval(sketch, frame, x, 0, 0.33f, 0.33f, rice);
        oval(sketch, frame, x, 0, 0.15f, 0.15f,
             dice_chance(&sketch->dice, 0.6f) ? (struct colour){0.98f, 0.5f, 0.35f} : lettuce);
    }
}

static void pancakes(struct sketch *sketch, const struct frame *frame)
{
    for (int i = 0; i < 4; i++) {
        oval(sketch, frame, 0, 0.55f - 0.22f * (float)i, 0.8f, 0.28f, meat);
        oval(sketch, frame, 0, 0.5f - 0.22f * (float)i, 0.8f, 0.26f, bread);
    }
    box(sketch, frame, -0.14f, -0.28f, 0.14f, -0.08f, cheese);
}

static void hot_dog(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, 0, 0.85f, 0.42f, bread);
    oval(sketch, frame, 0, -0.05f, 0.95f, 0.2f, tomato);
    static const struct point mustard[] = {{-0.7f, 0},     {-0.4f, -0.12f}, {-0.1f, 0.02f},
                                           {0.2f, -0.12f}, {0.5f, 0.02f},   {0.7f, -0.1f}};
    struct paint yellow = paint_solid(cheese);
    canvas_stroke(&sketch->canvas, frame, mustard, 6, 0.08f, &yellow);
}

static void cookies(struct sketch *sketch, const struct frame *frame)
{
    for (int i = 0; i < 3; i++) {
        struct frame one =
            frame_place(*frame, 0.5f * turn_cosine((float)i / 3), 0.5f * turn_sine((float)i / 3), 0.42f, 0.42f, 0);
        oval(sketch, &one, 0, 0, 1, 1, bread);
        scatter(sketch, &one, 0.7f, 6, 0.15f, meat);
    }
}

static void bread_loaf(struct sketch *sketch, const struct frame *frame)
{
    oval(sketch, frame, 0, 0.05f, 0.92f, 0.45f, bread);
    for (int i = -1; i <= 1; i++) {
        struct paint cut = sketch_solid(sketch, meat);
        canvas_line(&sketch->canvas, frame, (struct point){0.4f * (float)i - 0.1f, -0.3f},
                    (struct point){0.4f * (float)i + 0.1f, 0.1f}, 0.08f, &cut);
    }
}

static void cheese_wedge(struct sketch *sketch, const struct frame *frame)
{
    wedge(sketch, frame, (struct point){-0.9f, 0}, (struct point){0.9f, -0.5f}, (struct point){0.9f, 0}, cheese);
    box(sketch, frame, -0.9f, 0, 0.9f, 0.6f, colour_mix(cheese, bread, 0.3f));
    scatter(sketch, frame, 0.35f, 5, 0.1f, bread);
}

void draw_food(struct sketch *sketch)
{
    static const struct {
        const char *name;
        void (*draw)(struct sketch *, const struct frame *);
    } dishes[] = {{"pizza", pizza},         {"burger", burger},    {"sandwich", sandwich},   {"donut", donut},
                  {"ice cream", ice_cream}, {"cake", cake},        {"fried egg", fried_egg}, {"salad", salad},
                  {"soup", soup},           {"sushi", sushi},      {"pancakes", pancakes},   {"hot dog", hot_dog},
                  {"cookies", cookies},     {"bread", bread_loaf}, {"cheese", cheese_wedge}};
    static const char *const templates[] = {"a photo of a {}, a type of food.", NULL};
    int dish = dice_below(&sketch->dice, sizeof dishes / sizeof dishes[0]);
    sketch_background(sketch, bread);
    struct frame frame = sketch_centre(sketch, 0.6f, 0.95f);
    bool on_plate = dice_chance(&sketch->dice, 0.25f);
    if (on_plate) {
        plate(sketch, &frame);
        frame = frame_place(frame, 0, 0, 0.68f, 0.68f, 0);
    }
    dishes[dish].draw(sketch, &frame);
    sketch->templates = templates;
    sketch_say(sketch, dishes[dish].name);
    sketch_say_sometimes(sketch, on_plate ? 0.5f : 0, "on a plate");
}

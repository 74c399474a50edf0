/* Flowers from above and from the side. */
#include "harness/pretrain/captions/sketch.h"

struct flower {
    const char *name;
    int petals;          /* of a flower seen from above; 0: seen from the side */
    float width, length; /* of a petal */
    float heart;         /* radius of the middle */
    int layers;
    const char *tints[3];
};

static const struct flower flowers[] = {
    {"daisy", 13, 0.12f, 0.5f, 0.22f, 1, {"white", "white", "pink"}},
    {"sunflower", 18, 0.13f, 0.42f, 0.42f, 2, {"yellow", "yellow", "orange"}},
    {"rose", 6, 0.42f, 0.36f, 0.16f, 3, {"red", "pink", "white"}},
    {"lily", 6, 0.2f, 0.6f, 0.1f, 1, {"white", "orange", "pink"}},
    {"violet", 5, 0.26f, 0.42f, 0.1f, 1, {"purple", "blue", "purple"}},
    {"poppy", 4, 0.45f, 0.45f, 0.17f, 1, {"red", "orange", "red"}},
    {"tulip", 0, 0, 0, 0, 0, {"red", "yellow", "pink"}},
    {"bluebell", 0, 0, 0, 0, 0, {"blue", "purple", "blue"}},
};

static void draw_petals(struct sketch *sketch, const struct frame *frame, const struct flower *flower,
                        const struct paint *petal, const struct paint *heart)
{
    float start = dice_between(&sketch->dice, 0, 1);
    for (int layer = 0; layer < flower->layers; layer++) {
        float scale = 1 - 0.28f * (float)layer;
        struct paint paint = *petal;
        paint.first = colour_mix(petal->first, (struct colour){0, 0, 0}, 0.14f * (float)layer);
        for (int i = 0; i < flower->petals; i++) {
            float turns = start + ((float)i + 0.5f * (float)layer) / (float)flower->petals;
            float reach = (flower->heart + flower->length * 0.8f) * scale;
            struct frame place =
                frame_place(*frame, reach * turn_cosine(turns), reach * turn_sine(turns), scale, scale, turns);
            canvas_ellipse(&sketch->canvas, &place, 0, 0, flower->length, flower->width, &paint);
        }
    }
    canvas_ellipse(&sketch->canvas, frame, 0, 0, flower->heart, flower->heart, heart);
}

static void draw_stem(struct sketch *sketch, const struct frame *frame)
{
    struct paint green = sketch_solid(sketch, (struct colour){0.2f, 0.55f, 0.2f});
    canvas_line(&sketch->canvas, frame, (struct point){0, 0}, (struct point){0.05f, 1.6f}, 0.1f, &green);
    canvas_polygon(&sketch->canvas, frame, (struct point[]){{0.03f, 0.9f}, {0.4f, 0.35f}, {0.35f, 0.7f}}, 3, &green);
}

static void draw_tulip(struct sketch *sketch, const struct frame *frame, const struct paint *petal)
{
    static const struct point head[] = {{-0.4f, -0.7f}, {-0.2f, -0.35f}, {0, -0.8f},     {0.2f, -0.35f}, {0.4f, -0.7f},
                                        {0.42f, -0.1f}, {0.2f, 0.15f},   {-0.2f, 0.15f}, {-0.42f, -0.1f}};
    draw_stem(sketch, frame);
    canvas_polygon(&sketch->canvas, frame, head, 9, petal);
}

static void draw_bluebell(struct sketch *sketch, const struct frame *frame, const struct paint *petal)
{
    static const struct point cup[] = {{-0.5f, 1}, {-0.35f, -0.4f}, {0, -1}, {0.35f, -0.4f},
                                       {0.5f, 1},  {0.2f, 0.7f},    {0, 1},  {-0.2f, 0.7f}};
    struct frame stem = frame_place(*frame, 0, -0.6f, 1, 1, 0);
    draw_stem(sketch, &stem);
    for (int i = 0; i < 5; i++) {
        struct frame place = frame_place(*frame, i % 2 == 0 ? 0.25f : -0.25f, -0.7f + 0.3f * (float)i, 0.24f, 0.24f,
                                         i % 2 == 0 ? -0.07f : 0.07f);
        canvas_polygon(&sketch->canvas, &place, cup, 8, petal);
    }
}

static void draw_counted_petals(struct sketch *sketch, const struct frame *frame)
{
    static const char *const counts[] = {"three", "four", "five", "six", "seven", "eight"};
    int petals = 3 + dice_below(&sketch->dice, 6);
    const struct tint *tint = sketch_tint(sketch), *middle = sketch_other_tint(sketch, tint);
    struct flower flower = {"flower", petals, dice_between(&sketch->dice, 0.14f, 0.24f), 0.45f, 0.18f, 1, {0}};
    struct paint petal = sketch_solid(sketch, tint->colour), heart = sketch_solid(sketch, middle->colour);
    draw_petals(sketch, frame, &flower, &petal, &heart);
    sketch_say(sketch, "flower with");
    sketch_say(sketch, counts[petals - 3]);
    sketch_say_sometimes(sketch, 0.8f, tint->name);
    sketch_say(sketch, "petals");
}

void draw_flower(struct sketch *sketch)
{
    static const char *const templates[] = {"a photo of a {}, a type of flower.", NULL};
    struct dice *dice = &sketch->dice;
    enum { KINDS = sizeof flowers / sizeof flowers[0] };
    int choice = dice_below(dice, KINDS + 2);
    sketch->templates = templates;
    sketch_fill(sketch, colour_jitter(dice, (struct colour){0.25f, 0.42f, 0.25f}, 0.2f));
    struct frame frame = sketch_centre(sketch, 0.68f, 0.95f);
    if (choice >= KINDS) {
        draw_counted_petals(sketch, &frame);
        return;
    }
    const struct flower *flower = &flowers[choice];
    const struct tint *tint = sketch_tint_of(sketch, flower->tints, 3);
    struct paint petal = sketch_solid(sketch, tint->colour);
    struct colour middle =
        flower->heart > 0.3f ? (struct colour){0.35f, 0.2f, 0.08f} : (struct colour){0.95f, 0.8f, 0.2f};
    struct paint heart = sketch_solid(sketch, choice == 5 ? (struct colour){0.08f, 0.06f, 0.08f} : middle);
    if (flower->petals > 0)
        draw_petals(sketch, &frame, flower, &petal, &heart);
    else if (choice == KINDS - 1)
        draw_bluebell(sketch, &frame, &petal);
    else
        draw_tulip(sketch, &frame, &petal);
    sketch_say_sometimes(sketch, 0.5f, tint->name);
    sketch_say(sketch, flower->name);
}

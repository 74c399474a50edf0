/* Dishes as served: on a table, seen at a slant, with shadows. */
#include "datasets/mini/suite/picture.h"

const char *const food_names[] = {"burger", "cake",  "donut", "fried_egg", "ice_cream",
                                  "pizza",  "salad", "soup",  "sushi"};

static const struct colour crust = {0.78f, 0.53f, 0.27f}, cream = {0.97f, 0.92f, 0.82f}, red = {0.8f, 0.2f, 0.13f},
                           leaf = {0.38f, 0.62f, 0.2f}, brown = {0.36f, 0.2f, 0.11f}, yellow = {0.97f, 0.8f, 0.3f},
                           china = {0.92f, 0.92f, 0.95f};

static void slanted_plate(struct picture *picture, const struct frame *frame)
{
    picture_ellipse(picture, frame, 0, 0.5f, 0.98f, 0.42f, picture_shade(china, -0.25f));
    picture_ellipse(picture, frame, 0, 0.45f, 0.98f, 0.42f, china);
    picture_ellipse(picture, frame, 0, 0.45f, 0.7f, 0.28f, picture_shade(china, -0.06f));
}

static void burger(struct picture *picture, const struct frame *frame)
{
    static const struct point lettuce[] = {{-0.85f, 0},    {-0.6f, 0.14f}, {-0.35f, 0.02f},
                                           {-0.1f, 0.15f}, {0.2f, 0.02f},  {0.5f, 0.15f},
                                           {0.85f, 0},     {0.8f, -0.12f}, {-0.8f, -0.12f}};
    picture_ellipse(picture, frame, 0, 0.5f, 0.75f, 0.24f, crust);
    picture_ellipse(picture, frame, 0, 0.3f, 0.8f, 0.2f, brown);
    picture_ellipse(picture, frame, 0, 0.16f, 0.78f, 0.16f, yellow);
    picture_polygon(picture, frame, lettuce, 9, leaf);
    picture_ellipse(picture, frame, 0, -0.3f, 0.78f, 0.42f, crust);
    for (int i = 0; i < 7; i++) {
        float y = picture_between(picture, -0.6f, -0.25f);
        picture_ellipse(picture, frame, picture_between(picture, -0.5f, 0.5f), y, 0.05f, 0.035f, cream);
    }
}

static void cake(struct picture *picture, const struct frame *frame)
{
    /* one slice, point towards the viewer */
    struct colour icing = dice_chance(&picture->dice, 0.5f) ? cream : (struct colour){0.9f, 0.55f, 0.62f};
    struct point top[] = {{-0.85f, -0.2f}, {0.6f, -0.6f}, {0.85f, -0.15f}},
                 side[] = {{-0.85f, -0.2f}, {0.85f, -0.15f}, {0.85f, 0.65f}, {-0.85f, 0.6f}};
    struct point filling[] = {{-0.85f, 0.12f}, {0.85f, 0.17f}, {0.85f, 0.3f}, {-0.85f, 0.25f}};
    picture_polygon(picture, frame, side, 4, dice_chance(&picture->dice, 0.6f) ? brown : crust);
    picture_polygon(picture, frame, filling, 4, icing);
    picture_polygon(picture, frame, top, 3, icing);
    picture_ellipse(picture, frame, 0.4f, -0.5f, 0.14f, 0.15f, red);
}

static void donut(struct picture *picture, const struct frame *frame)
{
    struct colour icing = dice_chance(&picture->dice, 0.5f) ? brown : (struct colour){0.92f, 0.5f, 0.65f};
    picture_ellipse(picture, frame, 0, 0.18f, 0.92f, 0.6f, picture_shade(crust, -0.2f));
    picture_ellipse(picture, frame, 0, 0.05f, 0.92f, 0.6f, crust);
    picture_ellipse(picture, frame, 0, -0.02f, 0.84f, 0.52f, icing);
    for (int i = 0; i < 12; i++) {
        float turns = picture_between(picture, 0, 1), x = 0.58f * turn_cosine(turns),
              y = -0.02f + 0.36f * turn_sine(turns);
        picture_line(picture, frame, (struct point){x, y}, (struct point){x + 0.08f, y + 0.05f}, 0.05f,
                     colour_random(&picture->dice));
    }
    picture_ellipse(picture, frame, 0, 0, 0.26f, 0.14f, picture_shade(crust, -0.5f));
}

static void fried_egg(struct picture *picture, const struct frame *frame)
{
    struct point white[14];
    for (int i = 0; i < 14; i++) {
        float radius = picture_between(picture, 0.55f, 0.85f);
        white[i] =
            (struct point){radius * turn_cosine((float)i / 14), 0.15f + 0.7f * radius * turn_sine((float)i / 14)};
    }
    if (dice_chance(&picture->dice, 0.5f))
        picture_ellipse(picture, frame, 0, 0.15f, 0.98f, 0.75f, (struct colour){0.17f, 0.17f, 0.18f});
    picture_polygon(picture, frame, white, 14, (struct colour){0.96f, 0.95f, 0.92f});
    picture_ellipse(picture, frame, 0.05f, 0.1f, 0.28f, 0.22f, (struct colour){0.95f, 0.65f, 0.1f});
    picture_ellipse(picture, frame, -0.03f, 0.03f, 0.07f, 0.05f, cream);
}

static void ice_cream(struct picture *picture, const struct frame *frame)
{
    /* a cup of scoops with a wafer */
    static const struct colour flavours[] = {
        {0.95f, 0.85f, 0.65f}, {0.9f, 0.5f, 0.6f}, {0.4f, 0.25f, 0.17f}, {0.6f, 0.8f, 0.6f}};
    struct point wafer[] = {{0.25f, -0.95f}, {0.5f, -0.85f}, {0.2f, 0.1f}},
                 glass[] = {{-0.6f, 0.05f}, {0.6f, 0.05f}, {0.3f, 0.7f}, {0.35f, 0.9f}, {-0.35f, 0.9f}, {-0.3f, 0.7f}};
    picture_polygon(picture, frame, wafer, 3, crust);
    picture_ellipse(picture, frame, -0.28f, -0.12f, 0.34f, 0.33f, flavours[dice_below(&picture->dice, 4)]);
    picture_ellipse(picture, frame, 0.28f, -0.12f, 0.34f, 0.33f, flavours[dice_below(&picture->dice, 4)]);
    picture_ellipse(picture, frame, 0, -0.45f, 0.34f, 0.33f, flavours[dice_below(&picture->dice, 4)]);
    picture_polygon(picture, frame, glass, 6, (struct colour){0.75f, 0.83f, 0.88f});
}

static void pizza(struct picture *picture, const struct frame *frame)
{
    /* a whole one at a slant, with a slice cut out */
    float gap = picture_between(picture, 0, 1);
    picture_ellipse(picture, frame, 0, 0.1f, 0.96f, 0.72f, crust);
    picture_ellipse(picture, frame, 0, 0.08f, 0.82f, 0.6f, yellow);
    for (int i = 0; i < 9; i++) {
        float turns = gap + ((float)i + 0.5f) / 9, radius = i % 2 == 0 ? 0.6f : 0.3f;
        picture_ellipse(picture, frame, radius * turn_cosine(turns), 0.08f + 0.72f * radius * turn_sine(turns), 0.13f,
                        0.1f, red);
    }
    struct point slice[] = {{0, 0.08f},
                            {turn_cosine(gap - 0.05f), 0.08f + 0.78f * turn_sine(gap - 0.05f)},
                            {turn_cosine(gap + 0.05f), 0.08f + 0.78f * turn_sine(gap + 0.05f)}};
    picture_polygon(picture, frame, slice, 3, china);
}

static void salad(struct picture *picture, const struct frame *frame)
{
    struct point bowl[] = {{-0.9f, 0}, {0.9f, 0}, {0.6f, 0.7f}, {0.3f, 0.85f}, {-0.3f, 0.85f}, {-0.6f, 0.7f}};
    for (int i = 0; i < 18; i++) {
        float x = picture_between(picture, -0.75f, 0.75f), y = picture_between(picture, -0.45f, 0.05f);
        struct point tip[] = {{x - 0.2f, y}, {x, y - 0.28f}, {x + 0.22f, y - 0.05f}, {x + 0.05f, y + 0.2f}};
        picture_polygon(picture, frame, tip, 4, picture_shade(leaf, picture_between(picture, -0.3f, 0.3f)));
    }
    for (int i = 0; i < 4; i++) {
        float y = picture_between(picture, -0.35f, 0);
        picture_ellipse(picture, frame, picture_between(picture, -0.6f, 0.6f), y, 0.13f, 0.12f, red);
    }
    picture_polygon(picture, frame, bowl, 6, china);
}

static void soup(struct picture *picture, const struct frame *frame)
{
    struct colour broth = dice_chance(&picture->dice, 0.5f) ? red : (struct colour){0.85f, 0.6f, 0.25f};
    struct point bowl[] = {{-0.92f, 0}, {0.92f, 0}, {0.6f, 0.7f}, {0.3f, 0.85f}, {-0.3f, 0.85f}, {-0.6f, 0.7f}};
    picture_polygon(picture, frame, bowl, 6, picture_shade(china, -0.15f));
    picture_ellipse(picture, frame, 0, 0, 0.92f, 0.34f, china);
    picture_ellipse(picture, frame, 0, 0.02f, 0.8f, 0.27f, broth);
    for (int i = 0; i < 5; i++) {
        float y = picture_between(picture, -0.12f, 0.15f);
        picture_ellipse(picture, frame, picture_between(picture, -0.5f, 0.5f), y, 0.07f, 0.04f, leaf);
    }
    for (int i = -1; i <= 1; i++) {
        struct point steam[] = {{0.3f * (float)i, -0.4f},
                                {0.3f * (float)i + 0.1f, -0.6f},
                                {0.3f * (float)i - 0.05f, -0.8f},
                                {0.3f * (float)i + 0.05f, -0.95f}};
        picture_stroke(picture, frame, steam, 4, 0.05f, (struct colour){0.85f, 0.87f, 0.9f});
    }
}

static void sushi(struct picture *picture, const struct frame *frame)
{
    /* three pieces of rice under fish, in a row */
    for (int i = -1; i <= 1; i++) {
        struct frame piece = frame_place(*frame, 0.6f * (float)i, 0.1f, 0.28f, 0.55f, 0.02f);
        struct colour topping = dice_chance(&picture->dice, 0.7f) ? (struct colour){0.95f, 0.5f, 0.35f}
                                                                  : (struct colour){0.85f, 0.25f, 0.25f};
        picture_ellipse(picture, &piece, 0, 0.3f, 0.95f, 0.75f, (struct colour){0.95f, 0.95f, 0.92f});
        struct point fish[] = {{-0.95f, 0.1f}, {-0.6f, -0.6f}, {0.6f, -0.6f},
                               {0.95f, 0.1f},  {0.6f, 0.35f},  {-0.6f, 0.35f}};
        picture_polygon(picture, &piece, fish, 6, topping);
        struct point band[] = {{-0.25f, -0.65f}, {0.25f, -0.65f}, {0.25f, 0.95f}, {-0.25f, 0.95f}};
        if (i != 0)
            picture_polygon(picture, &piece, band, 4, (struct colour){0.07f, 0.13f, 0.1f});
    }
}

void suite_draw_food(struct picture *picture, int label)
{
    static void (*const dishes[])(struct picture *, const struct frame *) = {burger, cake,  donut, fried_egg, ice_cream,
                                                                             pizza,  salad, soup,  sushi};
    struct colour table = colour_jitter(&picture->dice, (struct colour){0.5f, 0.42f, 0.38f}, 0.25f);
    picture_backdrop(picture, table, picture_between(picture, 6, 22));
    struct frame frame = picture_subject(picture, 0.7f, 0.92f);
    if (dice_chance(&picture->dice, 0.4f)) {
        slanted_plate(picture, &frame);
        frame = frame_place(frame, 0, -0.02f, 0.8f, 0.8f, 0);
    }
    dishes[label](picture, &frame);
}

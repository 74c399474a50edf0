/* oxford_pet: heads of cats, dogs and rabbits, told apart by kind and coat. cifar100: small coloured photographs of the
 * same animals and of round, shaded things on soft backgrounds. */
#include "datasets/mini/suite/picture.h"

enum pet { PET_CAT, PET_DOG, PET_RABBIT };

struct coat {
    struct colour main, second;
    enum coat_pattern { COAT_PLAIN, COAT_TABBY, COAT_PATCHES } pattern;
};

/* --- oxford_pet --------------------------------------------------------------------------------------------------- */

const char *const oxford_pet_names[] = {"Black Cat",   "Brown Dog",   "Gray Rabbit", "Orange Cat",
                                        "Spotted Dog", "Striped Cat", "White Dog",   "White Rabbit"};

static const struct {
    enum pet pet;
    struct coat coat;
} breeds[] = {
    {PET_CAT, {{0.1f, 0.1f, 0.12f}, {0.2f, 0.2f, 0.22f}, COAT_PLAIN}},
    {PET_DOG, {{0.48f, 0.3f, 0.16f}, {0.3f, 0.18f, 0.1f}, COAT_PLAIN}},
    {PET_RABBIT, {{0.52f, 0.52f, 0.55f}, {0.7f, 0.65f, 0.68f}, COAT_PLAIN}},
    {PET_CAT, {{0.92f, 0.55f, 0.18f}, {0.97f, 0.8f, 0.55f}, COAT_PLAIN}},
    {PET_DOG, {{0.9f, 0.88f, 0.84f}, {0.2f, 0.15f, 0.12f}, COAT_PATCHES}},
    {PET_CAT, {{0.62f, 0.58f, 0.52f}, {0.2f, 0.17f, 0.15f}, COAT_TABBY}},
    {PET_DOG, {{0.93f, 0.92f, 0.9f}, {0.8f, 0.78f, 0.75f}, COAT_PLAIN}},
    {PET_RABBIT, {{0.94f, 0.93f, 0.92f}, {0.95f, 0.75f, 0.78f}, COAT_PLAIN}},
};

static const struct part heads[] = {
    [PET_CAT] = FILL(ROLE_BODY, {0, -0.55f}, {0.35f, -0.6f}, {0.62f, -0.98f}, {0.78f, -0.4f}, {0.85f, 0.05f},
                     {0.98f, 0.25f}, {0.7f, 0.45f}, {0.35f, 0.75f}, {0, 0.82f}),
    [PET_DOG] = FILL(ROLE_BODY, {0, -0.78f}, {0.45f, -0.72f}, {0.68f, -0.45f}, {0.62f, 0.05f}, {0.45f, 0.55f},
                     {0.3f, 0.88f}, {0, 0.95f}),
    [PET_RABBIT] = FILL(ROLE_BODY, {0, -0.2f}, {0.12f, -0.3f}, {0.18f, -0.75f}, {0.32f, -0.98f}, {0.46f, -0.75f},
                        {0.42f, -0.15f}, {0.6f, 0.15f}, {0.62f, 0.45f}, {0.35f, 0.8f}, {0, 0.88f}),
};
static const struct part ears[] = {
    [PET_CAT] = FILL(ROLE_DETAIL, {0.45f, -0.58f}, {0.6f, -0.82f}, {0.68f, -0.45f}),
    [PET_DOG] = FILL(ROLE_DETAIL, {0.5f, -0.72f}, {0.82f, -0.65f}, {0.98f, -0.1f}, {0.85f, 0.35f}, {0.66f, 0.1f},
                     {0.6f, -0.4f}),
    [PET_RABBIT] =
        FILL(ROLE_DETAIL, {0.25f, -0.35f}, {0.26f, -0.75f}, {0.32f, -0.86f}, {0.38f, -0.72f}, {0.36f, -0.3f}),
};

static void both_sides(struct picture *picture, const struct frame *frame, const struct part *part,
                       const struct paint *paint)
{
    float wobble = picture->difficulty->wobble;
    for (int side = -1; side <= 1; side += 2) {
        struct point points[CANVAS_POINTS];
        for (size_t i = 0; i < part->count; i++) {
            float x = part->points[i].x > 0 ? part->points[i].x + picture_between(picture, -wobble, wobble) : -0.01f;
            points[i] = (struct point){x * (float)side, part->points[i].y};
        }
        canvas_polygon(&picture->canvas, frame, points, part->count, paint);
    }
}

static void coat_markings(struct picture *picture, const struct frame *frame, const struct coat *coat)
{
    if (coat->pattern == COAT_TABBY)
        for (int i = -3; i <= 3; i++) {
            float x = 0.2f * (float)i, lean = 0.06f * (float)i;
            picture_line(picture, frame, (struct point){x, -0.5f}, (struct point){x - lean, -0.22f}, 0.09f,
                         coat->second);
            picture_line(picture, frame, (struct point){x > 0 ? 0.85f : -0.85f, 0.12f * (float)i},
                         (struct point){x > 0 ? 0.5f : -0.5f, 0.1f * (float)i + 0.05f}, 0.08f, coat->second);
        }
    if (coat->pattern == COAT_PATCHES)
        for (int i = 0; i < 7; i++) {
            float x = picture_between(picture, -0.55f, 0.55f), y = picture_between(picture, -0.65f, 0.6f);
            float radius = picture_between(picture, 0.08f, 0.17f);
            picture_ellipse(picture, frame, x, y, radius, radius, coat->second);
        }
}

static void pet_features(struct picture *picture, const struct frame *frame, enum pet pet, const struct coat *coat)
{
    struct colour dark =
        coat->main.r < 0.3f ? (struct colour){0.5f, 0.4f, 0.42f} : (struct colour){0.12f, 0.08f, 0.08f};
    struct colour iris = pet == PET_CAT ? (struct colour){0.7f, 0.85f, 0.3f} : (struct colour){0.35f, 0.2f, 0.1f};
    float apart = pet == PET_RABBIT ? 0.38f : 0.32f, high = pet == PET_RABBIT ? 0.15f : -0.15f;
    for (int side = -1; side <= 1; side += 2) {
        float x = apart * (float)side;
        struct point almond[] = {{x - 0.16f, high}, {x, high - 0.13f}, {x + 0.16f, high}, {x, high + 0.12f}};
        picture_polygon(picture, frame, almond, 4, iris);
        picture_ellipse(picture, frame, x, high, pet == PET_CAT ? 0.04f : 0.09f, 0.1f,
                        (struct colour){0.02f, 0.02f, 0.02f});
    }
    float nose = pet == PET_DOG ? 0.45f : 0.35f;
    if (pet == PET_DOG)
        picture_ellipse(picture, frame, 0, 0.55f, 0.34f, 0.34f, picture_shade(coat->main, 0.3f));
    struct point snout[] = {{-0.15f, nose - 0.06f}, {0.15f, nose - 0.06f}, {0, nose + 0.1f}};
    picture_polygon(picture, frame, snout, 3, pet == PET_DOG ? dark : (struct colour){0.85f, 0.5f, 0.55f});
    struct point mouth[] = {{-0.22f, nose + 0.28f}, {0, nose + 0.12f}, {0.22f, nose + 0.28f}};
    picture_stroke(picture, frame, mouth, 3, 0.05f, dark);
}

static void pet_head(struct picture *picture, const struct frame *frame, enum pet pet, const struct coat *coat)
{
    struct colour inner = pet == PET_DOG ? picture_shade(coat->main, -0.35f) : (struct colour){0.9f, 0.65f, 0.65f};
    if (coat->pattern == COAT_PATCHES && pet == PET_DOG)
        inner = coat->second;
    struct paint fur = {.pattern = PATTERN_NOISE, .period = 3, .noise = &picture->noise};
    fur.first = colour_jitter(&picture->dice, coat->main, 0.06f);
    fur.second = picture_shade(fur.first, coat->main.r < 0.3f ? 0.12f : -0.16f);
    both_sides(picture, frame, &heads[pet], &fur);
    both_sides(picture, frame, &ears[pet], picture_ink(picture, inner));
    coat_markings(picture, frame, coat);
    pet_features(picture, frame, pet, coat);
}

void suite_draw_oxford_pet(struct picture *picture, int label)
{
    struct colour room = {picture_between(picture, 0.3f, 0.8f), picture_between(picture, 0.3f, 0.8f),
                          picture_between(picture, 0.3f, 0.8f)};
    while (colour_distance(room, breeds[label].coat.main) < 0.25f)
        room = colour_random(&picture->dice);
    picture_backdrop(picture, room, picture_between(picture, 8, 24));
    struct frame frame = picture_subject(picture, 0.7f, 0.95f);
    picture_ellipse(picture, &frame, 0, 1.35f, 0.85f, 0.8f, picture_shade(breeds[label].coat.main, -0.12f));
    pet_head(picture, &frame, breeds[label].pet, &breeds[label].coat);
}

/* --- cifar100 ----------------------------------------------------------------------------------------------------- */

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
        picture_stroke(picture, frame, tail, 3, 0.14f, body);
    }
    picture_ellipse(picture, frame, 0, 0.5f, 0.48f, 0.5f, body);
    for (int side = -1; side <= 1; side += 2)
        picture_ellipse(picture, frame, 0.22f * (float)side, 0.88f, 0.16f, 0.1f, picture_shade(coat.main, 0.15f));
    struct frame head = frame_place(*frame, 0, -0.35f, 0.58f, 0.6f, 0);
    pet_head(picture, &head, pet, &coat);
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
    picture_figure(picture, frame, &thing->figure, paints);
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

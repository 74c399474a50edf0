#include "datasets/mini/suite.h"

#include <math.h>

#include "datasets/mini/suite/picture.h"

enum { STREAM_SUITE = 0x51 }; /* and one more for each domain */

static const char *const mnist_names[] = {"0 - zero", "1 - one", "2 - two",   "3 - three", "4 - four",
                                          "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine"};

/* The table to tune. Where a reader splits by permutation, train and test are 80 and 20 % of their sum. */
/* clang-format off */
const struct domain suite_domains[SUITE_DOMAINS] = {
    {"aircraft", aircraft_names, 8, 64, 480, 200, suite_draw_aircraft,
     {.tilt = 0.04f, .wobble = 0.015f, .clutter = 0.3f, .noise = 0.03f, .blur = 1}},
    {"caltech101", caltech101_names, 10, 64, 640, 160, suite_draw_caltech101,
     {.tilt = 0.03f, .wobble = 0.04f, .clutter = 0.1f, .noise = 0.04f}},
    {"cifar100", cifar100_names, 10, 32, 480, 200, suite_draw_cifar100,
     {.tilt = 0.02f, .wobble = 0.04f, .clutter = 0.5f, .noise = 0.04f, .blur = 0}},
    {"dtd", dtd_names, 10, 64, 480, 200, suite_draw_dtd,
     {.wobble = 0.05f, .clutter = 0.5f, .noise = 0.04f, .blur = 1}},
    {"eurosat", eurosat_names, 8, 64, 640, 160, suite_draw_eurosat,
     {.shift = SHIFT_ROTATE, .shift_share = 1, .shift_strength = 0.2f,
      .wobble = 0.03f, .clutter = 0.3f, .noise = 0.03f, .blur = 1}},
    {"flowers", flowers_names, 8, 64, 480, 200, suite_draw_flowers,
     {.tilt = 0.03f, .wobble = 0.03f, .clutter = 0.4f, .noise = 0.03f}},
    {"food", food_names, 9, 64, 480, 200, suite_draw_food,
     {.tilt = 0.02f, .wobble = 0.03f, .clutter = 0.4f, .noise = 0.03f}},
    {"mnist", mnist_names, 10, 28, 1500, 297, NULL, {.shift = SHIFT_NONE}},
    {"oxford_pet", oxford_pet_names, 8, 64, 480, 200, suite_draw_oxford_pet,
     {.shift = SHIFT_HEAT, .shift_share = 1, .shift_strength = 0.25f,
      .tilt = 0.03f, .wobble = 0.03f, .clutter = 0.4f, .noise = 0.03f}},
    {"stanford_cars", stanford_cars_names, 9, 64, 480, 200, suite_draw_stanford_cars,
     {.tilt = 0.01f, .wobble = 0.02f, .clutter = 0.2f, .noise = 0.02f}},
    {"sun397", sun397_names, 9, 64, 640, 160, suite_draw_sun397,
     {.shift = SHIFT_NEGATIVE, .shift_share = 0.1f, .shift_strength = 1,
      .wobble = 0.03f, .clutter = 0.3f, .noise = 0.03f, .blur = 1}},
};
/* clang-format on */

static struct colour heat(float value)
{
    static const struct colour scale[] = {
        {0.05f, 0, 0.2f}, {0.55f, 0.05f, 0.5f}, {0.95f, 0.4f, 0.1f}, {1, 0.9f, 0.3f}, {1, 1, 0.95f}};
    float place = fminf(fmaxf(value, 0), 0.9999f) * 4;
    int step = (int)place;
    return colour_mix(scale[step], scale[step + 1], place - (float)step);
}

static struct colour shifted(struct colour c, enum shift shift)
{
    switch (shift) {
    case SHIFT_NEGATIVE:
        return (struct colour){1 - c.r, 1 - c.g, 1 - c.b};
    case SHIFT_ROTATE:
        return (struct colour){c.b, c.r, c.g};
    case SHIFT_HEAT:
        return heat(0.3f * c.r + 0.59f * c.g + 0.11f * c.b); /* its brightness */
    case SHIFT_NONE:
        break;
    }
    return c;
}

static void canvas_shift(struct canvas *canvas, enum shift shift, float strength)
{
    for (int i = 0; i < canvas->side * canvas->side; i++)
        canvas->pixels[i] = colour_mix(canvas->pixels[i], shifted(canvas->pixels[i], shift), strength);
}

void suite_drawing(const struct domain *domain, uint64_t seed, uint64_t index, int label, uint8_t *pixels)
{
    const struct difficulty *difficulty = &domain->difficulty;
    struct picture picture = {.canvas.side = domain->side, .side = domain->side, .difficulty = difficulty};
    picture.dice = dice_make(seed, STREAM_SUITE + (uint32_t)(domain - suite_domains), index);
    picture.frame = frame_canvas(&picture.canvas);
    noise_fill(&picture.noise, &picture.dice);
    domain->draw(&picture, label);
    canvas_blur(&picture.canvas, difficulty->blur);
    if (dice_chance(&picture.dice, difficulty->shift_share))
        canvas_shift(&picture.canvas, difficulty->shift, difficulty->shift_strength);
    canvas_add_noise(&picture.canvas, &picture.dice, difficulty->noise);
    canvas_export(&picture.canvas, pixels);
}

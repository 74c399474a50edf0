#include "harness/pretrain/captions.h"

#include <stdio.h>
#include <string.h>

#include "harness/pretrain/captions/sketch.h"

enum { STREAM_CAPTIONS = 0xCA };

struct family {
    void (*draw)(struct sketch *);
    int weight;
    bool own_templates_only; /* for phrases that general templates do not fit: "a photo of a three circles" */
};

static const struct family families[] = {
    {draw_shape, 10, false},  {draw_relation, 6, false}, {draw_count, 3, true},     {draw_texture, 12, true},
    {draw_gradient, 2, true}, {draw_digit, 12, true},    {draw_letter, 4, true},    {draw_object, 22, false},
    {draw_head, 10, false},   {draw_animal, 10, false},  {draw_vehicle, 11, false}, {draw_plane, 11, false},
    {draw_flower, 10, false}, {draw_food, 11, false},    {draw_scene, 11, false},   {draw_land, 11, true},
};

static const char *const plain_templates[] = {"a photo of a {}.", "a photo of the {}.", "a {}.", "a drawing of a {}.",
                                              "a photo of a {}.", "a picture of a {}.", "{}."};
static const char *const rare_templates[] = {"a painting of a {}.",
                                             "a plastic {}.",
                                             "a sculpture of a {}.",
                                             "a sketch of a {}.",
                                             "a tattoo of the {}.",
                                             "the toy {}.",
                                             "a rendition of a {}.",
                                             "a embroidered {}.",
                                             "the cartoon {}.",
                                             "a {} in a video game.",
                                             "a plushie {}.",
                                             "the origami {}.",
                                             "art of the {}.",
                                             "graffiti of a {}.",
                                             "a doodle of a {}.",
                                             "a blurry photo of a {}.",
                                             "a black and white photo of the {}.",
                                             "a low contrast photo of a {}.",
                                             "a high contrast photo of a {}.",
                                             "a bad photo of a {}.",
                                             "a good photo of the {}.",
                                             "a photo of a small {}.",
                                             "a photo of a big {}."};
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct family *family_draw_lots(struct dice *dice)
{
    int total = 0;
    for (int i = 0; i < COUNT(families); i++)
        total += families[i].weight;
    int ticket = dice_below(dice, total);
    const struct family *family = families;
    for (; ticket >= family->weight; family++)
        ticket -= family->weight;
    return family;
}

/* Half of the captions use the family's own templates, where it has some. */
static const char *template_choose(struct sketch *sketch, bool only_own)
{
    struct dice *dice = &sketch->dice;
    if (sketch->templates != NULL && (only_own || dice_chance(dice, 0.5f))) {
        int count = 0;
        while (sketch->templates[count] != NULL)
            count++;
        return sketch->templates[dice_below(dice, count)];
    }
    if (dice_chance(dice, 0.2f))
        return rare_templates[dice_below(dice, COUNT(rare_templates))];
    return plain_templates[dice_below(dice, COUNT(plain_templates))];
}

static status caption_write(const char *template, const char *phrase, char *caption, size_t capacity,
                            struct error *error)
{
    const char *gap = strstr(template, "{}");
    size_t before = (size_t)(gap - template), middle = strlen(phrase), after = strlen(gap + 2);
    if (before + middle + after >= capacity)
        return error_set(error, ERROR_ARGUMENT, "caption: expected room for %zu characters, found %zu",
                         before + middle + after + 1, capacity);
    snprintf(caption, capacity, "%.*s%s%s", (int)before, template, phrase, gap + 2);
    return OK;
}

/* Effects of a camera. */
static void after_effects(struct sketch *sketch)
{
    struct dice *dice = &sketch->dice;
    struct canvas *canvas = &sketch->canvas;
    float much = sketch->harder ? 1 : 0.3f;
    if (dice_chance(dice, 0.6f * much))
        canvas_blur(canvas, 1 + dice_below(dice, sketch->harder ? 3 : 1));
    if (dice_chance(dice, 0.3f * much))
        canvas_pixelate(canvas, 2);
    if (dice_chance(dice, 0.6f))
        canvas_contrast(canvas, 1 + much * dice_between(dice, -0.45f, 0.2f), much * dice_between(dice, -0.14f, 0.14f));
    if (dice_chance(dice, 0.7f))
        canvas_add_noise(canvas, dice, much * dice_between(dice, 0.01f, 0.09f));
}

status captioned_drawing(uint64_t seed, uint64_t index, enum captioned_level level, uint8_t *pixels, char *caption,
                         size_t capacity, struct error *error)
{
    struct sketch sketch = {.canvas.side = CAPTIONED_SIDE, .harder = level == CAPTIONED_HARDER};
    sketch.dice = dice_make(seed, STREAM_CAPTIONS, index);
    sketch.frame = frame_canvas(&sketch.canvas);
    noise_fill(&sketch.noise, &sketch.dice);
    const struct family *family = family_draw_lots(&sketch.dice);
    family->draw(&sketch);
    const char *template = template_choose(&sketch, family->own_templates_only);
    after_effects(&sketch);
    canvas_export(&sketch.canvas, pixels);
    return caption_write(template, sketch.phrase, caption, capacity, error);
}

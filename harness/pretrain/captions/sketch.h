/* A captioned drawing in progress: the picture, its phrase, and the random source of both.
 *
 *     static void draw_ball(struct sketch *sketch)
 *     {
 *         const struct tint *tint = sketch_tint(sketch);
 *         sketch_background(sketch, tint->colour);
 *         sketch_say(sketch, tint->name);
 *         sketch_say(sketch, "ball");
 *         ...
 *     }
 *
 * A family is one such function and a line in captions.c.
 */
#ifndef MTIL_HARNESS_PRETRAIN_CAPTIONS_SKETCH_H
#define MTIL_HARNESS_PRETRAIN_CAPTIONS_SKETCH_H

#include "datasets/mini/figure.h"
#include "harness/pretrain/captions.h"

struct sketch {
    struct canvas canvas;
    struct frame frame;
    struct dice dice;
    struct noise noise;
    bool harder;
    const char *const *templates; /* the family's own, ended by NULL; a drawing may replace it */
    size_t length;
    char phrase[CAPTION_CAPACITY];
};

/* A colour and its word. */
struct tint {
    const char *name;
    struct colour colour;
};
enum { TINTS = 12 };
extern const struct tint tints[TINTS];

void sketch_say(struct sketch *sketch, const char *words); /* appends, with a space before; "" appends nothing */
void sketch_say_sometimes(struct sketch *sketch, float probability, const char *words);

const struct tint *sketch_tint(struct sketch *sketch);
const struct tint *sketch_other_tint(struct sketch *sketch, const struct tint *tint);          /* clearly another one */
const struct tint *sketch_tint_of(struct sketch *sketch, const char *const *names, int count); /* one of the named */
struct paint sketch_solid(struct sketch *sketch,
                          struct colour colour); /* a little off, so that no two reds are the same */

/* Fills the picture: a colour far from avoid, a gradient or, at the harder level, a texture. */
void sketch_background(struct sketch *sketch, struct colour avoid);
void sketch_fill(struct sketch *sketch, struct colour colour); /* a plain background of about that colour */

/* Size and place of one thing, with the words for them ("" when unsaid). */
struct placement {
    struct frame frame;
    const char *size, *where;
};
struct placement sketch_placement(struct sketch *sketch);
struct frame sketch_centre(struct sketch *sketch, float least,
                           float most); /* near the middle, half-size in [least, most] */

/* paints by role: body, an own detail colour, dark and light */
void sketch_paints(struct sketch *sketch, struct colour body, struct colour detail, struct paint paints[ROLES]);

/* The families. */
void draw_shape(struct sketch *sketch);
void draw_relation(struct sketch *sketch);
void draw_count(struct sketch *sketch);
void draw_texture(struct sketch *sketch);
void draw_gradient(struct sketch *sketch);
void draw_digit(struct sketch *sketch);
void draw_letter(struct sketch *sketch);
void draw_object(struct sketch *sketch);
void draw_head(struct sketch *sketch);
void draw_animal(struct sketch *sketch);
void draw_vehicle(struct sketch *sketch);
void draw_plane(struct sketch *sketch);
void draw_flower(struct sketch *sketch);
void draw_food(struct sketch *sketch);
void draw_scene(struct sketch *sketch);
void draw_land(struct sketch *sketch);

#endif

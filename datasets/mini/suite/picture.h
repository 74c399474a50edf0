/* A picture of the suite in the making, and its generators.
 *
 *     static const struct part bell[] = {
 *         FILL(ROLE_BODY, {-0.6f, 0.6f}, {0, -0.8f}, {0.6f, 0.6f}),
 *         OVAL(ROLE_DETAIL, 0, 0.7f, 0.15f, 0.15f),
 *     };
 *     picture_backdrop(picture, grey, 12);
 *     struct frame frame = picture_subject(picture, 0.7f, 0.9f);
 *     picture_figure(picture, &frame, &(struct figure){PARTS(bell)}, paints);
 *
 * Coordinates are a frame's: −1 … 1, y downwards.
 */
#pragma once

#include "datasets/mini/canvas.h"
#include "datasets/mini/suite.h"

struct picture {
    struct canvas canvas;
    struct frame frame;
    struct dice dice;
    struct noise noise;
    const struct difficulty *difficulty;
    struct paint ink;
};

/* The picture's only ink, set to a shade near colour; valid until the next call. */
const struct paint *picture_ink(struct picture *picture, struct colour colour);

/* A shape (canvas.h) in this ink. */
void picture_polygon(struct picture *picture, const struct frame *frame, const struct point *points, size_t count,
                     struct colour colour);
void picture_ellipse(struct picture *picture, const struct frame *frame, float x, float y, float radius_x,
                     float radius_y, struct colour colour);
void picture_rectangle(struct picture *picture, const struct frame *frame, float left, float top, float right,
                       float bottom, struct colour colour);
void picture_stroke(struct picture *picture, const struct frame *frame, const struct point *points, size_t count,
                    float width, struct colour colour);
void picture_line(struct picture *picture, const struct frame *frame, struct point from, struct point to, float width,
                  struct colour colour);

/* Starts the picture: blotches of two colours, as different as the domain's clutter says. */
void picture_backdrop(struct picture *picture, struct colour colour, float period);

/* A frame near the middle, half-size in [least, most], tilted as the domain says, mirrored or not. */
struct frame picture_subject(struct picture *picture, float least, float most);

struct colour picture_shade(struct colour colour, float amount); /* darker for amount < 0, lighter for > 0 */
float picture_between(struct picture *picture, float low, float high);

/* Figures as data: an object is a list of polygons, lines and ovals, each painted by its role. */
enum role { ROLE_BODY, ROLE_DETAIL, ROLE_DARK, ROLE_LIGHT, ROLES };
enum part_kind { PART_FILL, PART_LINE, PART_OVAL };

struct part {
    enum part_kind kind;
    enum role role;
    float width; /* of a line */
    size_t count;
    const struct point *points; /* an oval has two: centre and radii */
};

struct figure {
    const struct part *parts;
    size_t count;
};

#define POINTS(...)                                                                                                    \
    sizeof((const struct point[]){__VA_ARGS__}) / sizeof(struct point), (const struct point[])                         \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define FILL(role, ...)                                                                                                \
    {                                                                                                                  \
        PART_FILL, role, 0, POINTS(__VA_ARGS__)                                                                        \
    }
#define LINE(role, width, ...)                                                                                         \
    {                                                                                                                  \
        PART_LINE, role, width, POINTS(__VA_ARGS__)                                                                    \
    }
#define OVAL(role, x, y, radius_x, radius_y)                                                                           \
    {                                                                                                                  \
        PART_OVAL, role, 0, POINTS({x, y}, {radius_x, radius_y})                                                       \
    }
#define PARTS(array) array, sizeof(array) / sizeof((array)[0])

/* Draws the parts in order; every point moves by up to ± the domain's wobble. */
void picture_figure(struct picture *picture, const struct frame *frame, const struct figure *figure,
                    const struct paint paints[ROLES]);

/* Draws the outlines alone, all with one paint. */
void picture_outline(struct picture *picture, const struct frame *frame, const struct figure *figure,
                     const struct paint *paint);

/* --- the domains -------------------------------------------------------------------------------------------------- */

void suite_draw_aircraft(struct picture *picture, int label);
void suite_draw_caltech101(struct picture *picture, int label);
void suite_draw_cifar100(struct picture *picture, int label);
void suite_draw_dtd(struct picture *picture, int label);
void suite_draw_eurosat(struct picture *picture, int label);
void suite_draw_flowers(struct picture *picture, int label);
void suite_draw_food(struct picture *picture, int label);
void suite_draw_oxford_pet(struct picture *picture, int label);
void suite_draw_stanford_cars(struct picture *picture, int label);
void suite_draw_sun397(struct picture *picture, int label);

extern const char *const aircraft_names[],
    *const caltech101_names[], *const cifar100_names[],
                                   *const dtd_names[], *const eurosat_names[], *const flowers_names[],
                                                                                   *const food_names[],
                                                                                       *const oxford_pet_names[],
                                                                                           *const stanford_cars_names[],
                                                                                               *const sun397_names[];

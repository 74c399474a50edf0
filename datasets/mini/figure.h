/* Figures as data: an object is a list of polygons, lines and ovals, each painted by its role.
 *
 *     static const struct part bell[] = {
 *         FILL(ROLE_BODY, {-0.6f, 0.6f}, {0, -0.8f}, {0.6f, 0.6f}),
 *         OVAL(ROLE_DETAIL, 0, 0.7f, 0.15f, 0.15f),
 *     };
 *     figure_draw(&canvas, &frame, &(struct figure){PARTS(bell)}, paints, 0.02f, &dice);
 *
 * Coordinates are a frame's: −1 … 1, y downwards.
 */
#pragma once

#include "datasets/mini/canvas.h"

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

/* Draws the parts in order; every point moves by up to ± wobble. */
void figure_draw(struct canvas *canvas, const struct frame *frame, const struct figure *figure,
                 const struct paint paints[ROLES], float wobble, struct dice *dice);

/* The same as a line drawing: outlines only, all with one paint. */
void figure_outline(struct canvas *canvas, const struct frame *frame, const struct figure *figure,
                    const struct paint *paint, float width, float wobble, struct dice *dice);

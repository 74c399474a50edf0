#include "datasets/mini/figure.h"

#include <assert.h>

static size_t wobbled_points(const struct part *part, float wobble, struct dice *dice, struct point *points)
{
    assert(part->count < CANVAS_POINTS);
    for (size_t i = 0; i < part->count; i++) {
        float dx = dice_between(dice, -wobble, wobble);
        points[i] = (struct point){part->points[i].x + dx, part->points[i].y + dice_between(dice, -wobble, wobble)};
    }
    return part->count;
}

void figure_draw(struct canvas *canvas, const struct frame *frame, const struct figure *figure,
                 const struct paint paints[ROLES], float wobble, struct dice *dice)
{
    for (size_t i = 0; i < figure->count; i++) {
        const struct part *part = &figure->parts[i];
        struct point points[CANVAS_POINTS];
        size_t count = wobbled_points(part, wobble, dice, points);
        const struct paint *paint = &paints[part->role];
        if (part->kind == PART_FILL)
            canvas_polygon(canvas, frame, points, count, paint);
        else if (part->kind == PART_LINE)
            canvas_stroke(canvas, frame, points, count, part->width, paint);
        else
            canvas_ellipse(canvas, frame, points[0].x, points[0].y, points[1].x, points[1].y, paint);
    }
}

static size_t oval_outline(struct point *points)
{
    enum { CORNERS = 20 };
    struct point centre = points[0], radius = points[1];
    for (int i = 0; i <= CORNERS; i++) {
        float turns = (float)i / CORNERS;
        points[i] = (struct point){centre.x + radius.x * turn_cosine(turns), centre.y + radius.y * turn_sine(turns)};
    }
    return CORNERS + 1;
}

void figure_outline(struct canvas *canvas, const struct frame *frame, const struct figure *figure,
                    const struct paint *paint, float width, float wobble, struct dice *dice)
{
    for (size_t i = 0; i < figure->count; i++) {
        struct point points[CANVAS_POINTS];
        size_t count = wobbled_points(&figure->parts[i], wobble, dice, points);
        if (figure->parts[i].kind == PART_OVAL)
            count = oval_outline(points);
        else if (figure->parts[i].kind == PART_FILL)
            points[count++] = points[0];
        canvas_stroke(canvas, frame, points, count, width, paint);
    }
}

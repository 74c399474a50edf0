/* A small software rasteriser: antialiased polygons, ellipses and strokes on a square float RGB picture.
 *
 *     struct canvas canvas;
 *     canvas_clear(&canvas, 64, &sky);
 *     struct frame frame = frame_place(frame_canvas(&canvas), 0.2f, 0, 0.5f, 0.5f, 0.1f);
 *     canvas_ellipse(&canvas, &frame, 0, 0, 1, 0.6f, &paint);
 *     canvas_export(&canvas, pixels);                          // [side, side, 3], 8 bits
 *
 * Coordinates run from −1 (left, top) to 1 (right, bottom) inside a frame; frames nest. Nothing here can fail: what
 * lies outside the picture is clipped. Plain float arithmetic and square roots only, so the bits are the same
 * everywhere.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "datasets/mini/paint.h"

enum { CANVAS_SIDE = 64, CANVAS_POINTS = 64 }; /* the largest picture; the most points of one polygon or stroke */

struct canvas {
    int side;
    struct colour pixels[CANVAS_SIDE * CANVAS_SIDE];
};

struct point {
    float x, y;
};

/* pixel = (xx·x + xy·y + x0, yx·x + yy·y + y0) */
struct frame {
    float xx, xy, x0, yx, yy, y0;
};

struct frame frame_canvas(const struct canvas *canvas);

/* A frame inside frame: centred at (x, y), half as wide as scale_x and as high as scale_y, turned clockwise. */
struct frame frame_place(struct frame frame, float x, float y, float scale_x, float scale_y, float turns);

/* Starts a picture of side × side pixels, side ≤ CANVAS_SIDE. */
void canvas_clear(struct canvas *canvas, int side, const struct paint *paint);

/* points[count]: a closed outline, filled by the even-odd rule. */
void canvas_polygon(struct canvas *canvas, const struct frame *frame, const struct point *points, size_t count,
                    const struct paint *paint);
void canvas_ellipse(struct canvas *canvas, const struct frame *frame, float x, float y, float radius_x, float radius_y,
                    const struct paint *paint);
void canvas_rectangle(struct canvas *canvas, const struct frame *frame, float left, float top, float right,
                      float bottom, const struct paint *paint);

/* points[count]: an open line of the given width (in frame units) with round ends and joints. */
void canvas_stroke(struct canvas *canvas, const struct frame *frame, const struct point *points, size_t count,
                   float width, const struct paint *paint);
void canvas_line(struct canvas *canvas, const struct frame *frame, struct point from, struct point to, float width,
                 const struct paint *paint);

/* After-effects on the whole picture. */
void canvas_add_noise(struct canvas *canvas, struct dice *dice, float deviation); /* the same value on all channels */
void canvas_blur(struct canvas *canvas, int passes);                              /* (1 2 1)/4 both ways, each pass */

void canvas_export(const struct canvas *canvas, uint8_t *pixels); /* [side, side, 3] of the caller's */

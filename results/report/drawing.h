/* Drawing functions for the panels of figures: SVG with the colours and text sizes of style.css, so that it follows the
 * theme.
 *
 *     draw_begin(svg, panel, WIDTH, HEIGHT);
 *     draw_line(svg, "axis", LEFT, BOTTOM, RIGHT, BOTTOM);
 *     draw_end(svg);
 */
#ifndef MTIL_RESULTS_REPORT_DRAWING_H
#define MTIL_RESULTS_REPORT_DRAWING_H

#include "results/report/figure.h"

struct drawing_size {
    double width, height;
};

/* A panel of each kind; width 0: as on the page. draw_heat draws cells, too. */
typedef struct drawing_size draw_function(struct text *svg, const struct figure *figure,
                                          const struct figure_panel *panel, const struct figure_range *range,
                                          double width);
draw_function draw_lines, draw_heat, draw_intervals;

void draw_begin(struct text *svg, const struct figure_panel *panel, double width, double height);
void draw_end(struct text *svg);
double draw_width(const char *string, size_t most); /* approximate width of its first `most` characters */

/* Draws at most `most` characters; the whole string shows on hover. */
void draw_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most);
void draw_number(struct text *svg, const char *class, double x, double y, double value, int decimals);
void draw_line(struct text *svg, const char *class, double x1, double y1, double x2, double y2);

/* Draws the mark of a point, one shape per colour; label and value show on hover. */
void draw_mark(struct text *svg, size_t colour, double x, double y, const char *label, double value, int decimals);

#endif

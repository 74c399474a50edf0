/* What panels of figures are drawn with: SVG whose colours and sizes of text are style.css's, so that they follow the theme.
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

/* A panel of each kind; width 0: as on the page. */
typedef struct drawing_size draw_function(struct text *svg, const struct figure *figure,
                                          const struct figure_panel *panel, const struct figure_range *range,
                                          double width);
draw_function draw_lines, draw_heat, draw_intervals;

void draw_begin(struct text *svg, const struct figure_panel *panel, double width, double height);
void draw_end(struct text *svg);
double draw_width(const char *string, size_t most); /* about what so many characters of it take */
void draw_text(struct text *svg, const char *class, double x, double y, const char *string);

/* Its first characters, at most so many; all of it when pointed at. */
void draw_short_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most);
void draw_tick(struct text *svg, const char *class, double x, double y, double value); /* a number */
void draw_line(struct text *svg, const char *class, double x1, double y1, double x2, double y2);

/* The point's mark, another shape for every colour, with what it says when pointed at. */
void draw_mark(struct text *svg, size_t colour, double x, double y, const char *label, double value, int decimals);

#endif

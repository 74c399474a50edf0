/* Drawing: SVG with the colours and text sizes of style.css, so that it follows the theme. A kind of figure is a function of a
 * file drawing_KIND.c, made of the functions below, and a line in the table of figure.c.
 */
#ifndef MTIL_RESULTS_REPORT_DRAWING_H
#define MTIL_RESULTS_REPORT_DRAWING_H

#include "results/report/figure.h"

struct drawing_size {
    double width, height;
};

/* What a panel is drawn into, below its title. */
struct drawing {
    struct text *svg;
    const struct figure *figure;
    const struct figure_panel *panel;
    struct figure_range range; /* of values */
    double width;              /* 0: as on the page */
};

typedef struct drawing_size draw_function(const struct drawing *drawing);
draw_function draw_lines, draw_heat, draw_cells, draw_intervals;

struct figure_kind {
    const char *word;
    draw_function *draw;
    const char *needs[2]; /* columns */
    bool wide;            /* a panel takes more room than others */
    bool legend;          /* colours have names */
    bool grid;            /* marks lie in columns and rows */
    bool shades;          /* colours are values */
    bool bars;            /* values begin at zero */
};
const struct figure_kind *draw_kind(const char *words); /* of the line "-- draw"; NULL: there is none */

/* Draws a panel as an svg element; width 0: as on the page. */
struct drawing_size draw_panel(struct text *svg, const struct figure *figure, size_t panel, double width);

/* The colour bar of shades: its name and ends, from x on. */
void draw_colour_bar(struct text *svg, const struct figure *figure, double x, double y);

/* The colour's name in the legend; NULL: it has none, or the figure has no legend. */
const char *draw_legend(const struct figure *figure, size_t colour);

double draw_width(const char *string, size_t most); /* approximate width of its first `most` characters */

/* Draws at most `most` characters; the whole string shows on hover. */
void draw_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most);
void draw_number(struct text *svg, const char *class, double x, double y, double value, int decimals);
void draw_line(struct text *svg, const char *class, double x1, double y1, double x2, double y2);
void draw_tick(struct text *svg, double x, double axis, double value);

/* Draws the mark of a point, one shape per colour; label and value show on hover. */
void draw_mark(struct text *svg, size_t colour, double x, double y, const char *label, double value, int decimals);
void draw_hover(struct text *svg, const char *label, double value, int decimals); /* and ends the path */

void draw_widen(struct figure_range *range, double value); /* NAN does not */

/* Round numbers within the range, a handful, or whole ones for what counts tasks or iterations; returns how many. */
enum { DRAW_TICKS = 8 };
size_t draw_ticks(struct figure_range range, bool fractions, double ticks[DRAW_TICKS]);

#endif

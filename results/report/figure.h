/* A figure: rows of an answer as marks in panels that share their axes, drawn as SVG with the colours and text sizes of style.css,
 * so that it follows the theme.
 *
 *     draw_figure(page, &figure, with_files);                  // into the page
 *     TRY(picture_write("report/figures", &figure, error));    // NAME.svg, NAME-column.svg, NAME.csv, …
 *
 * Everything is borrowed. A kind of figure is a function of a file drawing_KIND.c, made of the functions of drawing.c, and a
 * line in the table of figure.c.
 */
#ifndef MTIL_RESULTS_REPORT_FIGURE_H
#define MTIL_RESULTS_REPORT_FIGURE_H

#include "core/text.h"
#include "results/report.h"
#include "results/table.h"

struct figure_range {
    double low, high;
};

/* Of a row. A line has a gap where the value is NAN, a cell is empty. */
struct figure_mark {
    double x, y;             /* of a point: x; of a cell: its column and row, from 0 */
    double value, low, high; /* low, high: ends of its band or interval; NAN: none */
    const char *name;        /* of its series */
    size_t colour;           /* 0 to REPORT_BEST − 1 */
    bool begins;             /* a series */
    bool framed;
};

struct figure_panel {
    const char *title;
    double line; /* of lines: position of a vertical one; NAN: none */
    const struct figure_mark *mark;
    size_t marks;
};

struct figure_names {
    const char **name;
    size_t count;
};

struct figure {
    const struct figure_kind *kind;
    const char *words;  /* of the line "-- draw" (README.md): "line|points|1" */
    bool zero, printed; /* the axis of values has a line at 0; shades have their values in them */
    const char *name;   /* of its files, unique in the report: letters, digits and "-" */
    const char *title, *caption;
    const char *x_title, *y_title;   /* of the axes; NULL: none */
    const char *value_title;         /* of the colour bar; NULL: none */
    const char *legend[REPORT_BEST]; /* names of the colours; NULL: not in use */
    struct figure_names column, row; /* of shades */
    double columns, rows;            /* of cells: how many */
    double low, high;                /* the axis of values, or the first and last shade; NAN: as the values are */
    int decimals;                    /* of values that are printed */
    struct figure_panel *panel;
    size_t panels;
    const struct table *table; /* whose rows [first, end) are drawn */
    size_t first, end;
};

/* Adds the figure to the page; with_files: names those for papers. */
void draw_figure(struct text *page, const struct figure *figure, bool with_files);

/* Writes the files for papers, in the width of one column (NAME-column) and of two (NAME): SVG, whose words are text in the
 * viewer's sans-serif, and of it, drawn by cairo, PDF with the glyphs of its words and PNG with 300 dpi. NAME.txt is a
 * caption, NAME.csv has the rows. The same figure has the same bytes on the same machine. */
status picture_write(const char *folder, const struct figure *figure, struct error *error);

/* --- How a panel is drawn --- */

struct drawing {
    struct text *svg;
    const struct figure *figure;
    const struct figure_panel *panel;
    struct figure_range range; /* of values */
    bool file;                 /* which cuts off what leaves it */
    double width, height;      /* of the panel; the kind sets the height, and less or more of a width if it has to */
};

struct figure_kind {
    const char *word;
    void (*draw)(struct drawing *drawing); /* below the title */
    const char *needs[2];                  /* columns */
    double width, least;                   /* of panels: on the page, and in files at least */
    bool legend;                           /* colours have names */
    bool grid;                             /* marks lie in columns and rows */
    bool shades;                           /* colours are values */
    bool bars;                             /* values begin at zero */
};
const struct figure_kind *figure_kind(const char *words); /* of the line "-- draw"; NULL: there is none */
void draw_lines(struct drawing *drawing), draw_heat(struct drawing *drawing), draw_cells(struct drawing *drawing),
    draw_intervals(struct drawing *drawing);

/* Draws a panel as an svg element and returns its height; width 0: as on the page. */
double figure_panel(struct text *svg, const struct figure *figure, size_t panel, double width);

/* The colour bar of shades: its name and ends, from x on. */
void figure_colour_bar(struct text *svg, const struct figure *figure, double x, double y);

/* The colour's name in the legend; NULL: it has none, or the figure has no legend. */
const char *figure_legend(const struct figure *figure, size_t colour);

/* --- drawing.c --- */

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

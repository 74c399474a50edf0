/* A figure: rows of an answer as marks in panels that share their axes, drawn as SVG with the colours and text sizes of style.css,
 * so that it follows the theme.
 *
 *     struct figure figure;
 *     status result = figure_read(&figure, part, error);
 *     …
 *     figure_show(page, &figure, with_files);                  // into the page
 *     NEXT(result, figure_write(&figure, error));              // NAME.svg, NAME-column.svg, NAME.csv, …
 *     figure_free(&figure);
 */
#pragma once

#include "core/text.h"
#include "results/report.h"
#include "results/report/data.h"

struct figure_range {
    double low, high;
};

/* The mark of a row. Where the value is NAN, a line has a gap and a cell is empty. */
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

/* The columns or the rows of cells. */
struct figure_names {
    const char **name;
    size_t count;
};

struct figure {
    const struct part *part;
    const struct figure_kind *kind;
    bool in_table;                   /* of one panel, whose values the page has as a table */
    bool printed;                    /* cells have their values in them */
    bool zero;                       /* the axis of values has a line at 0 */
    int decimals;                    /* of values that are printed */
    const char *legend[REPORT_BEST]; /* names of the colours; NULL: not in use */
    struct figure_names column, row;
    struct figure_mark *mark;
    struct figure_panel *panel;
    size_t panels; /* 0: there is nothing to draw */
};

status figure_read(struct figure *figure, const struct part *part, struct error *error);
void figure_free(struct figure *figure);

/* Adds the figure to the page; with_files: names those for papers. */
void figure_show(struct text *page, const struct figure *figure, bool with_files);

/* Adds the files for papers to those of the report, in the width of one column (NAME-column) and of two (NAME): SVG, whose words
 * are text in the viewer's sans-serif. NAME.txt is a caption, NAME.csv has the rows. The same figure has the same bytes. */
status figure_write(const struct figure *figure, struct error *error);

/* The range of a panel's axis of values, or of its shades. */
struct figure_range figure_values(const struct figure *figure, size_t panel);

/* The colour's name in the legend; NULL: it has none, or the figure has no legend. */
const char *figure_legend(const struct figure *figure, size_t colour);

/* --- How a panel is drawn --- */

struct drawing {
    struct text *svg;
    const struct figure *figure;
    const struct figure_panel *panel;
    struct figure_range range; /* of values */
    bool file;                 /* drawn for a file, which cuts off marks outside the panel */
    double width, height;      /* of the panel; the kind sets the height, and less or more of a width if it has to */
    double left, column, row, gap; /* of cells: where the first one begins, sizes with the gap, and this */
    size_t letters;                /* of the names of columns and rows */
};

struct figure_kind {
    const char *word;
    enum figure_form { FORM_LINES, FORM_ROWS, FORM_GRID } form;
    const char *needs[2], *value; /* columns */
    double width, least;          /* of panels: on the page, and in files at least */
    bool legend;                  /* colours have names */
    bool shades;                  /* colours are values */
    bool bars;                    /* values begin at zero */
};

/* Draw a panel below its title. */
void draw_lines(struct drawing *drawing), draw_rows(struct drawing *drawing), draw_grid(struct drawing *drawing);

double draw_width(const char *string, size_t most); /* approximate width of its first `most` characters */

/* Draws at most `most` characters; the whole string shows on hover. */
void draw_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most);
void draw_number(struct text *svg, const char *class, double x, double y, double value, int decimals);

/* Draws the mark of a point, one shape per colour; label and value show on hover. */
void draw_mark(struct text *svg, size_t colour, double x, double y, const char *label, double value, int decimals);

/* A figure: rows of an answer as marks in panels that share their axes.
 *
 *     draw_figure(page, &figure, with_files);                  // into the page
 *     TRY(picture_write("report/figures", &figure, error));    // NAME.svg, NAME-column.svg, NAME.csv, …
 *
 * Everything is borrowed.
 */
#ifndef MTIL_RESULTS_REPORT_FIGURE_H
#define MTIL_RESULTS_REPORT_FIGURE_H

#include "core/text.h"
#include "results/report.h"
#include "results/table.h"

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

struct figure_range {
    double low, high;
};

/* Adds the figure to the page; with_files: names those for papers. */
void draw_figure(struct text *page, const struct figure *figure, bool with_files);

/* Writes the files for papers, in the width of one column (NAME-column) and of two (NAME): SVG, whose words are text in the
 * viewer's sans-serif, and of it, drawn by cairo, PDF with the glyphs of its words and PNG with 300 dpi. NAME.txt is a
 * caption, NAME.csv has the rows. The same figure has the same bytes on the same machine. */
status picture_write(const char *folder, const struct figure *figure, struct error *error);

#endif

/* A figure as data: drawn into the page by drawing.c, and into files for papers by picture.c.
 *
 *     struct figure figure = {.name = "forgetting", .kind = FIGURE_LINES, .x_title = "after task", …};
 *     TRY(section_figure(call, &figure, error));
 *
 * A figure is a set of panels of one kind that share their axes. Everything is borrowed.
 */
#ifndef MTIL_RESULTS_REPORT_FIGURE_H
#define MTIL_RESULTS_REPORT_FIGURE_H

#include <stdint.h>

#include "core/text.h"
#include "results/report.h"

enum figure_kind {
    FIGURE_LINES,     /* series over x */
    FIGURE_HEAT,      /* a value per cell, as shades */
    FIGURE_INTERVALS, /* a mean and its interval per row */
    FIGURE_CELLS,     /* a number per cell, as colours */
};

/* Points in the order of x; low and high are the ends of a band, NULL: none. NAN in y interrupts the line. */
struct figure_series {
    size_t colour; /* 0 to REPORT_BEST − 1, and of the legend's entries */
    size_t points;
    const double *x, *y, *low, *high;
};

struct figure_interval {
    const char *label;
    size_t colour;
    double mean, low, high; /* low, high NAN: unknown */
};

struct figure_panel {
    const char *title;
    const struct figure_series *series; /* FIGURE_LINES */
    size_t series_count;
    double mark;                            /* FIGURE_LINES: position of a vertical line; NAN: none */
    const double *value;                    /* FIGURE_HEAT, FIGURE_CELLS: [rows, columns]; NAN: empty */
    const uint8_t *colour;                  /* FIGURE_CELLS: likewise, 0 to REPORT_BEST − 1 */
    const bool *framed;                     /* FIGURE_HEAT: the same, cells with a frame; NULL: none */
    const struct figure_interval *interval; /* FIGURE_INTERVALS */
    size_t intervals;
};

struct figure {
    const char *name; /* of its files, unique in the report: letters, digits and "-" */
    const char *title;
    const char *caption;
    enum figure_kind kind;
    const char *x_title, *y_title; /* of the axes */
    const char *value_title;       /* FIGURE_HEAT: title of the colour bar */
    const struct figure_panel *panel;
    size_t panels;
    const char **legend; /* names of the colours, NULL: not in use; NULL: none */
    size_t legend_count;
    const char **x_label, **y_label; /* FIGURE_HEAT: of columns and rows */
    size_t columns, rows;            /* FIGURE_HEAT, FIGURE_CELLS: how many */
    double low, high;                /* the axis of values, or the first and last shade; NAN: as the values are */
    int decimals;                    /* of values that are printed */
    bool printed;                    /* FIGURE_HEAT: values are printed in the cells */
    bool zero;                       /* FIGURE_INTERVALS: a line at 0 */
    bool points;                     /* FIGURE_LINES: a mark at each point */
    bool fractions;                  /* FIGURE_LINES: the horizontal axis has them */
    bool noisy;                      /* FIGURE_LINES: may be smoothed on the page */
    bool only_file;                  /* the page shows the same as a table */
    bool own_ranges;                 /* each panel has its own range of values */
};

/* The range of a panel's axis of values, or of its shades. */
struct figure_range {
    double low, high;
};
struct figure_range figure_range(const struct figure *figure, size_t panel);

/* The range of the horizontal axis of FIGURE_LINES, which all panels share. */
struct figure_range figure_range_x(const struct figure *figure);

/* Whether a line of FIGURE_LINES or a cell of FIGURE_CELLS has the colour. */
bool figure_uses(const struct figure *figure, size_t colour);

/* Whether the figure's colours have to be named: several are, or cells are. */
bool figure_names(const struct figure *figure);

/* Round numbers within [low, high], a handful; returns how many. */
enum { FIGURE_TICKS = 8 };
size_t figure_ticks(double low, double high, double ticks[FIGURE_TICKS]);

/* The same without fractions, for axes that count tasks or iterations. */
size_t figure_whole_ticks(double low, double high, double ticks[FIGURE_TICKS]);

/* Appends the drawn numbers as blocks of lines, which gnuplot and NumPy read. */
void figure_data(struct text *data, const struct figure *figure);

#endif

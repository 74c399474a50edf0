/* A figure drawn: its panels as SVG, and the whole of it within the page.
 *
 *     draw_figure(page, figure, true);
 *
 * One function per kind of figure, each in a file of its own (drawing_KIND.c).
 */
#ifndef MTIL_RESULTS_REPORT_FIGURE_DRAWING_H
#define MTIL_RESULTS_REPORT_FIGURE_DRAWING_H

#include "results/report/drawing.h"

/* Draws a panel as an svg element and returns its size; width 0: as on the page. */
struct drawing_size draw_panel(struct text *svg, const struct figure *figure, size_t panel, double width);

/* The colour bar of a heat map: its name and ends, from x on. */
void draw_colour_bar(struct text *svg, const struct figure *figure, double x, double y);

/* The figure within the page: title, legend, panels and caption; with_files: it names the files for papers. */
void draw_figure(struct text *page, const struct figure *figure, bool with_files);

#endif

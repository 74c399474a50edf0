/* Figures as files for papers: a gnuplot script and its data for each, drawn by one gnuplot as a child process.
 *
 *     report.plots = plot_is_available();
 *     TRY(plot_write(report, figure, error));      // figures/NAME.gp, figures/NAME.dat
 *     TRY(plot_draw(report, error));                          // figures/NAME.svg, figures/NAME.png
 *
 * Scripts and data stay beside the figures, so that somebody who wants another font changes a line and runs gnuplot.
 */
#ifndef MTIL_RESULTS_REPORT_PLOT_H
#define MTIL_RESULTS_REPORT_PLOT_H

#include "results/report/figure.h"

#define PLOT_FOLDER "figures"

bool plot_is_available(void);

status plot_write(struct report *report, const struct figure *figure, struct error *error);

/* ERROR_IO, with what gnuplot said, when it does not succeed. */
status plot_draw(struct report *report, struct error *error);

/* The script and the data, appended; what plot_write writes. */
void plot_script(struct text *script, const struct figure *figure);
void plot_data(struct text *data, const struct figure *figure);

#endif

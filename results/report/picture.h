/* Figures as files for papers, drawn as in the page: SVG, and PNG and PDF by librsvg.
 *
 *     TRY(picture_write("report/figures", figure, error));      // NAME.svg, NAME.png, NAME.pdf, NAME.dat
 */
#ifndef MTIL_RESULTS_REPORT_PICTURE_H
#define MTIL_RESULTS_REPORT_PICTURE_H

#include "results/report/figure.h"

status picture_write(const char *folder, const struct figure *figure, struct error *error);

/* The SVG document, appended: white ground, the colours of the light theme. */
void picture_svg(struct text *svg, const struct figure *figure);

#endif

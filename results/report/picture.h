/* Figures as files for papers, in the width of one column (NAME-column) and of two (NAME): PDF and SVG with text in
 * embedded fonts, and PNG with 300 dpi.
 *
 *     TRY(picture_write("report/figures", figure, error));      // and NAME.dat, the numbers, NAME.txt, a caption
 */
#ifndef MTIL_RESULTS_REPORT_PICTURE_H
#define MTIL_RESULTS_REPORT_PICTURE_H

#include "results/report/figure.h"

status picture_write(const char *folder, const struct figure *figure, struct error *error);

enum picture_width { PICTURE_COLUMN, PICTURE_PAGE, PICTURE_WIDTHS };

/* Appends the SVG document, from which the other files are made: white background, the colours of the light theme, its
 * fonts. */
status picture_svg(struct text *svg, const struct figure *figure, enum picture_width width, struct error *error);

#endif

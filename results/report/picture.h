/* Figures as files for papers, in the width of one column (NAME-column) and of two (NAME): PDF and SVG, which contain
 * their letters, and PNG with 300 dpi.
 *
 *     TRY(picture_write("report/figures", figure, error));      // and NAME.dat, the numbers, NAME.txt, a caption
 */
#ifndef MTIL_RESULTS_REPORT_PICTURE_H
#define MTIL_RESULTS_REPORT_PICTURE_H

#include "results/report/figure.h"

status picture_write(const char *folder, const struct figure *figure, struct error *error);

enum picture_width { PICTURE_COLUMN, PICTURE_PAGE, PICTURE_WIDTHS };

/* The SVG document that is drawn, appended: white ground, the colours of the light theme. */
void picture_svg(struct text *svg, const struct figure *figure, enum picture_width width);

#endif

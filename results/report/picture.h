/* Figures as files for papers, in the width of one column (NAME-column) and of two (NAME): SVG, whose words are text in the
 * viewer's sans-serif, and of it, drawn by cairo, PDF with the glyphs of its words and PNG with 300 dpi.
 *
 *     TRY(picture_write("report/figures", figure, error));      // and NAME.dat, the numbers, NAME.txt, a caption
 */
#ifndef MTIL_RESULTS_REPORT_PICTURE_H
#define MTIL_RESULTS_REPORT_PICTURE_H

#include "results/report/figure.h"

/* ERROR_MEMORY when a figure cannot be drawn, ERROR_IO when a file cannot be written. The same figure has the same bytes on
 * the same machine. */
status picture_write(const char *folder, const struct figure *figure, struct error *error);

enum picture_width { PICTURE_COLUMN, PICTURE_PAGE, PICTURE_WIDTHS };

/* Appends the SVG document that is drawn: the colours of the light theme, words as text in the machine's sans-serif. */
void picture_svg(struct text *svg, const struct figure *figure, enum picture_width width);

#endif

/* The page around the sections: head, style, switch, contents, script.
 *
 *     TRY(page_write(report, &outcome, &html, error));        // appends the whole page
 */
#ifndef MTIL_RESULTS_REPORT_PAGE_H
#define MTIL_RESULTS_REPORT_PAGE_H

#include "results/report/data.h"

status page_write(struct report *report, struct text *html, struct error *error);

#endif

/* Pieces of the page. Everything from the database passes through html_escape, so that it is nothing but text.
 *
 *     html_escape(&page, name);
 *     struct html_table shown = {.table = &table, .name = "leaderboard", .caption = "n: finished seeds …"};
 *     html_table(&page, &shown);                            // sortable, with its CSV, by script.js
 *     html_heading(&page, 2, "board1-leaderboard", "Leaderboard");
 */
#ifndef MTIL_RESULTS_REPORT_HTML_H
#define MTIL_RESULTS_REPORT_HTML_H

#include <stdbool.h>

#include "core/text.h"
#include "results/table.h"

enum { HTML_LEVELS = 9 }; /* shades of a heat map, classes h0 to h8 of style.css */

/* Appends string as text of an element or a quoted attribute: control characters and invalid bytes are shown
 * as text_add_visible shows them. */
void html_escape(struct text *html, const char *string);

/* The same between pieces of markup. */
void html_element(struct text *html, const char *before, const char *string, const char *behind);

void html_heading(struct text *html, int level, const char *id, const char *title); /* title is escaped */

/* A number as people read it, "−1.2", in the given decimals; "–" for NAN. */
void html_number(struct text *html, double value, int decimals);

/* Names the files of a figure; stem has only letters, digits and "-". */
void html_files(struct text *html, const char *stem);

/* The shade of value between low and high. */
int html_level(double value, double low, double high);

struct html_table {
    const struct table *table; /* its first column does not scroll and is not shaded */
    const char *name;          /* of the CSV file, without .csv, and of its files for papers */
    const char *caption;       /* NULL: none */
    bool heat;                 /* cells of numbers are shaded */
    double low, high;          /* values of the first and the last shade */
    bool wrapped;              /* long text is wrapped */
    bool with_files;           /* there are files for papers */
    const bool *framed;        /* [rows, columns], cells with a frame; NULL: none */
};
void html_table(struct text *html, const struct html_table *shown);

#endif

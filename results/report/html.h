/* Pieces of the page. Whatever comes from the database goes through html_escape, so that it is text and nothing else.
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

/* Appends string as text of an element or a quoted attribute: valid UTF-8, no control characters. */
void html_escape(struct text *html, const char *string);

void html_heading(struct text *html, int level, const char *id, const char *title);
void html_paragraph(struct text *html, const char *class, const char *text); /* text is escaped */

/* A number as people read it, "−1.2", in the given decimals; "–" for NAN. */
void html_number(struct text *html, double value, int decimals);

/* Where the files of a figure are; stem has letters, digits and "-" alone. */
void html_files(struct text *html, const char *stem);

/* The shade of value between low and high. */
int html_level(double value, double low, double high);

struct html_table {
    const struct table *table;
    const char *name;    /* of the CSV file, without .csv */
    const char *caption; /* NULL: none */
    bool heat;           /* cells of numbers are shaded */
    double low, high;    /* what the first and the last shade mean */
    bool wrapped;        /* text goes on in further lines rather than making the table wider */
    size_t heads;        /* columns at the left that stay when the rest is scrolled; heat leaves them alone */
    size_t foot;         /* rows at the end that stay there when the others are sorted */
    const char *files;   /* stem of the same as files for papers; NULL: there are none */
    const bool *framed;  /* [rows, columns], cells with a frame; NULL: none */
};
void html_table(struct text *html, const struct html_table *shown);

#endif

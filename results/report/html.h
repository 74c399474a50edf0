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

/* Appends string as text of an element or a quoted attribute: valid UTF-8, no control characters. */
void html_escape(struct text *html, const char *string);

void html_heading(struct text *html, int level, const char *id, const char *title);
void html_paragraph(struct text *html, const char *class, const char *text); /* text is escaped */

/* A number as people read it, "−1.2", in the given decimals; "–" for NAN. */
void html_number(struct text *html, double value, int decimals);

/* Names the files of a figure; stem has only letters, digits and "-". */
void html_files(struct text *html, const char *stem);

/* The shade of value between low and high. */
int html_level(double value, double low, double high);

struct html_table {
    const struct table *table;
    const char *name;    /* of the CSV file, without .csv */
    const char *caption; /* NULL: none */
    bool heat;           /* cells of numbers are shaded */
    double low, high;    /* values of the first and the last shade */
    bool wrapped;        /* long text is wrapped */
    size_t heads;        /* columns at the left that do not scroll and are not shaded */
    size_t foot;         /* rows at the end that are not sorted */
    const char *files;   /* stem of its files for papers; NULL: none */
    const bool *framed;  /* [rows, columns], cells with a frame; NULL: none */
};
void html_table(struct text *html, const struct html_table *shown);

#endif

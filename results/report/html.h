/* Pieces of the page. Everything from the database passes through html_escape, so that it is nothing but text. */
#pragma once

#include <stdbool.h>

#include "core/text.h"
#include "results/report/data.h"

enum { HTML_LEVELS = 9 }; /* shades of a heat map, classes h0 to h8 of style.css */

/* Appends string as text of an element or a quoted attribute. */
void html_escape(struct text *html, const char *string);

/* Appends string in the same way, between two pieces of markup. */
void html_element(struct text *html, const char *before, const char *string, const char *behind);

/* A number as people read it, "−1.2", in the given decimals; "–" for NAN. */
void html_number(struct text *html, double value, int decimals);

/* Names the files of a figure; stem has only letters, digits and "-". */
void html_files(struct text *html, const char *stem);

/* The shade of value between low and high. */
int html_level(double value, double low, double high);

/* Rows of the part as a table, whose first column does not scroll and is not shaded; with_files: there are files for papers. */
void html_table(struct text *html, const struct part *part, const struct table *table, bool with_files);

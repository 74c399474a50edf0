#include "results/report/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Control characters, and those that turn the writing direction of what follows. */
static bool is_unwanted(utf8proc_int32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

static void escape_character(struct text *html, const char *bytes, size_t size, utf8proc_int32_t code)
{
    switch (code) {
    case '&':
        text_add(html, "&amp;");
        break;
    case '<':
        text_add(html, "&lt;");
        break;
    case '>':
        text_add(html, "&gt;");
        break;
    case '"':
        text_add(html, "&quot;");
        break;
    case '\'':
        text_add(html, "&#39;");
        break;
    case '\t':
    case '\n':
        text_add(html, " ");
        break;
    default:
        if (is_unwanted(code))
            text_add(html, "\xef\xbf\xbd");
        else
            text_add_bytes(html, bytes, size);
    }
}

/* breaking: a line may end behind a part of a name such as merge.every. */
static void escape(struct text *html, const char *string, bool breaking)
{
    for (size_t left = strlen(string); left > 0;) {
        utf8proc_int32_t code;
        utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)string, (utf8proc_ssize_t)left, &code);
        if (size <= 0) {
            size = 1;
            code = 0x7f; /* is shown as a replacement */
        }
        escape_character(html, string, (size_t)size, code);
        if (breaking && (code == '.' || code == '_'))
            text_add(html, "<wbr>");
        string += size;
        left -= (size_t)size;
    }
}

void html_escape(struct text *html, const char *string)
{
    escape(html, string, false);
}

void html_heading(struct text *html, int level, const char *id, const char *title)
{
    text_add(html, "<h%d id=\"", level);
    html_escape(html, id);
    text_add(html, "\">");
    html_escape(html, title);
    text_add(html, "</h%d>\n", level);
}

void html_paragraph(struct text *html, const char *class, const char *text)
{
    text_add(html, "<p class=\"%s\">", class);
    html_escape(html, text);
    text_add(html, "</p>\n");
}

void html_number(struct text *html, double value, int decimals)
{
    char number[400]; /* the longest double */
    if (isnan(value)) {
        text_add(html, "–");
        return;
    }
    if (decimals == DECIMALS_ALL)
        snprintf(number, sizeof number, fabs(value) < 1 ? "%.4g" : "%.6g", value);
    else
        snprintf(number, sizeof number, "%.*f", decimals, value);
    bool negative = number[0] == '-' && strtod(number, NULL) != 0; /* no "−0.0" */
    text_add(html, "%s%s", negative ? "−" : "", number + (number[0] == '-'));
}

void html_files(struct text *html, const char *stem)
{
    text_add(
        html,
        " <span class=\"files\">For papers: <code>figures/%s.svg</code>, <code>.png</code>, <code>.pdf</code>.</span>",
        stem);
}

int html_level(double value, double low, double high)
{
    if (isnan(value) || !(high > low))
        return 0;
    return (int)fmin(fmax((value - low) / (high - low) * HTML_LEVELS, 0), HTML_LEVELS - 1);
}

/* --- Tables --- */

/* A column of numbers that has none yet is one still. */
static bool is_numeric(const struct table *table, size_t column)
{
    return table->column[column].decimals > 0 || table_column_is_numeric(table, column);
}

static double number_of(const struct table_cell *cell)
{
    return cell->kind == CELL_REAL ? cell->real : cell->kind == CELL_INTEGER ? (double)cell->integer : (double)NAN;
}

/* The best of a column, NAN when it has none: one value alone is no best, nor is one among blocks, which sorting mixes. */
static double best_of(const struct table *table, size_t column)
{
    enum table_best wanted = table->column[column].best;
    double best = (double)NAN;
    size_t known = 0;
    for (size_t row = 0; wanted != BEST_NONE && table->blocks == 0 && row < table_rows(table); row++) {
        double value = number_of(table_cell_at(table, row, column));
        known += !isnan(value);
        if (isnan(best) || (wanted == BEST_HIGHEST ? value > best : value < best))
            best = isnan(value) ? best : value;
    }
    return known > 1 ? best : (double)NAN;
}

/* Those that read the same are as good. */
static bool is_best(double value, double best, int decimals)
{
    struct text a = {0}, b = {0};
    html_number(&a, value, decimals);
    html_number(&b, best, decimals);
    bool same = !isnan(best) && a.data != NULL && b.data != NULL && strcmp(a.data, b.data) == 0;
    text_free(&a);
    text_free(&b);
    return same;
}

static void add_classes(struct text *html, const struct html_table *shown, size_t row, size_t column, double value,
                        bool numeric)
{
    const struct table *table = shown->table;
    struct text classes = {0};
    if (numeric)
        text_add(&classes, "n");
    if (shown->heat && column >= shown->heads && !isnan(value))
        text_add(&classes, " h%d", html_level(value, shown->low, shown->high));
    if (shown->framed != NULL && shown->framed[row * table->columns + column])
        text_add(&classes, " framed");
    if (classes.data != NULL)
        text_add(html, " class=\"%s\"", classes.data + (classes.data[0] == ' '));
    html->failed |= classes.failed;
    text_free(&classes);
}

static void add_value(struct text *html, const struct table_cell *cell, int decimals, bool best)
{
    text_add(html, best ? "<b>" : "");
    if (cell->kind == CELL_TEXT)
        html_escape(html, cell->text);
    else if (cell->kind == CELL_INTEGER)
        text_add(html, "%" PRId64, cell->integer);
    else
        html_number(html, number_of(cell), decimals);
    text_add(html, best ? "</b>" : "");
}

static void add_cell(struct text *html, const struct html_table *shown, size_t row, size_t column, bool numeric,
                     double best)
{
    const struct table_cell *cell = table_cell_at(shown->table, row, column);
    const char *element = column < shown->heads ? "th" : "td";
    double value = number_of(cell);
    text_add(html, "<%s%s", element, column < shown->heads ? " scope=\"row\"" : "");
    add_classes(html, shown, row, column, value, numeric);
    if (cell->kind == CELL_REAL) {
        text_add(html, " data-v=\"");
        text_add_real(html, value);
        text_add(html, "\"");
    }
    if (cell->kind == CELL_EMPTY)
        text_add(html, " data-v=\"\"");
    text_add(html, ">");
    int decimals = shown->table->column[column].decimals;
    add_value(html, cell, decimals, is_best(value, best, decimals));
    text_add(html, "</%s>", element);
}

static void add_head(struct text *html, const struct html_table *shown, const bool *numeric)
{
    const struct table *table = shown->table;
    text_add(html, "<thead><tr>");
    for (size_t column = 0; column < table->columns; column++) {
        const char *title = table->column[column].title, *sign = strstr(title, " ±");
        text_add(html, "<th scope=\"col\"%s data-name=\"", numeric[column] ? " class=\"n\"" : "");
        html_escape(html, title);
        text_add(html, "\">");
        escape(html, sign != NULL ? sign + 1 : title, shown->wrapped); /* the column to the left says of what */
        text_add(html, "</th>");
    }
    text_add(html, "</tr></thead>\n");
}

static void add_rows(struct text *html, const struct html_table *shown, size_t first, size_t end, const bool *numeric,
                     const double *best)
{
    for (size_t row = first; row < end; row++) {
        text_add(html, "<tr>");
        for (size_t column = 0; column < shown->table->columns; column++)
            add_cell(html, shown, row, column, numeric[column], best[column]);
        text_add(html, "</tr>\n");
    }
}

static void add_body(struct text *html, const struct html_table *shown, const bool *numeric, const double *best)
{
    size_t rows = table_rows(shown->table), body = rows - (shown->foot < rows ? shown->foot : rows);
    text_add(html, "<tbody>\n");
    add_rows(html, shown, 0, body, numeric, best);
    text_add(html, "</tbody>");
    if (body < rows) {
        text_add(html, "<tfoot>\n");
        add_rows(html, shown, body, rows, numeric, best);
        text_add(html, "</tfoot>");
    }
    text_add(html, "</table></div>\n");
}

void html_table(struct text *html, const struct html_table *shown)
{
    const struct table *table = shown->table;
    bool *numeric = calloc(table->columns + 1, sizeof *numeric);
    double *best = calloc(table->columns + 1, sizeof *best);
    html->failed |= numeric == NULL || best == NULL || table->failed;
    for (size_t column = 0; !html->failed && column < table->columns; column++) {
        numeric[column] = is_numeric(table, column);
        best[column] = best_of(table, column);
    }
    if (!html->failed) {
        text_add(html, "<figure class=\"table\">\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
        html_escape(html, shown->name);
        text_add(html, "\"><table class=\"data%s%s\" data-name=\"", shown->heat ? " heat" : "",
                 shown->wrapped ? " wrapped" : "");
        html_escape(html, shown->name);
        text_add(html, "\">\n");
        add_head(html, shown, numeric);
        add_body(html, shown, numeric, best);
        text_add(html, "<figcaption><span>");
        if (shown->caption != NULL)
            html_escape(html, shown->caption);
        if (shown->files != NULL)
            html_files(html, shown->files);
        text_add(html,
                 "</span> <button type=\"button\" class=\"csv\" hidden>Download CSV</button></figcaption></figure>\n");
    }
    free(numeric);
    free(best);
}

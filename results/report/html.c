#include "results/report/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/characters.h"

/* breaking: a line may end behind a part of a name such as merge.every. */
static void escape(struct text *html, const char *string, bool breaking)
{
    static const char marks[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    struct text visible = {0};
    text_add_visible(&visible, string);
    for (size_t i = 0; i < visible.size; i++) {
        char character = visible.data[i];
        const char *mark = strchr(marks, character);
        if (mark != NULL)
            text_add(html, "%s", entities[mark - marks]);
        else
            text_add_bytes(html, &character, 1);
        if (breaking && (character == '.' || character == '_'))
            text_add(html, "<wbr>");
    }
    text_free(&visible);
}

void html_escape(struct text *html, const char *string)
{
    escape(html, string, false);
}

void html_element(struct text *html, const char *before, const char *string, const char *behind)
{
    text_add(html, "%s", before);
    html_escape(html, string);
    text_add(html, "%s", behind);
}

void html_heading(struct text *html, int level, const char *id, const char *title)
{
    text_add(html, "<h%d id=\"", level);
    html_escape(html, id);
    html_element(html, "\">", title, "");
    text_add(html, "</h%d>\n", level);
}

enum { NUMBER_SIZE = 400 /* of the longest double */ };

static const char *print(char number[static NUMBER_SIZE], double value, int decimals)
{
    if (isnan(value))
        return "–";
    if (decimals == DECIMALS_ALL)
        snprintf(number, NUMBER_SIZE, fabs(value) < 1 ? "%.4g" : "%.6g", value);
    else
        snprintf(number, NUMBER_SIZE, "%.*f", decimals, value);
    return number[0] == '-' && strtod(number, NULL) == 0 ? number + 1 : number; /* no "−0.0" */
}

void html_number(struct text *html, double value, int decimals)
{
    char room[NUMBER_SIZE];
    const char *number = print(room, value, decimals);
    text_add(html, "%s%s", number[0] == '-' ? "−" : "", number + (number[0] == '-'));
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

struct column {
    const struct table_column *about;
    bool numeric;
    double best; /* NAN: none */
};

static double number_of(const struct table_cell *cell)
{
    return cell->kind == CELL_REAL ? cell->real : cell->kind == CELL_INTEGER ? (double)cell->integer : (double)NAN;
}

/* One value alone is no best, nor is one among blocks, which sorting mixes. */
static double best_of(const struct table *table, size_t column)
{
    enum table_best wanted = table->column[column].best;
    double best = (double)NAN;
    size_t known = 0;
    for (size_t row = 0; wanted != BEST_NONE && table->blocks == 0 && row < table_rows(table); row++) {
        double value = number_of(table_cell_at(table, row, column));
        known += !isnan(value);
        best = wanted == BEST_HIGHEST ? fmax(best, value) : fmin(best, value);
    }
    return known > 1 ? best : (double)NAN;
}

/* Those that read the same are as good. */
static bool is_best(double value, const struct column *column)
{
    char best[NUMBER_SIZE], own[NUMBER_SIZE];
    return !isnan(column->best) &&
           strcmp(print(best, column->best, column->about->decimals), print(own, value, column->about->decimals)) == 0;
}

static void add_value(struct text *html, const struct table_cell *cell, const struct column *column)
{
    bool best = is_best(number_of(cell), column);
    text_add(html, best ? "<b>" : "");
    if (cell->kind == CELL_TEXT)
        html_escape(html, cell->text);
    else if (cell->kind == CELL_INTEGER)
        text_add(html, "%" PRId64, cell->integer);
    else
        html_number(html, number_of(cell), column->about->decimals);
    text_add(html, best ? "</b>" : "");
}

static void add_cell(struct text *html, const struct html_table *shown, size_t at, const struct column *column)
{
    const struct table_cell *cell = &shown->table->cell[at];
    bool head = at % shown->table->columns == 0, framed = shown->framed != NULL && shown->framed[at];
    double value = number_of(cell);
    const char *element = head ? "th" : "td";
    text_add(html, head ? "<th scope=\"row\"" : "<td");
    if (shown->heat && !head && !isnan(value))
        text_add(html, " class=\"%sh%d%s\"", column->numeric ? "n " : "", html_level(value, shown->low, shown->high),
                 framed ? " framed" : "");
    else if (column->numeric || framed)
        text_add(html, " class=\"%s\"", !framed ? "n" : column->numeric ? "n framed" : "framed");
    if (cell->kind == CELL_REAL) {
        text_add(html, " data-v=\"");
        text_add_real(html, value);
        text_add(html, "\"");
    }
    text_add(html, cell->kind == CELL_EMPTY ? " data-v=\"\">" : ">");
    add_value(html, cell, column);
    text_add(html, "</%s>", element);
}

/* The column to the left says of what a "Last ±" is. */
static void add_head(struct text *html, const struct column *column, bool wrapped)
{
    const char *title = column->about->title, *sign = strstr(title, " ±");
    text_add(html, "<th scope=\"col\"%s", column->numeric ? " class=\"n\"" : "");
    html_element(html, " data-name=\"", title, "\">");
    escape(html, sign != NULL ? sign + 1 : title, wrapped);
    text_add(html, "</th>");
}

static void add_rows(struct text *html, const struct html_table *shown)
{
    const struct table *table = shown->table;
    struct column *columns = xcalloc(table->columns, sizeof *columns);
    text_add(html, "<thead><tr>");
    for (size_t i = 0; i < table->columns; i++) {
        /* A column of numbers that has none yet is one still. */
        bool numeric = table->column[i].decimals > 0 || table_column_is_numeric(table, i);
        columns[i] = (struct column){&table->column[i], numeric, best_of(table, i)};
        add_head(html, &columns[i], shown->wrapped);
    }
    text_add(html, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        text_add(html, column == 0 ? "<tr>" : "");
        add_cell(html, shown, i, &columns[column]);
        text_add(html, column + 1 == table->columns ? "</tr>\n" : "");
    }
    text_add(html, "</tbody></table></div>\n");
    free(columns);
}

void html_table(struct text *html, const struct html_table *shown)
{
    html_element(html, "<figure class=\"table\">\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                 shown->name, "\">");
    text_add(html, "<table class=\"data%s%s\"", shown->heat ? " heat" : "", shown->wrapped ? " wrapped" : "");
    html_element(html, " data-name=\"", shown->name, "\">\n");
    add_rows(html, shown);
    html_element(html, "<figcaption><span>", shown->caption != NULL ? shown->caption : "", "");
    if (shown->with_files)
        html_files(html, shown->name);
    text_add(html,
             "</span> <button type=\"button\" class=\"csv\" hidden>Download CSV</button></figcaption></figure>\n");
}

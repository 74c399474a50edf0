#include "results/report/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/text.h"

#define MARKS "&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&quot;", "'", "&#39;"

static const char *const marks[] = {MARKS, NULL};

static void escape(struct text *html, const char *string, const char *const *list)
{
    SCOPED(text_free) struct text visible = {0};
    text_add_visible(&visible, string);
    text_add_replaced(html, visible.data, list);
}

void html_escape(struct text *html, const char *string)
{
    escape(html, string, marks);
}

void html_element(struct text *html, const char *before, const char *string, const char *behind)
{
    text_add(html, "%s", before);
    html_escape(html, string);
    text_add(html, "%s", behind);
}

void html_number(struct text *html, double value, int decimals)
{
    char number[TABLE_NUMBER] = "–";
    if (!isnan(value))
        table_number(value, decimals, number);
    text_add(html, "%s%s", number[0] == '-' ? "−" : "", number + (number[0] == '-'));
}

void html_files(struct text *html, const char *stem)
{
    static const char *const files[][2] = {{".svg", "two columns"}, {"-column.svg", "one column"}, {".csv", "rows"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        text_add(html, i == 0 ? " <span class=\"files\">For papers: " : ", ");
        html_element(html, "<a href=\"" REPORT_FIGURES "/", stem, "");
        text_add(html, "%s\">%s</a>", files[i][0], files[i][1]);
    }
    text_add(html, ".</span>");
}

int html_level(double value, double low, double high)
{
    if (isnan(value) || !(high > low))
        return 0;
    return (int)fmin(fmax((value - low) / (high - low) * HTML_LEVELS, 0), HTML_LEVELS - 1);
}

/* --- Tables --- */

struct column {
    bool numeric, spread, links; /* spread: a "Last ±"; links: to the rows of settings */
};

/* Of the row that has a configuration's settings: of its name, whatever letters that has. */
static void add_anchor(struct text *html, const struct part *part, const char *before, const char *label)
{
    char digest[DIGEST_SIZE];
    digest_bytes(label, strlen(label), digest);
    text_add(html, "%s%ssettings-%.16s\"", before, part->report->prefix, digest);
}

/* A column of numbers that has none yet is one still. */
static bool is_numeric(const struct table *table, size_t column)
{
    bool empty = true;
    for (size_t row = 0; empty && row < table_rows(table); row++)
        empty = table_cell_at(table, row, column)->kind == CELL_EMPTY;
    return empty ? table->column[column].decimals > 0 : table_column_is_numeric(table, column);
}

static void add_value(struct text *html, const struct table_cell *cell, int decimals, bool bold)
{
    text_add(html, bold ? "<b>" : "");
    if (cell->kind == CELL_TEXT)
        html_escape(html, cell->text);
    else if (cell->kind == CELL_INTEGER)
        text_add(html, "%" PRId64, cell->integer);
    else
        html_number(html, table_cell_real(cell), decimals);
    text_add(html, bold ? "</b>" : "");
}

static bool is_shaded(const struct part *part)
{
    return !isnan(part->low + part->high);
}

/* What stands out is framed where the head says of what, else bold. */
static void add_cell(struct text *html, const struct part *part, const struct table *table, size_t at,
                     const struct column *column)
{
    const struct table_cell *cell = &table->cell[at];
    bool head = at % table->columns == 0, shaded = !head && is_shaded(part), framed = part->says[ON_FRAMED] != NULL;
    double value = shaded ? table_cell_real(cell) : (double)NAN;
    SCOPED(text_free) struct text class = {0};
    text_add(&class, column->numeric ? " n" : "");
    if (!isnan(value))
        text_add(&class, " h%d", html_level(value, part->low, part->high));
    text_add(&class, "%s%s", cell->marked && framed && !head ? " framed" : "", column->spread ? " spread" : "");
    text_add(html, head ? "<th scope=\"row\"" : "<td");
    if (class.size > 0)
        text_add(html, " class=\"%s\"", class.data + 1);
    text_add(html, cell->kind == CELL_REAL || cell->kind == CELL_EMPTY ? " data-v=\"" : "");
    if (cell->kind == CELL_REAL)
        text_add_real(html, cell->real);
    text_add(html, cell->kind == CELL_REAL || cell->kind == CELL_EMPTY ? "\">" : ">");
    if (column->links && cell->kind == CELL_TEXT)
        add_anchor(html, part, "<a href=\"#", cell->text);
    text_add(html, column->links && cell->kind == CELL_TEXT ? ">" : "");
    add_value(html, cell, table->column[at % table->columns].decimals, cell->marked && !framed);
    text_add(html, column->links && cell->kind == CELL_TEXT ? "</a>" : "");
    text_add(html, head ? "</th>" : "</td>");
}

/* The column to the left says of what a "Last ±" is; a line may end behind a part of a name such as merge.every. */
static void add_head(struct text *html, const char *title, const struct column *column, bool wrapped)
{
    static const char *const breaking[] = {MARKS, ".", ".<wbr>", "_", "_<wbr>", NULL};
    const char *sign = strstr(title, " ±");
    text_add(html, "<th scope=\"col\"%s",
             column->spread    ? " class=\"n spread\""
             : column->numeric ? " class=\"n\""
                               : "");
    html_element(html, " data-name=\"", title, "\">");
    escape(html, sign != NULL ? sign + 1 : title, wrapped ? breaking : marks);
    text_add(html, "</th>");
}

static void add_rows(struct text *html, const struct part *part, const struct table *table)
{
    OWNED struct column *columns = xcalloc(table->columns, sizeof *columns);
    text_add(html, "<thead><tr>");
    for (size_t i = 0; i < table->columns; i++) {
        const char *title = table->column[i].title;
        columns[i] =
            (struct column){.numeric = is_numeric(table, i),
                            .spread = strstr(title, " ±") != NULL,
                            .links = text_has_word(part->words, "links") && strcmp(title, "configuration") == 0};
        add_head(html, title, &columns[i], text_has_word(part->words, "wrapped"));
    }
    text_add(html, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        text_add(html, column == 0 ? "<tr" : "");
        if (column == 0 && text_has_word(part->words, "anchors") && table->cell[i].kind == CELL_TEXT)
            add_anchor(html, part, " id=\"", table->cell[i].text);
        text_add(html, column == 0 ? ">" : "");
        add_cell(html, part, table, i, &columns[column]);
        text_add(html, column + 1 == table->columns ? "</tr>\n" : "");
    }
    text_add(html, "</tbody></table></div>\n");
}

void html_table(struct text *html, const struct part *part, const struct table *table, bool with_files)
{
    html_element(html, "<figure class=\"table\">\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                 part->name, "\">");
    text_add(html, "<table class=\"data%s%s\"", is_shaded(part) ? " heat" : "",
             text_has_word(part->words, "wrapped") ? " wrapped" : "");
    html_element(html, " data-name=\"", part->name, "\">\n");
    add_rows(html, part, table);
    html_element(html, "<figcaption><span>", part->says[ON_CAPTION] != NULL ? part->says[ON_CAPTION] : "", "");
    if (part->says[ON_FRAMED] != NULL)
        html_element(html, " Framed: ", part->says[ON_FRAMED], ".");
    if (with_files)
        html_files(html, part->name);
    text_add(html,
             "</span> <button type=\"button\" class=\"csv\" hidden>Download CSV</button></figcaption></figure>\n");
}

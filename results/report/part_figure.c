/* Figures from the rows of an answer. README.md lists the columns that they read and the words of "-- draw". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"
#include "results/query/internal.h"
#include "results/report/figure.h"
#include "results/report/folder.h"
#include "results/report/part.h"

enum { CELLS_MOST = 100000 /* across or down */ };

static bool is_known(const struct part *part, const char *column)
{
    return query_column(part->rows, column) != SIZE_MAX;
}

/* --- The head --- */

static status check_words(const char *words, struct error *error)
{
    static const char known[] = "line|heat|interval|bars|cells|zero|points|fractions|noisy|own_ranges|printed|wrapped";
    for (size_t length; *words != 0; words += length + (words[length] == '|')) {
        char word[32];
        length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (!text_has_word(known, word) && strspn(word, "0123456789") != length)
            return error_set(error, ERROR_ARGUMENT, "draw: expected words of %s, found \"%s\"", known, word);
    }
    return OK;
}

static status read_head(struct figure *figure, const struct part *part, struct error *error)
{
    const char *words = part_words(part), *number = strpbrk(words, "0123456789");
    const char *caption = part_says(part, ON_CAPTION);
    struct figure_range range = part_range(part);
    *figure = (struct figure){.kind = figure_kind(words),
                              .words = words,
                              .decimals = number != NULL ? *number - '0' : 0,
                              .name = part_name(part),
                              .title = part_fill(part, part->question->title),
                              .caption = caption != NULL ? caption : "",
                              .x_title = part_says(part, ON_X),
                              .y_title = part_says(part, ON_Y),
                              .value_title = part_says(part, ON_VALUE),
                              .low = range.low,
                              .high = range.high,
                              .table = part->rows,
                              .first = part->first,
                              .end = part->end};
    TRY(check_words(words, error));
    if (figure->kind == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "expected \"-- draw: table, line, heat, interval, bars or cells\", found \"%.60s\"", words);
    for (size_t i = 0; i < 2; i++)
        if (!is_known(part, figure->kind->needs[i]))
            return error_set(error, ERROR_ARGUMENT, "draw: %s needs a column %s", figure->kind->word,
                             figure->kind->needs[i]);
    figure->zero = figure->kind->bars || text_has_word(words, "zero");
    figure->printed = text_has_word(words, "printed") || (figure->kind->shades && !is_known(part, "panel"));
    return OK;
}

/* --- Rows --- */

/* The place of a name among those that came before, behind the last one's if it is there. */
static double place_of(struct figure_names *names, double last, const char *name)
{
    size_t at = (size_t)(last + 1);
    if (at >= names->count || strcmp(names->name[at], name) != 0)
        for (at = 0; at < names->count && strcmp(names->name[at], name) != 0;)
            at++;
    if (at == names->count) {
        GROW(names->name, names->count);
        names->name[names->count++] = name;
    }
    return (double)at;
}

/* Its number if the row has one, or the place of its name in the legend. */
static size_t colour_of(struct figure *figure, double number, const char *name)
{
    size_t colour = number >= 0 ? (size_t)fmod(number, REPORT_BEST) : 0;
    while (!(number >= 0) && colour + 1 < REPORT_BEST && figure->legend[colour] != NULL &&
           strcmp(figure->legend[colour], name) != 0)
        colour++;
    figure->legend[colour] = name;
    return colour;
}

/* The column that names the rows of shades: the first one of the table. */
static const char *row_column(const struct part *part)
{
    for (size_t column = 0; !is_known(part, "row") && column < part->rows->columns; column++) {
        const char *title = part->rows->column[column].title;
        if (strcmp(title, "panel") != 0 && part_is_column(part, title))
            return title;
    }
    return "row";
}

static bool differs(const struct part *part, size_t row, size_t before, const char *column)
{
    size_t at = query_column(part->rows, column);
    return before == SIZE_MAX || (at != SIZE_MAX && !query_same_cell(table_cell_at(part->rows, row, at),
                                                                     table_cell_at(part->rows, before, at)));
}

/* Sets where the mark of a row lies, behind that of the row before it; false: nowhere. */
static bool place(struct figure *figure, const struct part *part, size_t row, const char *row_name,
                  struct figure_mark *mark)
{
    if (figure->kind->shades) {
        mark->x = place_of(&figure->column, mark->x, part_text(part, row, "column"));
        mark->y = place_of(&figure->row, mark->y, part_text(part, row, row_name));
        mark->framed = part_real(part, row, "framed") > 0 && is_known(part, "panel");
        return true;
    }
    mark->x = part_real(part, row, "x");
    mark->y = part_real(part, row, "y");
    if (!figure->kind->grid)
        return true;
    if (!(mark->x >= 0 && mark->x < CELLS_MOST && mark->y >= 0 && mark->y < CELLS_MOST))
        return false;
    figure->columns = fmax(figure->columns, mark->x + 1);
    figure->rows = fmax(figure->rows, mark->y + 1);
    return true;
}

static void fill(struct figure *figure, const struct part *part, struct figure_mark *next)
{
    struct figure_mark mark = {.x = -1, .y = -1};
    const char *row_name = row_column(part), *value = figure->kind->grid ? "value" : "y";
    size_t before = SIZE_MAX;
    for (size_t row = part->first; row < part->end; row++) {
        if (part_real(part, row, "extra") > 0) /* for the table alone */
            continue;
        bool first = differs(part, row, before, "panel");
        if (first) {
            GROW(figure->panel, figure->panels);
            figure->panel[figure->panels++] = (struct figure_panel){
                .title = part_text(part, row, "panel"), .line = part_real(part, row, "mark"), .mark = next};
        }
        mark.begins = first || differs(part, row, before, "series");
        before = row;
        if (mark.begins)
            mark.name = part_text(part, row, "series");
        if (!place(figure, part, row, row_name, &mark))
            continue;
        mark.colour = colour_of(figure, part_real(part, row, "colour"), mark.name);
        mark.value = part_real(part, row, value);
        mark.low = part_real(part, row, "low");
        mark.high = part_real(part, row, "high");
        *next++ = mark;
        figure->panel[figure->panels - 1].marks++;
    }
}

/* --- The figure --- */

/* The configurations of the board have their colours in every figure with lines. */
static status read_legend(struct figure *figure, const struct part *part, struct error *error)
{
    struct report *report = part->call->report;
    struct table table = {0};
    TRY(query_rows(report->store, "SELECT colour, legend FROM configurations WHERE colour IS NOT NULL",
                   &report->request->filter, &table, error));
    for (size_t row = 0; row < table_rows(&table); row++)
        figure->legend[table_cell_at(&table, row, 0)->integer] =
            report_copy(report, table_cell_at(&table, row, 1)->text);
    table_free(&table);
    return OK;
}

status part_figure(const struct part *part, struct error *error)
{
    struct report *report = part->call->report;
    struct figure figure;
    TRY(read_head(&figure, part, error));
    TRY(report_stopped(report, error));
    if (figure.kind->legend && !figure.kind->grid)
        TRY(read_legend(&figure, part, error));
    struct figure_mark *marks = xcalloc(part->end - part->first, sizeof *marks);
    fill(&figure, part, marks);
    status result = OK;
    if (figure.panels > 0 && (!figure.kind->shades || is_known(part, "panel"))) /* else the page has a table of it */
        draw_figure(part->call->page, &figure, report->request->figures);
    if (figure.panels > 0 && report->request->figures) {
        result = picture_write(report_format(report, "%s/" REPORT_FIGURES, report->folder), &figure, error);
        report->figures++;
    }
    free(figure.panel);
    free(figure.column.name);
    free(figure.row.name);
    free(marks);
    return result;
}

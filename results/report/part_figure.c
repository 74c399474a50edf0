/* Figures from the rows of an answer. README.md lists the columns that they read and the words of "-- draw". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"
#include "results/query/internal.h"
#include "results/report/drawing.h"
#include "results/report/folder.h"
#include "results/report/part.h"

enum { CELLS_MOST = 100000 /* across or down */ };

static bool is_known(const struct part *part, const char *column)
{
    return query_column(part->rows, column) != SIZE_MAX;
}

/* --- The head --- */

static status read_word(struct figure *figure, const char *word, size_t length, struct error *error)
{
    static const char *const flags[FIGURE_WORDS] = {"zero",       "points",  "fractions", "noisy",
                                                    "own_ranges", "printed", "wrapped"};
    const struct figure_kind *kind = draw_kind(word, length);
    size_t flag = 0;
    while (flag < FIGURE_WORDS && (strlen(flags[flag]) != length || strncmp(word, flags[flag], length) != 0))
        flag++;
    if (kind != NULL)
        figure->kind = kind;
    else if (flag < FIGURE_WORDS)
        figure->is[flag] = true;
    else if (strspn(word, "0123456789") == length)
        figure->decimals = atoi(word);
    else
        return error_set(error, ERROR_ARGUMENT,
                         "draw: expected words of line|heat|interval|bars|cells|zero|points|fractions|noisy|own_ranges|"
                         "printed|wrapped, found \"%.*s\"",
                         (int)length, word);
    return OK;
}

static status read_head(struct figure *figure, const struct part *part, struct error *error)
{
    const char *draw = part_says(part, ON_DRAW) != NULL ? part_says(part, ON_DRAW) : "";
    const char *caption = part_says(part, ON_CAPTION);
    struct figure_range range = part_range(part);
    *figure = (struct figure){.name = part_name(part),
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
    for (const char *word = draw; *word != 0; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        TRY(read_word(figure, word, length, error));
        word += length;
    }
    if (figure->kind == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "expected \"-- draw: table, line, heat, interval, bars or cells\", found \"%.60s\"", draw);
    for (size_t i = 0; i < 2; i++)
        if (!is_known(part, figure->kind->needs[i]))
            return error_set(error, ERROR_ARGUMENT, "draw: %s needs a column %s", figure->kind->word,
                             figure->kind->needs[i]);
    figure->is[FIGURE_ZERO] |= figure->kind->bars;
    figure->is[FIGURE_PRINTED] |=
        figure->kind->shades && !is_known(part, "panel"); /* a matrix, which is a table, too */
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
static bool place(struct figure *figure, const struct part *part, size_t row, struct figure_mark *mark)
{
    if (figure->kind->shades) {
        mark->x = place_of(&figure->column, mark->x, part_text(part, row, "column"));
        mark->y = place_of(&figure->row, mark->y, part_text(part, row, row_column(part)));
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
        if (!place(figure, part, row, &mark))
            continue;
        mark.colour = colour_of(figure, part_real(part, row, "colour"), mark.name);
        mark.value = part_real(part, row, figure->kind->grid ? "value" : "y");
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
    if (!figure.kind->shades || is_known(part, "panel")) /* else it is a table on the page */
        draw_figure(part->call->page, &figure, report->request->figures);
    status result = OK;
    if (report->request->figures)
        result = picture_write(report_format(report, "%s/" REPORT_FIGURES, report->folder), &figure, error);
    report->figures += report->request->figures;
    free(figure.panel);
    free(figure.column.name);
    free(figure.row.name);
    free(marks);
    return result;
}

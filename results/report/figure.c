/* Figures from the rows of an answer. README.md lists the columns that they read and the words of "-- draw". */
#include "results/report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "results/query/internal.h"

#define ROOM 0.04 /* of the range, at both ends */

enum { CELLS_MOST = 100000 /* across or down */ };

/* --- What the head says --- */

static const struct figure_kind kinds[] = {
    {"line", FORM_LINES, {"x", "y"}, "y", .width = 260, .least = 130, .legend = true},
    {"heat", FORM_GRID, {"column", "value"}, "value", .width = 260, .least = 130, .shades = true},
    {"cells", FORM_GRID, {"column", "row"}, "value", .width = 260, .least = 130, .legend = true},
    {"interval", FORM_ROWS, {"y", "y"}, "y", .width = 300, .least = 200},
    {"bars", FORM_ROWS, {"y", "y"}, "y", .width = 300, .least = 200, .bars = true},
};

static bool is_known(const struct part *part, const char *column)
{
    return query_column(part->rows, column) != SIZE_MAX;
}

static status read_kind(struct figure *figure, const struct part *part, struct error *error)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_has_word(part->words, kinds[i].word))
            figure->kind = &kinds[i];
    if (figure->kind == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "expected \"-- draw: table, list, line, heat, interval, bars or cells\", found \"%.60s\"",
                         part->says[ON_DRAW] != NULL ? part->says[ON_DRAW] : "");
    for (size_t i = 0; i < 2; i++)
        if (!is_known(part, figure->kind->needs[i]))
            return error_set(error, ERROR_ARGUMENT, "draw: %s needs a column %s", figure->kind->word,
                             figure->kind->needs[i]);
    figure->in_table = figure->kind->shades && !is_known(part, "panel");
    figure->printed = figure->in_table || text_has_word(part->words, "printed");
    figure->zero = figure->kind->bars || text_has_word(part->words, "zero");
    figure->decimals = part->decimals >= 0 ? part->decimals : 0;
    return OK;
}

/* --- Rows --- */

static bool is_drawn(const struct part *part, size_t row)
{
    return !(part_real(part, row, "extra") > 0); /* for the table alone */
}

/* The columns or rows of cells where all are whole numbers: from the least to the greatest of them. */
static bool read_numbers(const struct part *part, const char *column, struct figure_names *names, double *first)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t row = part->first; row < part->end; row++) {
        double number = part_real(part, row, column);
        if (is_drawn(part, row) && !(rint(number) == number))
            return false;
        low = is_drawn(part, row) ? fmin(low, number) : low;
        high = is_drawn(part, row) ? fmax(high, number) : high;
    }
    if (!(high - low < CELLS_MOST))
        return false;
    *first = low;
    for (double number = low; number <= high; number++) {
        GROW(names->name, names->count);
        names->name[names->count++] = report_format(part->report, "%.0f", number);
    }
    return true;
}

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

/* Sets the place of each row along a column: places[row − part->first]. */
static void read_places(const struct part *part, const char *column, struct figure_names *names, double *places)
{
    double first, last = -1;
    bool numbers = read_numbers(part, column, names, &first);
    for (size_t row = part->first; row < part->end; row++)
        if (is_drawn(part, row))
            last = places[row - part->first] =
                numbers ? part_real(part, row, column) - first : place_of(names, last, part_text(part, row, column));
}

/* The column that names the rows of shades: the first one of the table. */
static const char *row_column(const struct part *part)
{
    for (size_t column = 0; !is_known(part, "row") && column < part->rows->columns; column++) {
        const char *title = part->rows->column[column].title;
        if (strcmp(title, "panel") != 0 && !question_says(part->question, title))
            return title;
    }
    return "row";
}

/* The row's number or, where it has none, the place of its name in the legend, which has what is drawn. */
static size_t colour_of(struct figure *figure, double number, const char *name, bool drawn)
{
    size_t colour = number >= 0 ? (size_t)fmod(number, REPORT_BEST) : 0;
    while (!(number >= 0) && colour + 1 < REPORT_BEST && figure->legend[colour] != NULL &&
           strcmp(figure->legend[colour], name) != 0)
        colour++;
    if (drawn)
        figure->legend[colour] = name;
    return colour;
}

static bool differs(const struct part *part, size_t row, size_t before, const char *column)
{
    size_t at = query_column(part->rows, column);
    return before == SIZE_MAX || (at != SIZE_MAX && !query_same_cell(table_cell_at(part->rows, row, at),
                                                                     table_cell_at(part->rows, before, at)));
}

static void read_marks(struct figure *figure, const struct part *part, const double *x, const double *y)
{
    struct figure_mark *next = figure->mark;
    const char *name = "";
    for (size_t row = part->first, before = SIZE_MAX; row < part->end; row++) {
        if (!is_drawn(part, row))
            continue;
        bool first = differs(part, row, before, "panel"), begins = first || differs(part, row, before, "series");
        before = row;
        if (first) {
            GROW(figure->panel, figure->panels);
            figure->panel[figure->panels++] = (struct figure_panel){
                .title = part_text(part, row, "panel"), .line = part_real(part, row, "mark"), .mark = next};
        }
        name = begins ? part_text(part, row, "series") : name;
        double value = part_real(part, row, figure->kind->value);
        *next++ = (struct figure_mark){.x = figure->kind->form == FORM_GRID ? x[row - part->first]
                                                                            : part_real(part, row, "x"),
                                       .y = y[row - part->first],
                                       .value = value,
                                       .low = part_real(part, row, "low"),
                                       .high = part_real(part, row, "high"),
                                       .name = name,
                                       .colour = colour_of(figure, part_real(part, row, "colour"), name, !isnan(value)),
                                       .begins = begins,
                                       .framed = !figure->in_table && part_real(part, row, "framed") > 0};
        figure->panel[figure->panels - 1].marks++;
    }
}

status figure_read(struct figure *figure, const struct part *part, struct error *error)
{
    size_t rows = part->end - part->first;
    *figure = (struct figure){.part = part};
    TRY(read_kind(figure, part, error));
    OWNED double *x = xcalloc(rows, sizeof *x), *y = xcalloc(rows, sizeof *y);
    if (figure->kind->form == FORM_GRID) {
        read_places(part, "column", &figure->column, x);
        read_places(part, row_column(part), &figure->row, y);
    }
    figure->mark = xcalloc(rows, sizeof *figure->mark);
    read_marks(figure, part, x, y);
    return OK;
}

void figure_free(struct figure *figure)
{
    free(figure->column.name);
    free(figure->row.name);
    free(figure->panel);
    free(figure->mark);
}

/* --- Ranges and colours --- */

struct figure_range figure_values(const struct figure *figure, size_t panel)
{
    struct figure_range range = {INFINITY, -INFINITY};
    bool own = text_has_word(figure->part->words, "own_ranges");
    double low = figure->part->low, high = figure->part->high;
    for (size_t p = own ? panel : 0; p < (own ? panel + 1 : figure->panels); p++)
        for (size_t i = 0; i < figure->panel[p].marks; i++) {
            const struct figure_mark *mark = &figure->panel[p].mark[i];
            range.low = fmin(fmin(range.low, mark->value), fmin(mark->low, mark->high));
            range.high = fmax(fmax(range.high, mark->value), fmax(mark->low, mark->high));
        }
    if (figure->zero)
        range = (struct figure_range){fmin(range.low, 0), fmax(range.high, 0)};
    if (!(range.high >= range.low))
        range = (struct figure_range){0, 1};
    double margin = range.high > range.low ? (range.high - range.low) * ROOM : fmax(fabs(range.high) * ROOM, 0.5);
    margin = figure->kind->shades ? 0 : margin;
    range = (struct figure_range){isnan(low) ? range.low - margin : low, isnan(high) ? range.high + margin : high};
    range.high = range.high > range.low ? range.high : range.low + 1;
    return range;
}

/* Lines of one colour need none. */
const char *figure_legend(const struct figure *figure, size_t colour)
{
    size_t names = 0;
    for (size_t i = 0; figure->kind->legend && i < REPORT_BEST; i++)
        names += figure->legend[i] != NULL;
    return names > (figure->kind->form != FORM_GRID) ? figure->legend[colour] : NULL;
}
